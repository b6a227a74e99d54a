"""Speed beside other implementations of the same work, as ratios in one run.

Run it with ``make bench``. The first table is one cell of the paper's Table 1 (noise cancelling, T = 1200, M = 100,
m = 50, d = 7850, MNIST in memory): the product's collective engine beside the same work written in four other ways, and
beside the bare parts of the work. The second table shows how the engine's time grows with M, m, d and T.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.memory import peak_memory
from benchmarks.peers import client_loop, floor, numpy_batched, pfl_local, torch_batched
from benchmarks.peers.job import Job, table_job
from benchmarks.peers.timing import Contestant, Timing, interleaved, ratio
from rich.progress import track

import anechoic
from anechoic.records import Records
from anechoic.studies.experiment import Experiment
from anechoic.studies.experiment import run as run_experiment
from anechoic.studies.planned import planned

REPEATS = 5
ROUNDS = {"client loop": 120, "numpy, batched": 240, "torch, batched": 480, "pfl, stock": 30, "pfl, cancelling": 60}
"""Rounds that are timed of each peer; the product always runs all of them, its preparation and ledger included."""

BARS = {"client loop": 25.0, "torch, batched": 7.0, "pfl, stock": 100.0}
"""How many times faster than a peer the product means to be."""

WITHIN = 2.5
"""How many times the bare parts of the work it may take."""


def ours(job: Job, data: anechoic.Dataset) -> Callable[[int], object]:
    """Return what runs the job for a number of rounds with the collective engine."""
    problem = anechoic.Softmax(
        job.features, anechoic.Ball(job.diameter), bound=float(np.sqrt(job.features)), classes=job.classes
    )
    federation = anechoic.Federation(data.train, job.order, job.offsets)
    trace = anechoic.Trace.of(job.machines, list(job.trace))

    def run(rounds: int) -> object:
        participation = anechoic.Given(trace, job.participants)
        return anechoic.train(problem, federation, participants=participation, rounds=rounds, rho=job.rho).certificate

    return run


def cell(data: anechoic.Dataset) -> dict[str, Any]:
    """Time one cell of Table 1 in every implementation."""
    job = table_job()
    features, labels = data.train.features, data.train.labels
    _ = job.participations, job.records, job.scales  # computed once, before anything is timed
    peers = {
        "client loop": client_loop.run,
        "numpy, batched": numpy_batched.run,
        "torch, batched": torch_batched.run,
        "pfl, stock": pfl_local.run_stock,
        "pfl, cancelling": pfl_local.run_cancelling,
    }
    contestants = [Contestant("anechoic", ours(job, data), job.rounds)]
    for name, peer in peers.items():
        contestants.append(Contestant(name, partial(peer, job, features, labels), ROUNDS[name]))
    bare = [floor.floor(job, features, repeats=1) for _ in range(REPEATS)]
    timings = interleaved(contestants, repeats=REPEATS)
    bare += [floor.floor(job, features, repeats=1) for _ in range(REPEATS)]
    product = timings["anechoic"]
    least = {part: min(found[part] for found in bare) for part in ("gather", "products", "noise")}
    least["total"] = sum(least.values())
    return {
        "rounds a second": {name: timing.median_speed for name, timing in timings.items()},
        "spread": {name: timing.spread for name, timing in timings.items()},
        "times faster than": {name: _ratio(product, timings[name]) for name in peers},
        "bars": BARS,
        "bare parts, seconds": least,
        "seconds": median(product.seconds),
        "times the bare parts": median(product.seconds) / least["total"],
        "within": WITHIN,
    }


def _ratio(product: Timing, peer: Timing) -> dict[str, float]:
    found = ratio(product, peer)
    return {"median": found.median, "lowest": found.lowest, "highest": found.highest}


BASE = {"machines": 10_000, "participants": 50, "rounds": 600, "features": 785}
GROWTH: tuple[dict[str, int], ...] = (
    BASE,
    BASE | {"machines": 100_000},
    BASE | {"machines": 1_000_000},
    BASE | {"participants": 200},
    BASE | {"rounds": 1200},
    BASE | {"rounds": 2400},
    BASE | {"features": 1570},
    BASE | {"features": 3140},
    {"machines": 1_000_000, "participants": 1000, "rounds": 300, "features": 785},
)
"""Settings whose time is shown: one of M, m, T and d grows at a time; last, a million machines."""


def grown(setting: dict[str, int]) -> dict[str, float]:
    """Run one setting in this process; return its seconds and the process's peak memory in GiB."""
    rng = np.random.default_rng(0)
    features = rng.random((5000, setting["features"]), dtype=np.float32)
    population = Records(features, rng.integers(0, 10, 5000))
    federation = anechoic.Federation.sampled(population, setting["machines"], 24, seed=0)
    bound = float(np.sqrt(setting["features"]))
    problem = anechoic.Softmax(setting["features"], anechoic.Ball(0.1), bound=bound, classes=10)
    began = time.perf_counter()
    anechoic.train(
        problem,
        federation,
        participants=setting["participants"],
        rounds=setting["rounds"],
        rho=8.0,
        when_dry="replace",
        engine="collective",
    )
    return {"seconds": time.perf_counter() - began, "gib": peak_memory()}


def planned_run(data: anechoic.Dataset) -> dict[str, Any]:
    """Time a run of which nothing is set, planning included, beside the cell of Table 1, in one run."""
    setting = {"data": "mnist", "machines": 100, "participants": 50, "rho": 1.0}
    cells = partial(ours(table_job(), data), table_job().rounds)
    run_experiment(Experiment.of(planned(setting)))  # so that the data are loaded and scaled
    found: dict[str, list[float]] = {"planned": [], "cell": []}
    for seed in range(REPEATS):
        began = time.perf_counter()
        run_experiment(Experiment.of(planned(setting | {"seed": seed})))
        between = time.perf_counter()
        cells()
        found["planned"].append(between - began)
        found["cell"].append(time.perf_counter() - between)
    return {"seconds": median(found["planned"]), "cells": median(found["planned"]) / median(found["cell"])}


def growth() -> list[dict[str, float]]:
    """Run every setting in a fresh process, so that its peak memory is its own."""
    context = multiprocessing.get_context("spawn")
    rows = []
    for setting in track(GROWTH, description="growth"):
        with context.Pool(1) as pool:
            rows.append(dict(setting) | pool.apply(grown, (dict(setting),)))
    return rows


def markdown(results: dict[str, Any]) -> str:
    """Return the committed table."""
    found, lines = (
        results["cell"],
        ["# Speed", "", f"`make bench`, {results['machine']}, {REPEATS} interleaved repetitions.", ""],
    )
    lines += [
        "One cell of the paper's Table 1: noise cancelling, T = 1200, M = 100, m = 50, d = 7850, MNIST in memory.",
        "Absolute speeds differ between machines; the ratios are what counts.",
        "",
        "| implementation | rounds/s | spread | anechoic is faster by (lowest – highest) | meant to be |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, speed in found["rounds a second"].items():
        times = found["times faster than"].get(name)
        by = "" if times is None else f"{times['median']:.1f}× ({times['lowest']:.1f} – {times['highest']:.1f})"
        bar = f"{BARS[name]:g}×" if name in BARS else ""
        lines.append(f"| {name} | {speed:.0f} | {100 * found['spread'][name]:.0f} % | {by} | {bar} |")
    parts = found["bare parts, seconds"]
    lines += [
        "",
        "The bare parts of the work are "
        f"the gather ({parts['gather']:.3f} s), the matrix products ({parts['products']:.3f} s) and one Gaussian "
        f"vector a round ({parts['noise']:.3f} s), {parts['total']:.3f} s in all at their fastest. "
        f"The whole run takes {found['seconds']:.3f} s, "
        f"{found['times the bare parts']:.2f} times as long (meant to be within {WITHIN}).",
        "",
        "`pfl, stock` is its FedAvg with the local Gaussian mechanism, which does less: one gradient, no cancelling.",
        "",
        f"A run of which nothing is set but ρ = 1 takes {results['planned']['seconds']:.2f} s, planning included, "
        f"{results['planned']['cells']:.1f} times the cell's time in the same run.",
        "",
        "How the collective engine's time grows:",
        "",
        "| M | m | T | d | seconds | peak memory, GiB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in results["growth"]:
        size = f"| {row['machines']:,} | {row['participants']:,} | {row['rounds']:,} | {10 * row['features']:,} "
        lines.append(f"{size}| {row['seconds']:.2f} | {row['gib']:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write ``results.json`` and ``RESULTS.md``."""
    parser = argparse.ArgumentParser(description="Measure the product's speed beside its peers.")
    parser.add_argument("--out", type=Path, default=Path("benchmarks"))
    out = parser.parse_args().out
    results = {
        "machine": f"{multiprocessing.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}",
        "cell": cell(anechoic.mnist()),
        "planned": planned_run(anechoic.mnist()),
        "growth": growth(),
    }
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (out / "RESULTS.md").write_text(markdown(results), encoding="utf-8")
    print(markdown(results))


if __name__ == "__main__":
    main()
