"""Reports: pure functions from plain data to one self-contained HTML file, with tables and pictures.

:mod:`~anechoic.report.page` holds what a page is made of and writes it; :mod:`~anechoic.report.lines` and
:mod:`~anechoic.report.rows` draw; :mod:`~anechoic.report.reproduction` and :mod:`~anechoic.report.study` say what a
report of each kind shows.
"""

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.page import (
    Code,
    Column,
    Details,
    Figure,
    Page,
    Section,
    Table,
    Text,
    Verdict,
    render,
    write,
    write_pictures,
)
from anechoic.report.rows import Bars, Dot, Dots, Histograms
from anechoic.report.svg import standalone

__all__ = [
    "Axis",
    "Bars",
    "Code",
    "Column",
    "Details",
    "Dot",
    "Dots",
    "Figure",
    "Histograms",
    "Lines",
    "Page",
    "Section",
    "Series",
    "Table",
    "Text",
    "Verdict",
    "render",
    "standalone",
    "write",
    "write_pictures",
]
