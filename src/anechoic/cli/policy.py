"""``anechoic policy``: what the owner of a machine allows, read as a machine reads it, before any server asks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from anechoic.privacy.conversions import Route, epsilon, zcdp
from anechoic.protocol.policy import Policy

EXAMPLES = "Examples: anechoic policy /etc/anechoic/policy.toml   |   anechoic policy policy.toml --json"


def command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A machine's policy file.")],
    delta: Annotated[
        float | None, typer.Option(help="The δ that goes with ε; by default the policy's, or 1e-5.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Say in words what a machine's policy allows, or what is wrong with it.

    The budget is for all that one store ever lets out, and what the stores that the policy names as earlier ones have
    let out. Any other store over the same records has it once more.
    """
    policy = Policy.read(path)
    if delta is None:
        delta = 1e-5 if policy.delta is None else policy.delta
    budget, reached, left = policy.whole, epsilon(policy.whole, delta, Route.WHOLE), policy.budget
    if as_json:
        told = {"budget": budget, "zcdp": zcdp(budget), "epsilon": reached, "delta": delta, "left": left}
        print(json.dumps({**asdict(policy), **told}))
        return
    lines = {
        "budget": f"ρ = {budget:.4f}, that is {zcdp(budget):.4f}-zCDP and (ε = {reached:.3f}, δ = {delta:g})-DP, for "
        "the replacement of one record",
        "earlier": f"ρ = {left:.4f} of it is left by {', '.join(policy.earlier)}" if policy.earlier else "no stores",
        "runs": "any that proposes itself" if policy.runs is None else ", ".join(policy.runs),
        "clip": "any" if policy.clip is None else f"at most {policy.clip:g}",
        "batch": "any" if policy.batch is None else f"at most {policy.batch} records a release",
        "server": "trusted with messages without noise" if policy.trust_server else "not trusted",
        "witness": "none: a store that was restored from a copy is noticed by an honest server alone"
        if policy.witness is None
        else policy.witness,
        "sampler": policy.sampler,
    }
    for name, text in lines.items():
        print(f"{name:9} {text}")
    print(
        "A store over the same records has the whole budget again unless its policy names the others as earlier ones."
    )
    if policy.runs is None:
        print("No runs are named: every run that is given a new directory may spend the whole budget again.")
