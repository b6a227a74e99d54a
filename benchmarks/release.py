"""What one release of a large model costs a machine and the server, and where the time goes, beside peers in one run.

Run it with ``make bench-federation``. Every line of the table is a process of its own, so that its peak memory is its
own. A federation of one machine over a real store on disk: each round is one release by a node that is made anew for
it, as a process of Flower's would. The peers do the same gradients in the same process: without privacy, and with
continuous Gaussian noise that is drawn as floats. The last table is the noise alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.memory import peak_memory
from rich.progress import track

from anechoic.engines import machine as machines
from anechoic.federation import Federation
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.noise import NoiseSource, SeededGaussian
from anechoic.privacy.staircase import Sampler, Staircase, exact_noise
from anechoic.problems import Ball, Softmax
from anechoic.protocol import checkpoints, node, store
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.records import Records

DIMENSIONS = (10_000, 1_000_000)
CLASSES, ROUNDS = 10, 6
PARTS = ("gradient and clip", "noise", "pack", "durable write", "open and check", "rest")
Parts = dict[str, float]


class Stopwatch:
    """Adds up the seconds that named functions take, less what they spend in each other."""

    def __init__(self) -> None:
        self.seconds: Parts = defaultdict(float)
        self._inner = [0.0]

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Time a block under a name."""
        began = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            took = time.perf_counter() - began
            self.seconds[name] += took - self._inner.pop()
            self._inner[-1] += took

    def wrap(self, place: Any, attribute: str, name: str) -> None:
        """Time a function wherever it is called by that name."""
        plain = getattr(place, attribute)

        def timed(*args: Any, **others: Any) -> Any:
            with self.of(name):
                return plain(*args, **others)

        setattr(place, attribute, timed)


def setting_of(dimension: int) -> tuple[Softmax, Records]:
    """Return a problem of that many parameters and a record for each round."""
    width = dimension // CLASSES
    rng = np.random.default_rng(0)
    features = rng.random((ROUNDS, width), dtype=np.float32)
    problem = Softmax(width, Ball(0.1), bound=float(np.sqrt(width)), classes=CLASSES)
    return problem, Records(features, rng.integers(0, CLASSES, ROUNDS))


def private(dimension: int, sampler: Sampler) -> dict[str, Any]:
    """Run a federation of one machine and return medians over its releases, the first left out."""
    problem, records = setting_of(dimension)
    federation = Federation(records, np.arange(ROUNDS), np.array([0, ROUNDS]))
    proposal = Proposal(run="bench", machines=1, participants=1, rounds=ROUNDS, rho=1.0)
    watch, source = Stopwatch(), exact_noise(sampler)
    watch.wrap(Softmax, "clipped_sum", "gradient and clip")
    watch.wrap(type(source), "draw", "noise")
    watch.wrap(store, "pack", "pack")
    watch.wrap(node, "pack", "pack")
    watch.wrap(store.Store, "write", "durable write")
    watch.wrap(store.Store, "forget", "durable write")
    watch.wrap(store.Store, "__init__", "open and check")
    watch.wrap(store.Store, "_unpacked", "open and check")
    rows: list[Parts] = []
    closing, sent = [], []
    with tempfile.TemporaryDirectory() as place:
        server, own = Path(place) / "server", Path(place) / "machine"
        with Coordinator(proposal, problem, server) as coordinator:

            def fresh() -> Node:
                return Node(problem, federation.shard(0), own, Policy(rho=1.0, sampler=sampler))

            coordinator.enrol(fresh().enrol(proposal).identity)
            for _ in range(ROUNDS):
                watch.seconds.clear()
                (ask,) = coordinator.questions([0]).values()
                began = time.perf_counter()
                answer = fresh().answer(proposal, ask)
                total = time.perf_counter() - began
                parts = {part: watch.seconds[part] for part in PARTS[:-1]}
                rows.append(parts | {"rest": total - sum(parts.values()), "total": total})
                sent.append(len(answer.message))
                began = time.perf_counter()
                assert coordinator.absorb(0, answer)
                closing.append(time.perf_counter() - began)
        disk = {
            "machine": (own / store.FILE).stat().st_size,
            "server": (server / checkpoints.FILE).stat().st_size,
        }
    seconds = {part: median(row[part] for row in rows[1:]) for part in (*PARTS, "total")}
    wire = {"asked": 8 * dimension * len(ask.query.terms), "sent": int(median(sent))}
    closed = {"server closes": median(closing[1:])}
    return {"seconds": seconds | closed, "wire": wire, "disk": disk, "gib": peak_memory()}


def plain(dimension: int, noise: NoiseSource | None) -> dict[str, Any]:
    """Return what the same gradients cost with no store and no grid, with noise in floats or none."""
    problem, records = setting_of(dimension)
    rule = Proposal(run="bench", machines=1, participants=1, rounds=ROUNDS, rho=1.0).rule(problem)
    rows: list[Parts] = []
    state = rule.start(np.zeros(dimension))
    query = rule.query(state)
    for number in range(ROUNDS):
        watch = Stopwatch()
        began = time.perf_counter()
        with watch.of("gradient and clip"):
            message = problem.clipped_sum(query.terms, records.rows(slice(number, number + 1)), rule.clip)
        if noise is not None:
            with watch.of("noise"):
                message = message + noise.draw(number, 1.0, dimension)
        with watch.of("pack"):
            sent = len(np.asarray(message, np.float64).tobytes())
        total = time.perf_counter() - began
        parts = {part: watch.seconds[part] for part in PARTS[:-1]}
        rows.append(parts | {"rest": total - sum(parts.values()), "total": total})
        state = rule.step(state, np.asarray(message, np.float64), 0.0)
        query = rule.query(state)
    seconds = {part: median(row[part] for row in rows[1:]) for part in (*PARTS, "total")}
    wire = {"asked": 8 * dimension * len(query.terms), "sent": sent}
    return {"seconds": seconds, "wire": wire, "disk": {"machine": 0, "server": 0}, "gib": peak_memory()}


def contestant(name: str, dimension: int) -> dict[str, Any]:
    """Run one line of the table in this process."""
    if name in ("opendp", "staircase"):
        found = private(dimension, "opendp" if name == "opendp" else "staircase")
    else:
        found = plain(dimension, SeededGaussian(0, 0) if name == "float noise" else None)
    return {"name": name, "dimension": dimension, **found}


CONTESTANTS = ("no privacy", "float noise", "staircase", "opendp")


def noise_alone(repeats: int = 5) -> dict[str, float]:
    """Return the microseconds a coordinate of each sampler, over draws that take turns."""
    sigma, size, few = 1e6, 40_000, 2_000
    staircase, opendp, floats = Staircase(), DiscreteGaussian(), SeededGaussian(0, 0)

    def one_by_one() -> None:
        for _ in range(few):
            opendp.draw(1, sigma, 1)

    draws: dict[str, tuple[int, Callable[[], object]]] = {
        "numpy, floats from a seed (neither exact nor safe)": (size, lambda: floats.draw(1, sigma, size)),
        "staircase": (size, lambda: staircase.draw(1, sigma, size)),
        "OpenDP, whole vectors": (size, lambda: opendp.draw(1, sigma, size)),
        "OpenDP, a vector a coordinate": (few, one_by_one),
    }
    times: dict[str, list[float]] = {name: [] for name in draws}
    for repeat in range(repeats + 1):
        for name, (count, draw) in draws.items():
            began = time.perf_counter()
            draw()
            if repeat:
                times[name].append((time.perf_counter() - began) / count * 1e6)
    return {name: median(found) for name, found in times.items()}


def main() -> None:
    """Measure, and write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    work = [(name, dimension) for dimension in DIMENSIONS for name in CONTESTANTS]
    runs = []
    for job in track(work * options.repeats, description="releases"):
        with context.Pool(1) as pool:
            runs.append(pool.apply(contestant, job))
    rows = [_typical([run for run in runs if (run["name"], run["dimension"]) == job]) for job in work]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    found = {
        "machine": machine,
        "load": os.getloadavg()[2],
        "repeats": options.repeats,
        "releases": rows,
        "noise": noise_alone(),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "release.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (options.out / "release.md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


def _typical(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians over the repetitions of one line."""
    first = runs[0]
    seconds = {part: median(run["seconds"][part] for run in runs) for part in first["seconds"]}
    return first | {"seconds": seconds, "gib": median(run["gib"] for run in runs)}


def markdown(found: dict[str, Any]) -> str:
    """Return the page."""
    lines = ["# What a release costs", ""]
    again = f"`python -m benchmarks.release --repeats {found['repeats']} --out results/federation`"
    lines += [
        f"`make bench-federation`, or {again}.",
        f"{found['machine']}, medians of {found['repeats']} processes a line. One",
    ]
    lines += ["machine, one record a release; milliseconds. Absolute times differ between machines and with what else"]
    lines += ["they do; the ratios are what counts. They do not hold the start of the process. The computer's load"]
    lines += [f"average was {found['load']:.1f}.", ""]
    head = ["d", "", *PARTS, "total", "server closes", "MB asked", "MB sent", "MB on disk, machine", "server", "GiB"]
    lines += [f"| {' | '.join(head)} |", f"| ---: | --- |{' ---: |' * (len(head) - 2)}"]
    for row in found["releases"]:
        seconds = [_cell(1e3 * row["seconds"].get(part, 0.0)) for part in (*PARTS, "total", "server closes")]
        sizes = [*row["wire"].values(), *row["disk"].values()]
        cells = [f"{row['dimension']:,}", row["name"], *seconds, *(_cell(size / 1e6) for size in sizes)]
        lines.append(f"| {' | '.join([*cells, _cell(row['gib'])])} |")
    lines += ["", "Noise alone, microseconds a coordinate:", "", "| sampler | µs | times the staircase |"]
    lines += ["| --- | ---: | ---: |"]
    for name, micros in found["noise"].items():
        lines.append(f"| {name} | {micros:.3g} | {micros / found['noise']['staircase']:.3g} |")
    return "\n".join([*lines, ""])


def _cell(value: float) -> str:
    return f"{value:.3g}" if value else ""


if __name__ == "__main__":
    machines.LOG.disabled = True
    main()
