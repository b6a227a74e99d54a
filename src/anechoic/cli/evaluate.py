"""``anechoic evaluate``: how good a saved model is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.cli import options as given
from anechoic.data.table import is_table
from anechoic.errors import BadInput
from anechoic.model import Model, load_model
from anechoic.studies.experiment import Experiment, data_of
from anechoic.studies.rundir import MODEL

EXAMPLES = (
    "Examples: anechoic evaluate runs/noise-cancelling-1   |   "
    "anechoic evaluate model.npz --data later.csv --json   |   anechoic evaluate model.npz --data digits"
)


def command(
    model: Annotated[Path, typer.Argument(help="A model.npz, or the directory of a run that has one.")],
    data: given.Data = None,
    unit_norm: given.UnitNorm = None,
    label: given.Label = None,
    features: given.Features = None,
    bound: given.Bound = None,
    lower: given.Lower = None,
    upper: given.Upper = None,
    classes: given.Classes = None,
    scale: given.Scale = None,
    bias: given.Bias = None,
    delimiter: given.Delimiter = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Score a saved model on the test records of its own data, or on other data.

    Of a table other than the one it was trained on, all records are scored. What is not said about the data is as it
    was for training.
    """
    flags = {key: value for key, value in locals().items() if key not in ("model", "as_json")}
    path = model / MODEL if model.is_dir() else model
    loaded = load_model(path)
    experiment = scoring(loaded, given.located(given.settings_of(flags), Path.cwd()))
    test = data_of(experiment).test
    found: dict[str, Any] = {"model": str(path), "data": experiment.data, "records": test.size}
    found |= {"accuracy": None, **loaded.score(test.features, test.labels)}
    if as_json:
        print(json.dumps(found))
        return
    accuracy = found["accuracy"]
    print(f"{found['records']} records of {found['data']}: loss {found['loss']:.4f}", end="")
    print("" if accuracy is None else f", accuracy {100 * accuracy:.2f} %")


def scoring(model: Model, changes: dict[str, Any]) -> Experiment:
    """Return the experiment whose test records are to be scored."""
    try:
        trained = Experiment.of(model.settings)
    except BadInput as error:
        raise BadInput(f"the model does not say how it was trained: {error}") from None
    data = changes.get("data", trained.data)
    if not changes or changes == {"data": trained.data}:
        return trained
    values: dict[str, Any] = {"data": data, "loss": trained.loss, "unit_norm": trained.unit_norm}
    values |= {"width": trained.width, "threshold": trained.threshold, "label_bound": trained.label_bound}
    values |= {"machines": trained.machines, "participants": trained.participants, "diameter": trained.diameter}
    if is_table(data):
        known = {} if trained.table is None else {**trained.settings()["table"], "features": model.description.columns}
        values["table"] = known | {"machine": None, "test": data}
    return Experiment.of(values | changes)
