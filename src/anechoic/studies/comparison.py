"""A comparison: several algorithms under one guarantee and one budget, each tuned over the same grid, over seeds.

Settings are chosen on other data at the same level of noise, so that nothing is learnt from the records compared on; or
on those records themselves, and then the report says so.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from anechoic.errors import AnechoicError, BadInput, positive
from anechoic.files import write_json
from anechoic.planning.costs import Costs, Limits
from anechoic.planning.situation import Situation
from anechoic.privacy.conversions import epsilon
from anechoic.settings import Count, Positive, check
from anechoic.studies.contestants import CLIPS, CONTESTANTS, STEPS, TRIES, Contestant, contestant, tries, why_not
from anechoic.studies.experiment import Experiment, federation_of, outcome, problem_of, source_of
from anechoic.studies.grid import carry_out, key
from anechoic.studies.provenance import versions
from anechoic.studies.verdicts import holm

DELTA = 1e-5
RHOS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0)
PROXY = "digits"
TITLES = {"mnist": "MNIST", "digits": "the digits"}
LEAST = 14
"""How many records a machine has at least where settings are tried on the proxy, with fewer machines if need be."""

TRYING_SEEDS = 1000
"""From where the seeds of tries are counted, so that none is used again."""

COSTS = ("rounds", "gradients", "bytes")

TunedOn = Literal["digits", "data"]
Split = Literal["iid", "by-label"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared.

    Parameters
    ----------
    data, split, machines, participants
        As in an experiment; ``participants`` is how many machines can be reached in a round. Records have norm 1, and
        shards are equal, for only some contestants can be told what to do with others.
    rhos : tuple of float
        The guarantees.
    budget : Limits
        Rounds, passes and bytes that no run exceeds.
    seeds, tuning_seeds : int
        Runs of each contestant at each ρ, and of each of its tries.
    tuned_on : {'digits', 'data'}
        Where settings are chosen: on scikit-learn's digits at the same level of noise, or on the data themselves.
    contestants : tuple of str
        By their names; the first is the one that others are held against.
    """

    data: str = "mnist"
    split: Split = "iid"
    machines: Count = 100
    participants: Count = 50
    rhos: tuple[Positive, ...] = RHOS
    budget: Limits = field(default_factory=lambda: Limits(rounds=200, passes=8))
    seeds: Count = 10
    tuning_seeds: Count = 2
    tuned_on: TunedOn = "digits"
    contestants: tuple[str, ...] = tuple(CONTESTANTS)

    def __post_init__(self) -> None:
        check(self)
        for name in self.contestants:
            contestant(name)
        if len(set(self.contestants)) < max(2, len(self.contestants)):
            raise BadInput(f"name at least two contestants, each once, not {', '.join(self.contestants)}")
        self.base(self.data, self.rhos[0])

    def base(self, data: str, rho: float) -> Experiment:
        """Return the experiment of which only the contestant's own settings are left open."""
        return Experiment(
            data=data,
            unit_norm=True,
            machines=self.machines,
            participants=self.participants,
            split=self.split,
            rho=positive("ρ", rho),
        )

    @property
    def on_itself(self) -> bool:
        """Whether settings are chosen on the very records that are compared on."""
        return self.tuned_on == "data" or self.data == PROXY


def situation_of(base: Experiment) -> Situation:
    """Return the situation of an experiment, by its smallest shard."""
    source, federation = source_of(base), federation_of(base)
    assert base.rho is not None
    return Situation.of(
        problem_of(base, source.dataset),
        machines=base.machines,
        participants=base.participants,
        records=max(1, int(federation.sizes.min())),
        rho=base.rho,
    )


def proxy_of(base: Experiment, level: float) -> Experiment:
    """Return the experiment on the proxy at this level of noise (:attr:`Situation.noise`).

    A proxy with fewer records gets a larger ρ, so that the noise counts for as much there.
    """
    records = source_of(base.with_(data=PROXY, machines=1, participants=1)).dataset.train.size
    machines = min(base.machines, records // LEAST)
    participants = max(1, round(base.participants * machines / base.machines))
    proxy = base.with_(data=PROXY, machines=machines, participants=participants, rho=1.0)
    return proxy.with_(rho=situation_of(proxy).noise / level)


def attempt(experiment: Experiment) -> dict[str, Any]:
    """Carry out an experiment; one that is refused has come last, and says why."""
    try:
        found = outcome(experiment)
    except AnechoicError as error:
        return {"accuracy": None, "refused": str(error)}
    return found if math.isfinite(found["loss"]) else {"accuracy": None, "refused": "the model diverged"}


def compare(comparison: Comparison, directory: Path, *, jobs: int, command: str, quiet: bool = False) -> dict[str, Any]:
    """Try, choose and run what is missing, write ``comparison.json``, and return it."""
    named = [contestant(name) for name in comparison.contestants]
    bases = {rho: comparison.base(comparison.data, rho) for rho in comparison.rhos}
    situations = {rho: situation_of(base) for rho, base in bases.items()}
    first = situations[comparison.rhos[0]]
    reasons = {one.name: why_not(one, first, comparison.budget) for one in named}
    taking = [one for one in named if reasons[one.name] is None]
    if len(taking) < 2:
        raise BadInput(
            "fewer than two contestants can take part: " + "; ".join(f"{n}: {r}" for n, r in reasons.items())
        )
    places = [(one, rho) for rho in comparison.rhos for one in taking]
    tried = _tried(comparison, places, bases, situations, directory, jobs, quiet)
    chosen, finals = {}, {}
    for one, rho in places:
        place = (one.name, rho)
        options = tries(one, situations[rho], comparison.budget)
        chosen[place] = best(tried[place])
        settings = options[chosen[place]]
        finals[place] = [bases[rho].with_(**settings, seed=seed) for seed in range(comparison.seeds)]
    wanted = list({key(one): one for ones in finals.values() for one in ones}.values())
    finished = carry_out(
        wanted, directory / "runs.jsonl", jobs=jobs, title="The chosen settings", work=attempt, quiet=quiet
    )
    found = {key(one.experiment): one.outcome for one in finished}
    rows = [
        _row(one, situations[rho], finals[one.name, rho], found, tried[one.name, rho], chosen[one.name, rho])
        for one, rho in places
    ]
    mark_frontiers(rows)
    report = {
        "title": f"Private algorithms on {TITLES[comparison.data]}, compared under one guarantee",
        "command": command,
        "created": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "seeds": f"{comparison.seeds} a contestant and ρ, and {comparison.tuning_seeds} a try",
        "reference": taking[0].name,
        "tries": TRIES,
        "grid": {"steps": STEPS, "clips": CLIPS, "batches": 2},
        "tuned_on": comparison.data if comparison.on_itself else PROXY,
        "on_itself": comparison.on_itself,
        "left_out": [{"name": name, "why": why} for name, why in reasons.items() if why is not None],
        "rows": rows,
        "comparisons": held_against(rows, taking[0].name),
        "settings": asdict(comparison),
    }
    write_json(directory / "comparison.json", report)
    return report


Place = tuple[str, float]


def _tried(
    comparison: Comparison,
    places: Sequence[tuple[Contestant, float]],
    bases: Mapping[float, Experiment],
    situations: Mapping[float, Situation],
    directory: Path,
    jobs: int,
    quiet: bool,
) -> dict[Place, list[float | None]]:
    """Return the mean accuracy of every try, None where one was refused; what has one try needs none."""
    seeds = range(TRYING_SEEDS, TRYING_SEEDS + comparison.tuning_seeds)
    experiments: dict[Place, list[list[Experiment]]] = {}
    for one, rho in places:
        base, situation = bases[rho], situations[rho]
        if not comparison.on_itself:
            base = proxy_of(base, situation.noise)
            situation = situation_of(base)
        options = [] if one.frozen else tries(one, situation, comparison.budget)
        experiments[one.name, rho] = [[base.with_(**option, seed=seed) for seed in seeds] for option in options]
    every = {key(one): one for options in experiments.values() for ones in options for one in ones}
    finished = carry_out(
        list(every.values()), directory / "tries.jsonl", jobs=jobs, title="Tries", work=attempt, quiet=quiet
    )
    found = {key(one.experiment): one.outcome["accuracy"] for one in finished}
    return {
        place: [_mean([found[key(one)] for one in ones]) for ones in options] or [None]
        for place, options in experiments.items()
    }


def best(accuracies: Sequence[float | None]) -> int:
    """Return the place of the highest accuracy, the first of equals; 0 where every try was refused.

    >>> best([0.5, None, 0.7, 0.7])
    2
    """
    return max(range(len(accuracies)), key=lambda place: -1.0 if (a := accuracies[place]) is None else a)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def _row(
    one: Contestant,
    situation: Situation,
    experiments: Sequence[Experiment],
    found: Mapping[str, Mapping[str, Any]],
    tried: Sequence[float | None],
    choice: int,
) -> dict[str, Any]:
    """Return what came of a contestant at one ρ; no figures where a run was refused, and then why."""
    experiment, outcomes = experiments[0], [found[key(experiment)] for experiment in experiments]
    strategy = experiment.strategy
    row: dict[str, Any] = {
        "contestant": one.name,
        "algorithm": one.algorithm,
        "strategy": strategy,
        "trusting": one.trusting,
        "rho": situation.rho,
        "epsilon": epsilon(situation.rho, DELTA),
        "tries": 0 if one.frozen else len(tried),
        "tried_accuracy": None if (accuracy := tried[choice]) is None else 100 * accuracy,
        "participants": experiment.participants,
        "batch": None if one.rereads else experiment.batch,
        "clip": experiment.clip,
        "step": experiment.step,
        "diameter": experiment.diameter,
        "seeds": len(outcomes),
        "mean": None,
        "sd": None,
    }
    why = next((outcome["refused"] for outcome in outcomes if outcome["accuracy"] is None), None)
    if why is not None:
        return row | {"refused": why}
    values = [100 * outcome["accuracy"] for outcome in outcomes]
    rounds, gradients = outcomes[0]["rounds"], statistics.fmean(outcome["gradients"] for outcome in outcomes)
    costs = Costs.of(situation, experiment.participants, rounds, 1, one.points)
    return row | {
        "mean": statistics.fmean(values),
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "accuracies": values,
        "rounds": rounds,
        "gradients": gradients,
        "passes": gradients / one.points / source_of(experiment).dataset.train.size,
        "bytes": costs.bytes_up + costs.bytes_down,
        "seconds": statistics.fmean(outcome["seconds"] for outcome in outcomes),
        "proven_rho": max(outcome["rho"] for outcome in outcomes),
    }


def mark_frontiers(rows: Sequence[dict[str, Any]]) -> None:
    """Note in each row on which frontiers it is: nobody who trusts as little is as good for less or better.

    >>> rows = [{"rho": 1.0, "trusting": False, "mean": m, "rounds": r, "gradients": 1, "bytes": 1}
    ...         for m, r in ((80.0, 10), (79.0, 5), (78.0, 7))]
    >>> mark_frontiers(rows)
    >>> [row["frontiers"] for row in rows]
    [['rounds', 'gradients', 'bytes'], ['rounds'], []]
    """
    for row in rows:
        row["frontiers"] = []
        if row["mean"] is None:
            continue
        rivals = [
            other
            for other in rows
            if other["rho"] == row["rho"] and other["mean"] is not None and other["trusting"] <= row["trusting"]
        ]
        for cost in COSTS:
            beaten = any(
                other["mean"] >= row["mean"]
                and other[cost] <= row[cost]
                and (other["mean"] > row["mean"] or other[cost] < row[cost])
                for other in rivals
            )
            if not beaten:
                row["frontiers"].append(cost)


def held_against(rows: Sequence[Mapping[str, Any]], reference: str) -> list[dict[str, Any]]:
    """Hold every contestant against one at each ρ: Welch's t-test over seeds, corrected after Holm for all of them."""
    by = {(row["contestant"], row["rho"]): row for row in rows}
    found = []
    for (name, rho), row in by.items():
        first = by[reference, rho]
        if name == reference or row["mean"] is None or first["mean"] is None:
            continue
        entry = {"rho": rho, "contestant": name, "trusting": row["trusting"]}
        entry |= {"difference": row["mean"] - first["mean"], "standard_error": None, "p_value": None}
        entry["significant"] = None
        if row["sd"] is not None and first["sd"] is not None:
            entry["standard_error"] = math.hypot(
                row["sd"] / math.sqrt(row["seeds"]), first["sd"] / math.sqrt(first["seeds"])
            )
            if entry["standard_error"] > 0:
                from scipy.stats import ttest_ind_from_stats

                sides = [(one["mean"], one["sd"], one["seeds"]) for one in (row, first)]
                entry["p_value"] = float(ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue)
        found.append(entry)
    holm(found)
    return found
