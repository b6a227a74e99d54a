"""The page of a plan: what is proposed, what it promises and costs, and what else there would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anechoic.report.page import Code, Column, Figure, Page, Section, Table, Text
from anechoic.report.rows import Bars
from anechoic.report.words import fixed, name, significant

HEAD = ("way to run", "asked", "rounds", "passes", "sent", "received", "noise/signal", "over least", "in limits")
"""The columns of the table of alternatives."""


def page(told: Mapping[str, Any]) -> Page:
    """Return the page for an outlook of :mod:`anechoic.studies.outlook`."""
    return Page(
        title="Plan of a private run",
        byline=f"{told['machines']:,} machines with {told['records']:,} records each; "
        f"{told['parameters']:,} parameters",
        summary=tuple(sentences(told)),
        sections=(
            Section("What else there would be", (picture(told), alternatives(told), Text(caution()))),
            Section(
                "How to run it",
                (
                    Code("anechoic train plan.toml"),
                    Text("With --data, and for a table --label and --bound, if the plan was made from numbers alone."),
                ),
            ),
        ),
    )


def sentences(told: Mapping[str, Any]) -> list[str]:
    """Return the plan in words."""
    settings, costs = told["settings"], told["costs"]
    each = "all records of its shard" if settings["whole_shards"] else f"{_counted(settings['batch'], 'record')}"
    return [
        f"Run {name(settings['algorithm'])} with {settings['strategy']} noise: ask {settings['participants']} machines "
        f"a round, of {told['reached']} that can be reached, for {_counted(settings['rounds'], 'round')}; each machine "
        f"is asked at most {_counted(settings['releases'], 'time')} and uses {each} a message.",
        f"Clip gradients to {significant(settings['clip'])}, step by η = {significant(settings['step'])} with momentum "
        f"{settings['momentum']:g}, in a ball of diameter {significant(settings['diameter'])}; "
        f"{'its own' if settings['schedule'] == 'own' else 'the ' + settings['schedule']} schedule of noise.",
        f"Every machine's messages are ρ = {told['rho']:.4g}, that is {told['zcdp']:.4g}-zCDP and "
        f"(ε = {told['epsilon']:.3f}, δ = {told['delta']:g})-DP, for the replacement of one record.",
        f"Noise in the model is expected to be {significant(told['noise_to_signal'])} of the signal, "
        f"{fixed(told['over_least'], 2)} times the least that could hide what these messages say.",
        f"It takes {_counted(costs['rounds'], 'round')} (about {significant(costs['seconds'])} s), "
        f"uses every record {significant(costs['passes'])} times on average, "
        f"{significant(costs['gradients'])} gradients; a machine "
        f"sends {size(costs['bytes_up'])} and receives {size(costs['bytes_down'])} over the run.",
        "No theorem bounds the excess loss of this run."
        if told["bound"] is None
        else "No theorem bounds the excess loss of this run; for noise cancelling with a record a message, in the "
        f"paper's domain, one does: {significant(told['bound'])}.",
    ]


def picture(told: Mapping[str, Any]) -> Figure:
    """Return the noise-to-signal of every option as bars."""
    return Figure(
        title="Noise in the model, as a share of the signal",
        note="All under the same guarantee. To first order, for one draw of who is asked when.",
        panels=(
            Bars(
                title="Noise to signal by option",
                label="noise / signal",
                rows=tuple((option["name"], option["noise_to_signal"]) for option in told["options"]),
            ),
        ),
    )


def alternatives(told: Mapping[str, Any]) -> Table:
    """Return the options as a table."""
    return Table(
        title="Options under one guarantee",
        note="Bytes are a machine's over the run, on average. 'Over least' is the noise over what no mechanism can "
        "fall below that hides what these messages move the model by.",
        columns=tuple(Column(head, number=0 < place < len(HEAD) - 1) for place, head in enumerate(HEAD)),
        rows=tuple(row(option) for option in told["options"]),
    )


def row(option: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one option."""
    return (
        option["name"],
        str(option["participants"]),
        f"{option['rounds']:,}",
        significant(option["passes"]),
        size(option["bytes_up"]),
        size(option["bytes_down"]),
        significant(option["noise_to_signal"]),
        fixed(option["over_least"], 2),
        "yes" if option["within_limits"] else "no",
    )


def caution() -> str:
    """Return how the table is to be read."""
    return (
        "Noise does not decide alone: a run of few rounds, or one that asks few machines a round whose records differ "
        "much from the others', may learn less with less noise. See docs/choosing.md for what was measured."
    )


def size(count: float) -> str:
    """Return bytes as a reader says them.

    >>> size(900), size(31_400), size(2_500_000)
    ('900 B', '31.4 kB', '2.5 MB')
    """
    for unit, worth in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= worth:
            return f"{significant(count / worth)} {unit}"
    return f"{count:.0f} B"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
