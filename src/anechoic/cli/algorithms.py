"""``anechoic algorithms``: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from anechoic.algorithms import ALGORITHMS
from anechoic.cli.output import show_table

EXAMPLES = "Example: anechoic algorithms --json"


def command(as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False) -> None:
    """List the algorithms: whom they trust, what they cost, what they guarantee.

    The columns are the name, who is trusted, passes over the data, gradients a sample, guarantee and reference.
    """
    cards = [algorithm.card for algorithm in ALGORITHMS.values()]
    if as_json:
        print(json.dumps([card._asdict() for card in cards], indent=2, ensure_ascii=False))
        return
    head = ("name", "trusts", "passes", "gradients a sample", "guarantee", "reference")
    show_table("Algorithms", head, [tuple(card) for card in cards])
