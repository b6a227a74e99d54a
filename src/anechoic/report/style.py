# ruff: noqa: E501
"""The style of a page: one column of prose, tables in boxes of their own, pictures side by side where there is room."""

from anechoic.report.svg import STYLE as PICTURES

STYLE = (
    PICTURES
    + """
:root{color-scheme:light dark;--good:#0b6e4f;--bad:#b3261e;--sans:system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif}
@media screen and (prefers-color-scheme:dark){:root{--good:#6fd3a8;--bad:#ff9d94}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:1.0625rem/1.55 Charter,'Bitstream Charter','Sitka Text',Cambria,'Liberation Serif',serif}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1rem 4rem}
h1{font-size:clamp(1.6rem,1.1rem + 2.4vw,2.4rem);line-height:1.15;margin:0 0 .5rem;text-wrap:balance}
h2{font-size:1.4rem;line-height:1.25;margin:3rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--rule)}
p{max-width:42rem;margin:.75rem 0;overflow-wrap:break-word}
a{color:inherit;text-decoration-color:var(--muted);text-underline-offset:.15em}
.byline,figcaption,nav,th,td,.key,summary,.verdict{font-family:var(--sans)}
.byline{color:var(--muted);font-size:.875rem;margin:0 0 1.25rem}
.summary{font-size:1.125rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:0;margin:1.5rem 0 0;font-size:.9375rem}
figure{margin:1.75rem 0}
figcaption{max-width:42rem;font-size:.9375rem;line-height:1.45;margin-bottom:.6rem}
figcaption strong{display:block}
figcaption span{color:var(--muted)}
.scroll{overflow-x:auto;max-width:100%;width:fit-content;background:linear-gradient(to left,var(--page) 40%,transparent) right/2.5rem 100% no-repeat local,linear-gradient(to left,var(--rule),transparent) right/.9rem 100% no-repeat scroll}
table{border-collapse:collapse;font-size:.9375rem;line-height:1.35;font-variant-numeric:tabular-nums lining-nums}
th,td{padding:.32rem .6rem;text-align:left;vertical-align:top;font-weight:400}
th.number,td.number{text-align:right}td.number{white-space:nowrap}tbody th{min-width:9.5rem}
thead th{color:var(--muted);border-bottom:1px solid var(--muted);vertical-align:bottom}
tbody tr>*{border-bottom:1px solid var(--rule)}
tbody tr:last-child>*{border-bottom-color:var(--muted)}
th.group{font-weight:600;background:var(--shade)}
tr>:first-child{padding-left:.4rem}
.verdict{white-space:nowrap}.good{color:var(--good)}.bad{color:var(--bad)}.open-verdict{color:var(--muted)}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1.5rem 2rem}
.lone{display:grid;gap:.75rem 2rem;align-items:center}
.lone .chart{max-width:30rem}
@media (min-width:52rem){.lone{grid-template-columns:30rem minmax(0,1fr)}.lone .key{flex-direction:column;order:1}}
.chart{display:block;width:100%;height:auto}
.key{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.25rem;padding:0;margin:0 0 .75rem;font-size:.9375rem;line-height:1.3}
.key li{display:flex;align-items:center;gap:.5rem}
.key svg{flex:none;width:34px;height:14px}
pre{font:.875rem/1.5 ui-monospace,Menlo,Consolas,'Liberation Mono',monospace;background:var(--shade);padding:.75rem 1rem;margin:.75rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
.items{max-width:42rem;margin:.75rem 0;padding-left:1.2rem}.items li{margin:.2rem 0}
details{margin:1rem 0}
.brief{max-width:52rem}.brief h2{margin-top:1.75rem;font-size:1.2rem}.brief p,.brief .items,.brief figcaption{max-width:none}
.brief figure{margin:1rem 0}.brief tbody th{min-width:2rem}
summary{cursor:pointer;font-size:.9375rem}
:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
@media (max-width:40rem){
body{font-size:1rem}main{padding:1.5rem 1rem 3rem}
table{font-size:.875rem}th,td{padding:.3rem .45rem}tbody th{min-width:7rem}
tbody th:first-child,thead th:first-child{position:sticky;left:0;background:var(--page)}
tbody th.group{position:static;background:var(--shade)}
}
@media print{
@page{margin:16mm 14mm}@page sheet{margin:12mm 14mm}
:root{color-scheme:light}
html{font-size:10pt}body{font-size:1rem}main{max-width:none;padding:0}nav{display:none}
h2{margin-top:1.5rem;break-after:avoid}
p,figcaption{max-width:none;orphans:3;widows:3}
figcaption{break-inside:avoid;break-after:avoid}
.scroll{overflow:visible;width:auto;background:none}
table{font-size:8pt}th,td{padding:.2rem .4rem}
thead{display:table-header-group}tr,tbody,.chart,pre{break-inside:avoid}
tr:has(>.group){break-after:avoid}
figure:has(.lone){break-inside:avoid}
.panels{grid-template-columns:1fr 1fr}
.lone{grid-template-columns:minmax(0,11cm) 1fr}.lone .key{flex-direction:column;order:1}
tbody th{min-width:0}
details::details-content{content-visibility:visible;block-size:auto}
.brief{font-size:9pt;line-height:1.38}.brief .byline,.brief figcaption,.brief table{font-size:8pt}.brief .summary{font-size:10pt}
.brief h1{font-size:16pt;margin:0 0 .2rem}.brief h2{font-size:10.5pt;margin:.6rem 0 .2rem;padding-top:.3rem}
.brief p,.brief .items,.brief pre{margin:.25rem 0}.brief figure{margin:.4rem 0}.brief figcaption{margin-bottom:.2rem}
.brief{page:sheet}.brief .panels{max-width:14cm}.brief .key{font-size:8pt}
.brief pre{font-size:8pt;padding:.25rem .5rem}.brief .items li{margin:.1rem 0}
}
"""
)
