"""``anechoic bounds``: what the theorems promise for given constants."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from anechoic import bounds as theory
from anechoic.cli.output import show_table

EXAMPLES = "Example: anechoic bounds --diameter 0.1 --lipschitz 39.6 --smoothness 392.5 --rounds 1200 --rho 8"


def command(
    diameter: Annotated[float, typer.Option(help="D of the domain.")] = theory.EXPERIMENT.diameter,
    lipschitz: Annotated[float, typer.Option(help="G of the losses.")] = theory.EXPERIMENT.lipschitz,
    smoothness: Annotated[float, typer.Option(help="L of the losses.")] = theory.EXPERIMENT.smoothness,
    machines: Annotated[int, typer.Option(help="M.")] = theory.EXPERIMENT.machines,
    participants: Annotated[int, typer.Option(help="m, machines a round.")] = theory.EXPERIMENT.participants,
    rounds: Annotated[int, typer.Option(help="T.")] = theory.EXPERIMENT.rounds,
    dimension: Annotated[int, typer.Option(help="d, parameters.")] = theory.EXPERIMENT.dimension,
    rho: Annotated[float, typer.Option(help="The guarantee ρ²/2-zCDP.")] = theory.EXPERIMENT.rho,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Print the right-hand sides of both convergence theorems and of both lower bounds, term by term.

    The defaults are the paper's MNIST experiment at ρ = 4. The lower bounds leave out absolute constants.
    """
    constants = theory.Constants(
        diameter=diameter,
        lipschitz=lipschitz,
        smoothness=smoothness,
        machines=machines,
        participants=participants,
        rounds=rounds,
        dimension=dimension,
        rho=rho,
    )
    found = {
        "noise cancelling (thm:converge)": theory.bound_noise_cancelling(constants),
        "noise cancelling (complete proof)": theory.bound_noise_cancelling(constants, "complete"),
        "trusted server (thm:convergeT)": theory.bound_trusted(constants),
        "lower bound, untrusted server": theory.lower_bound_untrusted(constants),
        "lower bound, trusted server": theory.lower_bound_trusted(constants),
    }
    if as_json:
        print(json.dumps({name: bound._asdict() | {"total": bound.total} for name, bound in found.items()}, indent=2))
        return
    show_table(
        f"Bounds on the excess loss, n = {constants.samples} samples, S = {constants.sensitivity:.4g}",
        ("bound", "optimisation", "statistical", "privacy", "total"),
        [(name, *(f"{value:.4g}" for value in (*bound, bound.total))) for name, bound in found.items()],
        numbers=range(1, 5),
    )
