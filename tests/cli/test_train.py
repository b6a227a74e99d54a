"""``anechoic train`` and ``evaluate`` from end to end: what is printed, what is written, and what is refused."""

from __future__ import annotations

import errno
import inspect
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anechoic.cli import options, train
from anechoic.model import load_model
from anechoic.privacy.certificate import certify
from anechoic.studies.experiment import Experiment
from anechoic.studies.rundir import read_ledger, read_run

Command = Callable[..., tuple[int, str, str]]

SITUATION = ("--data", "synthetic", "--loss", "logistic", "--machines", "8")
SMALL = (*SITUATION, "--algorithm", "noise-cancelling", "--diameter", "4", "--rho", "2")
FILES = {"config.toml", "metrics.csv", "events.out.tfevents.anechoic", "ledger.csv", "model.npz", "summary.json"}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Write a table of 400 records on four machines, whose label is told by two of three columns."""
    rng = np.random.default_rng(0)
    cells = rng.standard_normal((400, 3))
    sick = np.where(cells[:, 0] - cells[:, 1] > 0, "yes", "no")
    rows = [f"{','.join(map(str, row))},{'nsew'[i % 4]},{sick[i]}" for i, row in enumerate(cells.tolist())]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["a,b,c,clinic,sick", *rows, ""]), encoding="utf-8")
    return path


TABLE = ("--label", "sick", "--machine", "clinic", "--classes", "no,yes", "--bound", "2", "--bias")


def test_a_run_writes_all_its_files_and_prints_one_object(anechoic: Command) -> None:
    code, printed, told = anechoic("train", *SMALL, "--json")
    found = json.loads(printed)
    assert (code, told) == (0, "")
    keys = {"algorithm", "engine", "rounds", "accuracy", "loss", "rho", "epsilon", "delta", "seconds", "settings"}
    assert keys | {"passes", "directory"} <= found.keys()
    assert found["directory"] == "runs/noise-cancelling-1"
    directory = Path(found["directory"])
    assert {path.name for path in directory.iterdir()} == FILES
    assert json.loads((directory / "summary.json").read_text("utf-8")) == found
    assert json.loads(anechoic("train", *SMALL, "--json")[1])["directory"] == "runs/noise-cancelling-2"


def test_the_certificate_follows_from_the_ledger_that_was_written(anechoic: Command) -> None:
    for algorithm in ("noise-cancelling", "trusted-server", "localized-minibatch"):
        anechoic("train", *SMALL, "--algorithm", algorithm, "--out", algorithm)
        summary, ledger = read_run(Path(algorithm))["summary"], read_ledger(Path(algorithm))
        assert ledger is not None
        assert certify(ledger, 8).rho == summary["rho"]
        assert load_model(Path(algorithm) / "model.npz").description.certificate.rho == summary["rho"]


def test_metrics_say_what_was_spent_by_then_and_end_with_the_outcome(anechoic: Command) -> None:
    anechoic("train", *SMALL, "--evaluations", "5", "--out", "run")
    run = read_run(Path("run"))
    points, summary = run["points"], run["summary"]
    assert len(points["round"]) == 5
    assert points["rho"] == sorted(points["rho"])
    assert points["rho"][0] < points["rho"][-1] == summary["rho"]
    assert (points["epsilon"][-1], points["loss"][-1]) == (summary["epsilon"], summary["loss"])
    assert points["round"][-1] == summary["rounds"]


def test_a_runs_config_repeats_it_to_the_bit_from_anywhere(
    anechoic: Command, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert anechoic("train", "--data", "people.csv", *TABLE, "--loss", "logistic", "--rho", "3", "--out", "one")[0] == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert anechoic("train", "../one/config.toml", "--out", "two")[0] == 0
    for name in ("model.npz", "ledger.csv", "config.toml"):
        assert (tmp_path / "one" / name).read_bytes() == Path("two", name).read_bytes()


@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge"])
def test_a_table_is_learned_from_and_scored(loss: str, anechoic: Command, people: Path) -> None:
    method = ("--loss", loss, "--rho", "20", "--step", "0.3", "--diameter", "10", "--clip", "0.5")
    code, printed, told = anechoic("train", "--data", "people.csv", *TABLE, *method, "--json", "--out", "run")
    assert code == 0, told
    found = json.loads(printed)
    assert (found["settings"]["machines"], found["settings"]["participants"]) == (4, 2)
    own = json.loads(anechoic("evaluate", "run", "--json")[1])
    assert (own["records"], own["accuracy"]) == (80, found["accuracy"])
    assert own["accuracy"] > 0.7
    people.rename("later.csv")
    later = json.loads(anechoic("evaluate", "run/model.npz", "--data", "later.csv", "--json")[1])
    assert later["records"] == 400
    assert anechoic("evaluate", "run", "--data", "digits")[0] == 2


@pytest.mark.parametrize("loss", ["least-squares", "huber"])
def test_labels_may_be_numbers(loss: str, anechoic: Command, people: Path) -> None:
    words = ("--features", "a,b", "--label", "c", "--bound", "2", "--machines", "4", "--label-bound", "3")
    code, printed, told = anechoic(
        "train", "--data", "people.csv", *words, "--loss", loss, "--rho", "5", "--diameter", "2", "--json"
    )
    assert code == 0, told
    assert json.loads(printed)["accuracy"] is None


@pytest.mark.parametrize("calls", ["uniform", "bernoulli", "cyclic", "trace"])
def test_every_kind_of_participation_runs(calls: str, anechoic: Command) -> None:
    Path("trace.json").write_text(json.dumps([[0, 1], [2], [], [3, 4, 5]] * 5), encoding="utf-8")
    extra = ("--trace", "trace.json") if calls == "trace" else ("--rounds", "20")
    code, printed, told = anechoic(
        "train", *SMALL, "--calls", calls, *extra, "--when-dry", "replace" if calls == "uniform" else "refuse", "--json"
    )
    assert code == 0, told
    assert json.loads(printed)["rounds"] == 20


@pytest.mark.parametrize(
    "situation",
    [
        SITUATION,
        ("--data", "digits", "--machines", "20"),
        ("--data", "digits", "--split", "by-label", "--machines", "20"),
    ],
)
def test_where_nothing_is_set_all_is_planned_and_the_guarantee_met(
    situation: tuple[str, ...], anechoic: Command
) -> None:
    code, printed, told = anechoic("train", *situation, "--epsilon", "4", "--delta", "1e-5", "--seed", "1", "--json")
    assert code == 0, told
    found = json.loads(printed)
    keys = {"algorithm", "strategy", "rounds", "passes", "clip", "rho", "epsilon", "delta", "accuracy", "seconds"}
    assert keys <= found.keys()
    assert found["algorithm"] == "momentum-sgd"
    assert 3.5 < found["epsilon"] <= 4 * (1 + 1e-9)
    assert 0.8 < found["passes"] <= 1
    assert found["settings"]["unit_norm"]


def test_what_is_set_stays_as_it_is_in_a_plan(anechoic: Command) -> None:
    words = ("--rho", "2", "--rounds", "9", "--momentum", "0.2", "--strategy", "square-root", "--passes", "1")
    found = json.loads(anechoic("train", *SITUATION, *words, "--json")[1])
    assert (found["strategy"], found["settings"]["momentum"]) == ("square-root", 0.2)
    assert 1 <= found["rounds"] <= 9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "say how much privacy: --rho, or --epsilon with --delta"),
        (("--rho", "1", "--epsilon", "2"), "say how much privacy once"),
        (("--delta", "1e-6"), "--delta goes with --epsilon"),
        (("--rho", "1", "--algorithm", "noisy-sgd", "--passes", "2"), "--passes is for runs that are planned"),
        (("--epsilon", "0"), "epsilon must be"),
    ],
)
def test_a_target_that_makes_no_sense_is_one_line(words: tuple[str, ...], sentence: str, anechoic: Command) -> None:
    code, printed, told = anechoic("train", *SITUATION, *words)
    assert (code, printed) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1


CONFIG = """
data = "synthetic"
loss = "logistic"
machines = 8
rho = 2
diameter = 4

[synthetic]
dimension = 3
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("rho = 2", 'rho = "much"', "rho must be a finite number above 0, not 'much'"),
        ("rho = 2", "rho = -2", "rho must be a finite number above 0, not -2"),
        ("rho = 2", "rho = nan", "rho must be a finite number above 0, not nan"),
        ("rho = 2", "roh = 2", "there is no setting 'roh'; did you mean 'rho'?"),
        ("rho = 2", "rho = ", "is not a TOML file"),
        ("machines = 8", "machines = true", "machines must be a whole number of at least 1, not True"),
        ("machines = 8", "machines = 8.0", "machines must be a whole number of at least 1, not 8.0"),
        ("machines = 8", "machines = 8\nparticipants = 9", "9 participants a round are more than the 8 machines"),
        ("machines = 8", "machines = 8\nseed = -1", "seed must be a whole number of at least 0, not -1"),
        ("machines = 8", 'machines = 8\nalgorithm = "sdg"', "there is no algorithm 'sdg'; did you mean 'sgd'?"),
        ("machines = 8", 'machines = 8\nalgorithm = "sgd"', "gives no privacy"),
        ("machines = 8", 'machines = 8\nengine = "fast"', "there is no engine 'fast'"),
        ("machines = 8", 'machines = 8\ntrace = "t.json"', "given together"),
        ('loss = "logistic"', "loss = 3", "there is no loss 3"),
        ('loss = "logistic"', 'loss = "least-squares"', "least-squares needs label_bound"),
        ('"synthetic"', '"sintetic"', "there is no data set 'sintetic'; did you mean 'synthetic'?"),
        ('"synthetic"', '"digits"', "the settings of a synthetic population are for the data 'synthetic'"),
        ('"synthetic"', '"none.csv"', "none.csv needs to be described"),
        ("dimension = 3", "dimensions = 3", "did you mean 'synthetic.dimension'?"),
        ("dimension = 3", "heterogeneity = 1.5", "synthetic.heterogeneity must be a finite number from 0 to 1"),
        ("dimension = 3", "dimension = 300000000", "numbers in memory: set records, support or machines"),
        ("[synthetic]", "[table]", "table.dimension"),
    ],
)
def test_a_bad_setting_is_one_line(old: str, new: str, sentence: str, anechoic: Command) -> None:
    Path("run.toml").write_text(CONFIG.replace(old, new), encoding="utf-8")
    code, printed, told = anechoic("train", "run.toml")
    assert (code, printed) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "none.toml"), "No such file or directory: none.toml"),
        (("train", *SMALL, "--out", "file"), "file"),
        (("train", *SMALL, "--out", "file/run"), "file/run"),
        (("train", *SMALL, "--out", "full"), "full holds other files"),
        (
            ("train", "--data", "none.csv", "--label", "y", "--bound", "1", "--loss", "logistic", "--rho", "1"),
            "No such file",
        ),
        (("train", "--data", "x.csv", "--label", "y", "--lower", "low", "--upper", "1"), "--lower must be a number"),
        (("train", "--data", "x.csv", "--label", "y", "--rho", "1"), "noise is scaled to what is declared"),
        (("evaluate", "none"), "No such file or directory: none"),
        (("evaluate", "file"), "file is not a model that can be used"),
    ],
)
def test_a_bad_path_is_one_line(words: tuple[str, ...], sentence: str, anechoic: Command) -> None:
    Path("file").write_text("something", encoding="utf-8")
    Path("full").mkdir()
    Path("full", "thesis.tex").touch()
    code, printed, told = anechoic(*words)
    assert (code, printed) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1
    assert {path.name for path in Path().iterdir()} == {"file", "full"}


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_not_finite_is_one_line_and_is_not_saved(anechoic: Command) -> None:
    way = ("--algorithm", "noise-cancelling", "--rho", "4", "--step", "1e300")
    code, _, told = anechoic("train", "--data", "digits", "--machines", "10", *way)
    assert code == 2
    assert told == "anechoic: the model of the last round is not finite: choose a smaller step or diameter\n"
    assert not Path("runs/noise-cancelling-1/model.npz").exists()


def test_a_directory_is_used_again_for_the_same_settings_only(anechoic: Command) -> None:
    assert anechoic("train", *SMALL, "--out", "run")[0] == 0
    assert anechoic("train", *SMALL, "--out", "run")[0] == 0
    code, _, told = anechoic("train", *SMALL, "--seed", "5", "--out", "run")
    assert code == 2
    assert "run holds a run with seed = 0, not 5" in told


def test_a_full_disk_is_one_line_and_leaves_no_part_of_a_file(
    anechoic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = []

    def full(descriptor: int) -> None:
        writes.append(descriptor)
        if len(writes) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    code, _, told = anechoic("train", *SMALL, "--out", "run")
    assert code == 2
    assert told.startswith("anechoic: No space left on device: run/")
    assert told.count("\n") == 1
    assert {path.name for path in Path("run").iterdir()} < FILES
    assert tomllib.loads(Path("run/config.toml").read_text("utf-8"))["rho"] == 2


def test_ctrl_c_leaves_what_was_finished(tmp_path: Path) -> None:
    words = ("--records", "8000", "--engine", "machines", "--evaluations", "200", "--out", "run")
    # A job in the background, as these tests may be, is told to ignore Ctrl-C.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heed}; from anechoic.cli import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", program, "train", *SMALL, *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    metrics, ends = tmp_path / "run" / "metrics.csv", time.monotonic() + 30
    while not (metrics.exists() and metrics.read_text("utf-8").count("\n") > 3):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < ends
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    printed, told = child.communicate(timeout=30)
    assert (child.returncode, told) == (130, "")
    assert "Stopped; what was finished is in run" in printed
    run = read_run(tmp_path / "run")
    summary, ledger = run["summary"], read_ledger(tmp_path / "run")
    assert summary["stopped"]
    assert run["points"]["round"][-1] <= summary["rounds"] < summary["planned_rounds"]
    assert ledger is not None
    assert int(ledger.releases.round.max()) == summary["rounds"]
    assert 0 < certify(ledger, 8).rho == summary["rho"] < 2
    assert load_model(tmp_path / "run" / "model.npz").description.certificate.rho == summary["rho"]


def test_synthetic_data_need_no_word_on_the_loss(anechoic: Command) -> None:
    words = ("--machines", "8", "--rho", "2", "--rounds", "4", "--algorithm", "noisy-sgd", "--json")
    code, printed, _ = anechoic("train", "--data", "synthetic", *words)
    assert code == 0
    assert json.loads(printed)["accuracy"] is not None


@pytest.mark.parametrize("command", ["train", "evaluate", "report"])
def test_help_shows_examples(command: str, anechoic: Command) -> None:
    code, printed, _ = anechoic(command, "--help")
    assert code == 0
    assert f"anechoic {command}" in printed[printed.index("Examples:") :]


def test_every_setting_has_a_flag() -> None:
    flags: dict[str, Any] = dict.fromkeys(inspect.signature(train.command).parameters, 1)
    keys = {key.rpartition(".")[2] for key in options.settings_of(flags | dict.fromkeys(options.LISTS, "1"))}
    parts = {"table", "synthetic"}
    assert keys - {"config", "out", "as_json", "epsilon", "delta", "passes"} == {*vars(Experiment())} - parts | {
        *options.PARTS["table"]
    } | {*options.PARTS["synthetic"]}


@pytest.mark.parametrize(("algorithm", "says"), [("noisy-sgd", True), ("sgd", False)])
def test_a_simulation_says_that_it_protects_nobody(algorithm: str, says: bool, anechoic: Command) -> None:
    words = ["--data", "digits", "--unit-norm", "--diameter", "20", "--machines", "4", "--algorithm", algorithm]
    _, out, _ = anechoic("train", *words, "--rounds", "2", *(["--rho", "2"] if says else []), "--out", "run")
    assert ("protects nobody" in out) == says
    assert anechoic("report", "run")[0] == 0
    assert ("protects nobody" in Path("run", "report.html").read_text("utf-8")) == says
