"""``anechoic epsilon``: what a guarantee means, in every currency."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from anechoic.cli.output import show_table
from anechoic.errors import BadInput, positive
from anechoic.privacy.conversions import Route, calibrate, epsilon, rho_for

EXAMPLES = "Examples: anechoic epsilon --rho 1   |   anechoic epsilon --epsilon 2.5 --delta 1e-6 --releases 600"

MEANING = {
    Route.EXACT: "exact, for continuous Gaussian noise",
    Route.WHOLE: "discrete Gaussian noise on a fine grid: a federation's",
    Route.ZCDP: "any ρ²/2-zCDP mechanism, such as discrete Gaussian noise",
    Route.PAPER: "the paper's lem:dp_rdp",
}


def command(
    rho: Annotated[float | None, typer.Option(help="The guarantee ρ²/2-zCDP.")] = None,
    target: Annotated[float | None, typer.Option("--epsilon", help="An ε to calibrate for, in place of --rho.")] = None,
    delta: Annotated[float, typer.Option(help="The δ that goes with ε.")] = 1e-5,
    releases: Annotated[int, typer.Option(help="How many equal releases a record meets, for σ.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Convert between ρ and (ε, δ) by four routes, and say how much noise it takes.

    σ is the noise on each release in units of how far one replaced record moves it.
    """
    if (rho is None) == (target is None):
        raise BadInput("give either --rho or --epsilon")
    if rho is not None:
        positive("rho", rho)
    rows = []
    for route in MEANING:
        spent = rho_for(target, delta, route) if rho is None and target is not None else rho
        assert spent is not None
        reached = epsilon(spent, delta, route)
        sigma = calibrate(reached, delta, releases=releases, route=route)
        rows.append({"route": route.value, "rho": spent, "epsilon": reached, "delta": delta, "sigma": sigma})
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    show_table(
        f"One record replaced, δ = {delta:g}, {releases} release{'s' * (releases > 1)} of sensitivity 1",
        ("route", "ρ", "zCDP", "ε", "σ", "valid for"),
        [
            (
                str(row["route"]),
                f"{row['rho']:.4f}",
                f"{float(row['rho']) ** 2 / 2:.4f}",
                f"{row['epsilon']:.3f}",
                f"{row['sigma']:.4f}",
                meaning,
            )
            for row, meaning in zip(rows, MEANING.values(), strict=True)
        ],
        numbers=range(1, 5),
    )
