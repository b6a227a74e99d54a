"""``anechoic study``: ablations, each a declared grid."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from anechoic.cli.output import show_table
from anechoic.errors import BadInput, unknown
from anechoic.files import write_json
from anechoic.report import reproduction, write, write_pictures
from anechoic.report.study import page
from anechoic.studies import declared
from anechoic.studies.provenance import versions
from anechoic.studies.theory.grids import SEEDS
from anechoic.studies.theory.rates import rates

EXAMPLES = "Examples: anechoic study --list   |   anechoic study epsilon --seeds 2   |   anechoic study my-grid.toml"


RATES = "rates"
RATES_ABOUT = (
    "How the excess loss falls with n, ρ, d, M and m on a problem with known optimum: fitted exponents beside the "
    "theorems', and the theorems' bounds. Takes some minutes; `make study-theory` has all findings."
)


def command(
    name: Annotated[str | None, typer.Argument(help="A study's name, or the path of a TOML file of your own.")] = None,
    show: Annotated[bool, typer.Option("--list", help="List the studies and what each is about.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds a point; by default the study's own number.")] = None,
    out: Annotated[Path, typer.Option(help="Where results go; a stopped study resumes.")] = Path("runs/studies"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Run an ablation and draw it: accuracy on test records, mean and spread over seeds."""
    if show:
        studies = [declared.load(one) for one in declared.names()]
        about = [(one.name, one.title, one.explanation) for one in studies]
        show_table("Studies", ("name", "title", "about"), [*about, (RATES, "Rates", RATES_ABOUT)])
        return
    known = [*declared.names(), RATES]
    if name is None:
        raise BadInput(f"name a study: {', '.join(known)}, or the path of a TOML file")
    if name not in known and not name.endswith(".toml"):
        raise unknown("study", name, [*known, "the path of a .toml file"])
    if name == RATES:
        _rates(out, seeds, as_json)
        return
    study = declared.load(name)
    rows = declared.carry_out_study(study, out, seeds=seeds, jobs=jobs, quiet=as_json)
    words = ["anechoic study", name, *([f"--seeds {seeds}"] if seeds else []), f"--out {out}"]
    axes = {"x": "x", "series": "series", "y": "test accuracy (%)", "x_label": study.x_label, "log_x": study.log_x}
    content = {
        "name": study.name,
        "title": study.title,
        "explanation": study.explanation,
        "command": " ".join(words),
        "created": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "axes": axes | {"y_label": "test accuracy (%)"},
        "rows": rows,
        "notes": [],
        "settings": study.places[0].experiment.settings(),
    }
    write_json(out / f"{study.name}.json", content)
    shown_page = page(content)
    write(shown_page, out / f"{study.name}.html")
    write_pictures(shown_page, out / "pictures" / study.name)
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    shown = [
        (
            row["series"],
            f"{row['x']:g}" if isinstance(row["x"], int | float) else row["x"],
            "" if row["epsilon"] is None else f"{row['epsilon']:.2f}",
            f"{row['mean']:.1f}" + ("" if row["sd"] is None else f" ± {row['sd']:.1f}"),
            f"{row['seconds']:.2f}",
        )
        for row in rows
    ]
    show_table(study.title, ("series", study.x_label, "ε", "accuracy %", "seconds"), shown, numbers=(1, 2, 3, 4))
    print(f"Numbers: {out / f'{study.name}.json'}\nPictures: {out / f'{study.name}.html'}")


def _rates(out: Path, seeds: int | None, as_json: bool) -> None:
    """Run the study of the rates, which is no grid of accuracies but a fit of exponents."""
    entries = rates(SEEDS if seeds is None else seeds, quick=False, quiet=as_json)
    write_json(out / f"{RATES}.json", entries)
    report = {
        "title": "Rates",
        "command": f"anechoic study {RATES} --out {out}",
        "created": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "seeds": f"{entries[0]['seeds']} seeds a point",
        "rates": entries,
    }
    write(reproduction.page(report), out / f"{RATES}.html")
    if as_json:
        print(json.dumps(entries, indent=2, ensure_ascii=False))
        return
    shown = [
        (
            one["quantity"],
            one["algorithm"],
            f"{one['theory']:g}",
            f"{one['fitted']:.3f} ± {one['standard_error']:.3f}",
            one["verdict"],
        )
        for one in entries
    ]
    show_table(
        "Exponents of the excess loss", ("in", "algorithm", "theory", "fitted", "verdict"), shown, numbers=(2, 3)
    )
    print(f"Numbers: {out / f'{RATES}.json'}\nPictures: {out / f'{RATES}.html'}")
