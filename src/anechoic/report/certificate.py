"""The certificate that a machine's owner hands over: one sheet, every word of it computed from a statement."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.page import Block, Code, Column, Figure, Items, Page, Section, Table, Text
from anechoic.report.words import fixed, moment, name, significant

Statement = Mapping[str, Any]

FEW = 40
"""Up to so many releases each is marked in the picture."""


def page(told: Statement, file: str = "certificate.json") -> Page:
    """Return the sheet for a statement of :mod:`anechoic.studies.statement`; ``file`` is where that is as JSON."""
    who = "" if told["identity"] is None else f"machine {told['identity']}, "
    return Page(
        title="Certificate of a simulation" if told["kind"] == "simulation" else "Certificate of privacy",
        byline=f"{who}run “{told['run']}”, {name(str(told['algorithm']))}; issued {moment(told['issued'])}",
        summary=tuple(_summary(told)),
        sections=tuple(_sections(told, file)),
        brief=True,
    )


def _sections(told: Statement, file: str) -> Iterator[Section]:
    if told["private"]:
        yield Section("What that means", tuple(_meaning(told)))
        if told["course"]:
            yield Section("Every release", (_picture(told),))
        yield Section("What it rests on", (Items(tuple(_assumptions(told))),))
    yield Section("How to check it", tuple(_verification(told, file)))


def _summary(told: Statement) -> Iterator[str]:
    releases = told["releases"]
    if told["entrusted"]:
        yield (
            f"This machine sent {_counted(told['entrusted'], 'message')} without noise to a server that is trusted to "
            "add it. Against the server nothing is guaranteed. What others learn stands in the server's certificate."
        )
        return
    if not told["private"]:
        yield "A release went out without noise. Nothing is guaranteed."
        return
    subject = {
        "machine": f"All that this machine has sent, {_counted(releases, 'message')},",
        "server": f"All that the server has let out, {_counted(releases, 'model')},",
        "simulation": f"All that {_seen(told)} has let out",
    }[told["kind"]]
    first = told["epsilon"][1]
    towards = (
        "whoever sees the models; the server itself sees each machine's messages without noise"
        if told["trusted_server"]
        else "whoever sees the messages, the server too, whatever it asks"
    )
    yield (
        f"{subject} is (ε = {_epsilon(first['epsilon'])}, δ = {significant(first['delta'])})-differentially private "
        f"for the replacement of one record. This holds towards {towards}."
    )
    if told["kind"] == "machine":
        yield _beforehand(told)
    if told["drawn"] is not None:
        yield (
            "It counts on a secret: which of its records a machine drew for each release, nobody else knows. Towards "
            f"somebody who does, ρ = {significant(told['rho'], 4)} and what follows from it is all that holds."
        )
    yield (
        "In plain words: somebody knows all records but one, sees everything that was let out, and has to tell which "
        "of two values the last record has. A coin is right in 50 of 100 cases. Nobody, by whatever method, is right "
        f"in more than {_of_hundred(told['best_guess'])} of 100."
    )
    if told["kind"] == "simulation":
        yield (
            "This is a simulation: its noise came from a seed, and who knows the seed can take the noise off. The "
            "figures are those of a run whose noise nobody could draw again; the run itself protects nobody."
        )


def _beforehand(told: Statement) -> str:
    """Say of what kind of server the guarantee is true, and what is true of every other."""
    held = (
        "the budget in its owner's policy (this sheet was made without --policy)"
        if told["budget"] is None
        else f"its owner's budget: (ε = {_epsilon(told['allowed'][1])}, δ = {significant(told['epsilon'][1]['delta'])})"
    )
    return (
        "This is so if when and how often the server asked, and what it said had arrived, did not depend on what it "
        f"was sent. Where it may have, the guarantee is {held}, beyond which the machine sends nothing."
    )


def _meaning(told: Statement) -> Iterator[Block]:
    yield Text(
        "One record replaced: two data sets are neighbours if they hold equally many records and are the same but for "
        "one, whatever the two values of that one are. What is hidden is all that one record says. What is not hidden "
        "is how many records there are, that the machine took part, and what is true of the records as a whole. A "
        "person with k records is protected with kρ in the place of ρ."
    )
    columns = tuple(Column(f"δ = {significant(entry['delta'])}") for entry in told["epsilon"])
    by = {
        "exact": "the exact curve of Gaussian noise (Balle & Wang 2018)",
        "whole": "the exact curve of Gaussian noise (Balle & Wang 2018), which noise of whole numbers on a fine grid "
        "meets but for one part in 14,000 of ρ (docs/theory.md, §10)",
    }[told["route"]]
    title = f"ρ = {significant(told['rho'], 4)}, that is {significant(told['zcdp'], 4)}-zCDP, as ε at several δ"
    if told["drawn"] is not None:
        title = "ε at several δ, as long as nobody knows which records were drawn"
        by = "numerical composition over all that may have been drawn (docs/theory.md, §11)"
    rows = [("ε of all that was let out", *(_epsilon(entry["epsilon"]) for entry in told["epsilon"]))]
    budget = ""
    if told["budget"] is not None:
        spent, whole, left = (significant(told[name], 4) for name in ("rho", "budget", "left"))
        rows.append(("ε of the owner's budget", *map(_epsilon, told["allowed"])))
        budget = f" Of the budget ρ = {whole} is left ρ = {left}, as squares add up: {spent}² + {left}² = {whole}²."
    yield Table(
        title=title,
        columns=(Column("", number=False), *columns),
        rows=tuple(rows),
        note=f"By {by}, rounded up. δ is to be far below one in the number of records.{budget}",
    )


def _picture(told: Statement) -> Figure:
    course: Sequence[Mapping[str, float]] = told["course"]
    numbers, few = [line["release"] for line in course], len(course) <= FEW
    axis = Axis("release", within=(1.0,))
    levels = () if told["budget"] is None else (("the owner's budget", told["budget"]),)
    noise = [line["sigma"] / line["sensitivity"] if line["sensitivity"] else math.nan for line in course]
    panels = (
        Lines(
            title="What has been spent after each release",
            x=axis,
            y=Axis("ρ spent", within=(0.0,)),
            series=(
                Series(name="ρ spent", look=0, x=numbers, y=[line["rho"] for line in course], marks=few, bare=not few),
            ),
            levels=levels,
        ),
        Lines(
            title="Noise that hides each release's records",
            x=axis,
            y=Axis("σ, in what one record may move it", within=(0.0,)),
            series=(Series(name="noise", look=1, x=numbers, y=noise, marks=few, bare=not few),),
        ),
    )
    least = min((value for value in noise if math.isfinite(value)), default=0.0)
    return Figure(
        title="How the guarantee was spent",
        note=f"{_counted(int(numbers[-1]), 'release')}{_of_worst(told)}. The noise of a release was never below "
        f"{significant(least)} times what one record may move it. In the whole ledger "
        f"{_counted(told['records'], 'record')} were used.",
        panels=panels,
    )


def _assumptions(told: Statement) -> Iterator[str]:
    yield (
        "The machine ran this software, unchanged, on its true records, and nobody reads its disk or its memory."
        if told["kind"] == "machine"
        else "The software ran unchanged, and nobody reads the disks or the memory of those who draw the noise."
    )
    if told["kind"] == "simulation":
        yield "The noise is taken for continuous Gaussian noise that nobody can draw again, which it is not."
    else:
        yield (
            "The noise is discrete Gaussian, exact to the bit, from the operating system's entropy, which nobody else "
            "knows."
        )
    written = "" if told["kind"] == "simulation" else ", and every release was written down before it was sent"
    yield (
        "Nothing is assumed about the records, the model or what the server asks: each record's contribution was "
        f"clipped before the noise was added{written}."
    )
    adds = "their ρ² add up" if told["drawn"] is None else "their ε add up, and their δ"
    yield (
        f"It is about this run alone. Where the same records serve several runs, {adds}. When a message was sent, and "
        "whether, is not covered (SECURITY.md)."
    )


def _verification(told: Statement, file: str) -> Iterator[Block]:
    place, sheet = shlex.quote(told["path"]), shlex.quote(file)
    if told["kind"] == "simulation":
        yield Code(f"anechoic certificate {place} --against {sheet}")
    else:
        yield Code(f"anechoic ledger verify {place} --certificate {sheet}")
    proof = "" if told["kind"] == "simulation" else "proves ρ again by two computations, "
    yield Text(
        f"This {proof}holds the ledger against {file}, and prints its figures, to be compared with those above. Each "
        f"of its {_counted(told['chain']['rows'], 'row')} has a digest (SHA-256) that holds the one before, so "
        "that a change to any of them changes the last:"
    )
    yield Code(str(told["chain"]["digest"]))
    versions = ", ".join(f"{software} {version}" for software, version in told["versions"].items())
    yield Text(f"Made by {versions}.")


def _seen(told: Statement) -> str:
    return "the server" if told["trusted_server"] else f"any one of the {told['machines']} machines"


def _of_worst(told: Statement) -> str:
    """Return of whom the picture is, where there are several machines."""
    worst = told["worst_machine"]
    return "" if worst is None else f" that concern machine {worst}, the worst placed of {told['machines']}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _epsilon(value: float) -> str:
    """Return an ε rounded up, so that what is printed holds."""
    digits = 3 if value < 10 else 2 if value < 100 else 1
    return fixed(math.ceil(value * 10**digits - 1e-9) / 10**digits, digits)


def _of_hundred(share: float) -> str:
    """Return a share of hundred rounded up, with decimals only where whole numbers would say too little.

    >>> _of_hundred(0.5988), _of_hundred(0.9999), _of_hundred(1.0)
    ('60', '99.99', '100')
    """
    for digits in (0, 1, 2, 3, 4, 5, 6):
        shown = math.ceil(share * 100 * 10**digits - 1e-9) / 10**digits
        if shown < 100:
            return f"{shown:.{digits}f}"
    return "100"
