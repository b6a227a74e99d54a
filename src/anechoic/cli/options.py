"""The settings of an experiment as flags: what the commands that run or score one share."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.data.table import TableForm, is_table
from anechoic.errors import BadInput, brief
from anechoic.privacy.conversions import rho_for
from anechoic.privacy.noise import ORDER
from anechoic.studies.experiment import Experiment, source_of
from anechoic.studies.planned import planned
from anechoic.studies.rundir import DELTA
from anechoic.studies.sources import SYNTHETIC, Synthetic

Data = Annotated[str | None, typer.Option(help="mnist, digits, synthetic, or the path of a .csv or .parquet file.")]
UnitNorm = Annotated[bool | None, typer.Option("--unit-norm/--own-norm", help="Scale each record to norm 1 first.")]
Label = Annotated[str | None, typer.Option(help="Table: the column of labels.")]
Features = Annotated[
    str | None, typer.Option(help="Table: the columns of features, with commas between; by default all others.")
]
Bound = Annotated[
    float | None, typer.Option(help="Table: norm to which longer records are scaled down. Declared, never measured.")
]
Lower = Annotated[
    str | None, typer.Option(help="Table: limit below which cells are clipped: one, or one a column, with commas.")
]
Upper = Annotated[str | None, typer.Option(help="Table: limit above which cells are clipped, likewise.")]
Classes = Annotated[
    str | None, typer.Option(help="Table: all labels in the order of the classes, with commas between.")
]
Scale = Annotated[
    bool | None, typer.Option("--scale/--no-scale", help="Table: stretch each column's limits to −1 and 1.")
]
Bias = Annotated[bool | None, typer.Option("--bias/--no-bias", help="Table: add a column of ones.")]
Delimiter = Annotated[str | None, typer.Option(help="Table: what stands between the cells of a CSV file.")]

PARTS = {
    "table": [field.name for field in fields(TableForm)],
    "synthetic": [field.name for field in fields(Synthetic)],
}
LISTS = {"features": str, "classes": str, "lower": float, "upper": float}


def settings_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given as settings, by the names that they have in a file.

    >>> settings_of({"rho": 4.0, "label": "sick", "classes": "no, yes", "lower": "0", "clip": None})
    {'rho': 4.0, 'table.label': 'sick', 'table.classes': ['no', 'yes'], 'table.lower': 0.0}
    """
    homes = {name: f"{part}.{name}" for part, names in PARTS.items() for name in names}
    return {homes.get(name, name): _listed(name, value) for name, value in flags.items() if value is not None}


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file; paths in it are relative to where it lies."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not a TOML file: {brief(error)}") from None
    return located(values, path.parent)


def located(values: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Return settings in which every path is absolute."""
    found = dict(values)
    for key in ("data", "trace", "test", "table.test"):
        value = found.get(key)
        if isinstance(value, str) and (key != "data" or is_table(value)):
            found[key] = str((directory / Path(value).expanduser()).resolve())
    if isinstance(found.get("table"), Mapping):
        found["table"] = located(found["table"], directory)
    return found


def experiment_of(config: Path | None, flags: Mapping[str, Any]) -> Experiment:
    """Return the experiment of a file and flags, of which the flags win."""
    return Experiment.of(values_of(config, flags))


def planned_of(config: Path | None, flags: Mapping[str, Any], passes: int | None = None) -> Experiment:
    """Return the same, with everything planned that is not set if no algorithm is named."""
    values = values_of(config, private(flags))
    if "algorithm" in values:
        if passes is not None:
            raise BadInput("--passes is for runs that are planned: leave out the algorithm, or leave out the passes")
        return Experiment.of(values)
    return Experiment.of(planned(values, 1 if passes is None else passes))


def private(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags with ε and δ turned into the ρ that meets them.

    >>> round(private({"epsilon": 2.0, "delta": None, "seed": 1})["rho"], 4)
    0.5016
    """
    found = {key: value for key, value in flags.items() if key not in ("epsilon", "delta")}
    epsilon, delta = flags.get("epsilon"), flags.get("delta")
    if epsilon is None and delta is not None:
        raise BadInput("--delta goes with --epsilon")
    if epsilon is not None:
        if found.get("rho") is not None:
            raise BadInput("say how much privacy once: --rho, or --epsilon with --delta")
        if found.get("sampling", ORDER) not in (None, ORDER) and delta not in (None, DELTA):
            raise BadInput(f"noise over secretly drawn records is fitted at δ = {DELTA:g}: leave --delta out")
        found["rho"] = rho_for(epsilon, DELTA if delta is None else delta)
    return found


def values_of(config: Path | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a file and flags, of which the flags win.

    Where the table names the machines, they need not be counted by hand; half of the machines take part in a round
    where nothing else is said, and the loss of synthetic data is the logistic one, for they have two labels.
    """
    values = ({} if config is None else read_config(config)) | located(settings_of(flags), Path.cwd())
    if values.get("data") == SYNTHETIC:
        values.setdefault("loss", "logistic")
    table = values.get("table")
    named = "table.machine" in values or (isinstance(table, Mapping) and "machine" in table)
    if named and "machines" not in values:
        values["machines"] = len(source_of(Experiment.of(values | {"machines": 1, "participants": 1})).machines)
    machines = values.get("machines")
    if "participants" not in values and isinstance(machines, int) and machines > 0:
        values["participants"] = max(1, machines // 2)
    return values


def _listed(name: str, value: Any) -> Any:
    """Return what a flag with commas lists; limits are numbers, and one is one for all columns."""
    if name not in LISTS:
        return value
    items = [item.strip() for item in value.split(",")]
    if LISTS[name] is str:
        return items
    try:
        numbers = [float(item) for item in items]
    except ValueError:
        raise BadInput(f"--{name} must be a number, or several with commas between, not {value!r}") from None
    return numbers[0] if len(numbers) == 1 else numbers
