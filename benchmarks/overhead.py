"""What privacy costs over Flower: this package beside plain federated SGD, the same model and batch, in one run.

Run it with ``make bench-federation``. A SuperLink and SuperNodes are started on loopback, with TLS and node keys. Each
round is taken apart along the machine that answered last: until its process was born (a SuperNode asks for messages
every 3 s, and its executor for work every second), until the app was called (the interpreter, Flower, the app's
imports), until the app was done (data, gradients, noise, store), and until the server had the round closed (a SuperNode
looks for the reply twice a second, and Flower's own strategies every 3 s). The ways round the waiting are tried in the
same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from anechoic.flower.launch import Deployment, launch

MACHINES, PARTICIPANTS = 4, 2
DIMENSIONS = (7_850, 1_000_000)
PARTS = ("process born", "app called", "app done", "round closed")
CPU = ("cpu to start", "cpu to answer")
APPS = Path(__file__).with_name("apps")
POLL = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL"
SHIPPED = "as this package launches it"
MODES: dict[str, dict[str, str]] = {
    "as Flower comes": {POLL: "1.0"},
    SHIPPED: {},
    "patched to poll every 0.1 s": {"BENCH_SLEEP": "1"},
    "patched to poll and to fork": {"BENCH_SLEEP": "1", "BENCH_FORK": "1"},
}
"""Under which variables the processes run; the last two change Flower's code as it runs and are here to tell what a
change in Flower would be worth."""

PATCH = """
import os, sys, time

program = next((os.path.basename(word) for word in sys.orig_argv[:2] if "flower-" in word), "")
if os.environ.get("BENCH_SLEEP") and program in ("flower-supernode", "flower-superlink"):
    plain = time.sleep
    time.sleep = lambda seconds: plain(0.1 if seconds in (3, 0.5) else seconds)
if os.environ.get("BENCH_FORK") and program == "flower-superexec":
    import signal
    from flwr.supercore.superexec.executor import subprocess_executor as executor
    from flwr.supernode.runtime.run_clientapp import run_clientapp
    import flwr.clientapp
    import {modules}

    started = executor.SubprocessExecutor.launch

    def launch(self, spec):
        if "client" not in str(spec.task_type):
            return started(self, spec)
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            run_clientapp(runtime_api_address=spec.runtime_api_address, token=spec.token, insecure=spec.insecure)
            os._exit(0)
        return executor.LaunchResult.accepted()

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    executor.SubprocessExecutor.launch = launch
"""

PROJECT = """
[project]
name = "{name}"
version = "1.0.0"

[tool.flwr.app]
publisher = "bench"

[tool.flwr.app.components]
serverapp = "bench.{name}_server:app"
clientapp = "bench.{name}_client:app"

[tool.flwr.app.config]
machines = 0
participants = 0
rounds = 0
dimension = 0

[tool.flwr.app.config.anechoic]
run = ""
algorithm = "noise-cancelling"
machines = 0
participants = 0
rounds = 0
rho = 1.0
server-dir = ""
"""


class Bench:
    """A federation on loopback that runs both apps."""

    def __init__(self, place: Path, dimension: int, deployment: Deployment) -> None:
        self.place, self.dimension, self.deployment = place, dimension, deployment
        self._names = count()

    def run(self, app: str, rounds: int) -> dict[str, Any]:
        """Run one app and return its rounds, taken apart, and what it sent."""
        name = f"{app}-{next(self._names)}"
        values: dict[str, Any] = {"machines": MACHINES, "participants": PARTICIPANTS, "rounds": rounds}
        config = values | {"dimension": self.dimension}
        config |= {f"anechoic.{key}": value for key, value in values.items()}
        config |= {"anechoic.run": name, "anechoic.server-dir": str(self.place / name)}
        for number in range(MACHINES):
            shutil.rmtree(self.place / f"state-{number}", ignore_errors=True)
            (self.place / f"state-{number}").mkdir()
            sampler = "staircase" if "staircase" in app else "opendp"
            policy = f'rho = 1.0\nsampler = "{sampler}"\n'
            (self.place / f"state-{number}" / "policy.toml").write_text(policy)
        submitted = self.deployment.submit(self.place / app.partition(" ")[0], config)
        marks = [line for line in submitted.follow(900) if line.startswith('{"bench"')]
        submitted.check()
        facts = submitted.facts()
        times = [json.loads(mark)["at"] for mark in marks]
        lines = [json.loads(line) for line in (self.place / "trace").read_text(encoding="utf-8").splitlines()]
        own = [line for line in lines if line["run"] == submitted.run_id and line["kind"].startswith("train")]
        spans = list(zip(times[::2], times[1::2], strict=True))
        cpu = {part: median(line[part] for line in own) for part in CPU}
        return {"rounds": [_apart(began, ended, own) for began, ended in spans], "facts": facts, "cpu": cpu}


def _apart(began: float, ended: float, lines: list[dict[str, Any]]) -> dict[str, float]:
    """Return the parts of a round along the machine that was done last."""
    last = max((line for line in lines if began < line["done"] < ended), key=lambda line: float(line["done"]))
    edges = [began, last["born"], last["called"], last["done"], ended]
    parts = {part: after - before for part, before, after in zip(PARTS, edges, edges[1:], strict=False)}
    return parts | {"total": ended - began}


def write_app(place: Path, name: str) -> None:
    """Make the directory of an app."""
    shutil.copytree(APPS, place / name / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    (place / name / "pyproject.toml").write_text(PROJECT.format(name=name))


def measure(mode: str, dimension: int, rounds: int, apps: tuple[str, ...]) -> list[dict[str, Any]]:
    """Start a federation, run the apps in it in turn, and return a line for each."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        rng = np.random.default_rng(0)
        configs = []
        for number in range(MACHINES):
            data = place / f"data-{number}.npz"
            features = rng.random((3 * rounds, dimension // 10), dtype=np.float32)
            np.savez(data, features=features, labels=rng.integers(0, 10, len(features)))
            state = str(place / f"state-{number}")
            configs.append({"state-dir": state, "data": str(data), "trace": str(place / "trace")})
        for name in ("plain", "private"):
            write_app(place, name)
        (place / "site").mkdir()
        (place / "site" / "sitecustomize.py").write_text(PATCH.replace("{modules}", "anechoic.flower"))
        path = os.pathsep.join([str(place / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
        rows = []
        with launch(
            MACHINES, place / "net", node_configs=configs, environment={"PYTHONPATH": path, **MODES[mode]}
        ) as net:
            bench = Bench(place, dimension, net)
            for app in apps:
                short, full = bench.run(app, 1), bench.run(app, 1 + rounds)
                rows.append({"mode": mode, "dimension": dimension, "app": app, **_line(short, full, rounds)})
                print(json.dumps(rows[-1]), flush=True)
        return rows


def _line(short: dict[str, Any], full: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return medians over the rounds past the first, and the bytes by which a longer run exceeds a shorter one."""
    own = full["rounds"][1:]
    seconds = {part: median(found[part] for found in own) for part in (*PARTS, "total")}
    traffic = [found["facts"]["network-traffic"] for found in (short, full)]
    each = PARTICIPANTS * rounds
    # What a machine sends is inbound for the SuperLink.
    sent = (traffic[1]["inbound-bytes"] - traffic[0]["inbound-bytes"]) / each
    received = (traffic[1]["outbound-bytes"] - traffic[0]["outbound-bytes"]) / each
    return {"seconds": seconds, "cpu": full["cpu"], "sent": sent, "received": received, "rounds": len(own)}


def main() -> None:
    """Measure, and write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for dimension in DIMENSIONS:
        for mode in MODES if dimension == DIMENSIONS[0] else (SHIPPED,):
            apps = ("plain", "private") if mode != SHIPPED else ("plain", "private", "private staircase")
            rows += measure(mode, dimension, options.rounds if dimension == DIMENSIONS[0] else 3, apps)
            write(options.out, rows)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Write down what is measured so far."""
    found: dict[str, Any]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    found = {"machine": machine, "load": os.getloadavg()[2], "machines": MACHINES, "participants": PARTICIPANTS}
    found |= {"runs": rows}
    out.mkdir(parents=True, exist_ok=True)
    (out / "overhead.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (out / "overhead.md").write_text(markdown(found), encoding="utf-8")


def markdown(found: dict[str, Any]) -> str:
    """Return the page."""
    lines = ["# What privacy costs over Flower", ""]
    rounds = max(row["rounds"] for row in found["runs"])
    lines += [
        f"`make bench-federation`, or `python -m benchmarks.overhead --rounds {rounds} --out results/federation`."
    ]
    lines += [f"{found['machine']}: {found['machines']} machines on one computer, of which"]
    lines += [f"{found['participants']} take part in a round; TLS and node keys. Medians over rounds; kB a round and"]
    lines += [
        "participant, as the SuperLink counts them. A round is taken apart along the machine that is done last. The",
        f"computer's load average was {found['load']:.1f}: read seconds as ratios, CPU seconds as they are.",
        "",
    ]
    lines += ["| d | Flower | app | s a round | × plain | process born | app called | app done |"]
    lines[-1] += " round closed | CPU s to start | CPU s to answer | kB sent | kB received |"
    lines += ["| ---: | --- | --- |" + " ---: |" * 10]
    plain: dict[Any, float] = {}
    for row in found["runs"]:
        total, where = row["seconds"]["total"], (row["mode"], row["dimension"])
        plain.setdefault(where, total)
        cells = [f"{row['dimension']:,}", row["mode"], row["app"], f"{total:.2f}", f"{total / plain[where]:.2f}"]
        cells += [f"{row['seconds'][part]:.2f}" for part in PARTS]
        cells += [f"{row['cpu'][part]:.2f}" for part in CPU]
        cells += [f"{row['sent'] / 1e3:.1f}", f"{row['received'] / 1e3:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
