"""Declared grids: a study is a TOML file, the product's own beside this one and a user's anywhere.

A file has ``title``, ``explanation``, ``seeds``, ``x`` and ``x_label`` (what stands on the horizontal axis), and says
what is run: the settings in ``[base]``, once for every series and every point. ``[vary]`` lists the values of one
setting as the points; ``[[points]]`` gives each point a name ``x`` and settings of its own. Each ``[[series]]`` has a
``label`` and settings. A point may give ``epsilon`` (at δ = 1e-5) in place of ``rho``; algorithms without privacy take
no notice of either.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from anechoic.algorithms import find
from anechoic.errors import BadInput, brief, unknown, whole
from anechoic.privacy.conversions import epsilon, rho_for
from anechoic.studies.experiment import Experiment
from anechoic.studies.grid import carry_out, key

KEYS = ("title", "explanation", "seeds", "x", "x_label", "log_x", "base", "vary", "points", "series")
DELTA = 1e-5


class Place(NamedTuple):
    """One mark of the picture: a series' label, where it stands on the horizontal axis, and what is run."""

    series: str
    x: float | str
    experiment: Experiment


@dataclass(frozen=True, eq=False)
class Study:
    """A grid of experiments with what the picture needs to know."""

    name: str
    title: str
    explanation: str
    seeds: int
    x: str
    x_label: str
    log_x: bool
    places: tuple[Place, ...]


def names() -> list[str]:
    """Return the names of the product's own studies.

    >>> "participation" in names()
    True
    """
    return sorted(
        entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if entry.name.endswith(".toml")
    )


def load(name: str) -> Study:
    """Return the product's study of that name, or the one in the TOML file of that path.

    >>> load("participation").seeds
    3
    >>> load("participatoin")
    Traceback (most recent call last):
    anechoic.errors.BadInput: there is no study 'participatoin'; did you mean 'participation'? There are: ...
    """
    if name.endswith(".toml"):
        path = Path(name)
        return parse(path.stem, path.read_text(encoding="utf-8"))
    if name not in names():
        raise unknown("study", name, names())
    return parse(name, files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Study:
    """Return the study that a TOML text declares, or refuse it with a sentence."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the study {name!r} is not TOML: {brief(error)}") from None
    for given in content:
        if given not in KEYS:
            raise unknown("key of a study", given, KEYS)
    for needed in ("title", "x", "series"):
        if needed not in content:
            raise BadInput(f"the study {name!r} has no {needed!r}")
    return Study(
        name=name,
        title=str(content["title"]),
        explanation=" ".join(str(content.get("explanation", "")).split()),
        seeds=whole("seeds", content.get("seeds", 5)),
        x=str(content["x"]),
        x_label=str(content.get("x_label", content["x"])),
        log_x=bool(content.get("log_x", False)),
        places=tuple(_places(name, content)),
    )


def _places(name: str, content: Mapping[str, Any]) -> Iterator[Place]:
    points = [dict(point) for point in _tables(name, content, "points")]
    vary, base = content.get("vary", {}), content.get("base", {})
    if not (isinstance(vary, dict) and isinstance(base, dict) and all(isinstance(v, list) for v in vary.values())):
        raise BadInput(f"the study {name!r} must have tables as [base] and [vary], and lists of values in [vary]")
    for setting, values in vary.items():
        points += [{"x": value, setting: value} for value in values]
    if not points:
        raise BadInput(f"the study {name!r} has no points: give a [vary] list or [[points]]")
    if not all("x" in point for point in points):
        raise BadInput(f"the study {name!r} has a point that does not say its x")
    for series in _tables(name, content, "series"):
        for point in points:
            settings = {**base, **point, **series}
            label, x = settings.pop("label", settings.get("algorithm", "")), settings.pop("x")
            if "epsilon" in settings:
                settings["rho"] = rho_for(settings.pop("epsilon"), DELTA)
            if find(settings.get("algorithm", "noise-cancelling")).noise_by is None:
                settings.pop("rho", None)
            yield Place(str(label), x, Experiment.of(settings))


def _tables(name: str, content: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = content.get(key, [])
    if not (isinstance(found, list) and all(isinstance(entry, dict) for entry in found)):
        raise BadInput(f"the study {name!r} must give its {key} as tables, [[{key}]]")
    return found


def carry_out_study(
    study: Study, directory: Path, *, seeds: int | None, jobs: int, quiet: bool
) -> list[dict[str, Any]]:
    """Run what is missing of a study and return a row for each of its marks: mean and spread of the accuracy in %."""
    count = study.seeds if seeds is None else seeds
    seeded = {place: [place.experiment.with_(seed=seed) for seed in range(count)] for place in study.places}
    wanted = list({key(one): one for ones in seeded.values() for one in ones}.values())
    finished = carry_out(wanted, directory / f"{study.name}.jsonl", jobs=jobs, title=study.title, quiet=quiet)
    found = {key(one.experiment): one.outcome for one in finished}
    rows = []
    for place, experiments in seeded.items():
        outcomes = [found[key(experiment)] for experiment in experiments]
        values = [100 * outcome["accuracy"] for outcome in outcomes]
        rho = place.experiment.rho
        rows.append(
            {
                "series": place.series,
                "algorithm": place.experiment.algorithm,
                "x": place.x,
                "rho": rho,
                "epsilon": None if rho is None else epsilon(rho, DELTA),
                "mean": statistics.fmean(values),
                "sd": statistics.stdev(values) if len(values) > 1 else None,
                "seeds": count,
                "rounds": outcomes[0]["rounds"],
                "seconds": statistics.fmean(outcome["seconds"] for outcome in outcomes),
            }
        )
    return rows
