"""Secret sampling beside the plan: ``python -m anechoic.studies.secrets --out results/sampling``, a few minutes.

MNIST, records scaled to norm 1, M = 100, m = 50, under the ε that ρ = 0.25, 0.5 and 1 have at δ = 1e-5. How often a
machine is called and the step are chosen on the even test records with two seeds; what is reported are five other
seeds on the odd ones. So the choice is made in favour of secret sampling, while the plan was frozen without MNIST. But
the plan chooses how many of the 50 machines it asks in a round, and with secret sampling all are asked.
"""

from __future__ import annotations

import argparse
import json
import statistics
import textwrap
from pathlib import Path
from typing import Any

from anechoic.algorithms import Setting
from anechoic.engines import Run
from anechoic.files import write_json, write_whole
from anechoic.planning.rule import CLIP, MOMENTUM, STEP
from anechoic.records import Records
from anechoic.studies.experiment import Experiment, problem_of, run, source_of
from anechoic.studies.planned import planned

SITUATION: dict[str, Any] = {"data": "mnist", "unit_norm": True, "machines": 100, "participants": 50}
RHOS = (0.25, 0.5, 1.0)
CALLS = (8, 16, 24)
HEIGHTS = (8.0, 16.0, 32.0)
PASSES = (1, 4)
TUNING, SEEDS = (100, 101), (0, 1, 2, 3, 4)


def drawn(rho: float, passes: int, calls: int, height: float) -> Experiment:
    """Return a run over secretly drawn records; clip, step and momentum are in the units of the plan's rule."""
    base = Experiment.of(SITUATION)
    problem = problem_of(base, source_of(base).dataset)
    rounds, clip = calls * base.machines // base.participants, CLIP * problem.lipschitz
    step = height * STEP * problem.outputs / problem.smoothness
    return base.with_(
        algorithm="momentum-sgd", strategy="independent", sampling=f"poisson:{passes}", releases=calls, rounds=rounds,
        when_dry="replace", rho=rho, clip=clip, step=step, momentum=MOMENTUM, diameter=4 * step * clip * rounds,
    )  # fmt: skip


def scores(experiment: Experiment, seeds: tuple[int, ...], first: int) -> tuple[list[float], Run]:
    """Return the accuracy in % of every seed on every other test record from ``first``, and the last run."""
    test = source_of(experiment).dataset.test
    half = Records(test.features[first::2], test.labels[first::2])
    found = [run(experiment.with_(seed=seed)) for seed in seeds]
    return [100 * float(each.accuracy(half) or 0.0) for each in found], found[-1]


def row(name: str, passes: int, experiment: Experiment) -> dict[str, Any]:
    """Return what the seeds that nothing was chosen by say of a setting."""
    accuracy, last = scores(experiment, SEEDS, 1)
    setting: Setting = last.algorithm.setting
    return {
        "method": name,
        "passes": passes,
        "target_rho": experiment.rho,
        "epsilon": last.certificate.epsilon(),
        "rho": last.certificate.rho,
        "releases": setting.releases,
        "participants": setting.participants,
        "step": experiment.step,
        "accuracy": accuracy,
        "mean": statistics.fmean(accuracy),
        "deviation": statistics.stdev(accuracy),
    }


def study() -> list[dict[str, Any]]:
    """Return all rows, two for each target and number of passes."""
    rows = []
    for rho in RHOS:
        for passes in PASSES:
            tried = [drawn(rho, passes, calls, height) for calls in CALLS for height in HEIGHTS]
            best = max(tried, key=lambda each: statistics.fmean(scores(each, TUNING, 0)[0]))
            rows.append(row("drawn in secret (Poisson)", passes, best))
            rows.append(row("planned", passes, Experiment.of(planned({**SITUATION, "rho": rho}, passes))))
            print(json.dumps(rows[-2:], ensure_ascii=False), flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    told = (
        "Made by `make sampling`. " + (__doc__ or "").split("\n\n", 1)[1],
        "ε is what the certificate says at δ = 1e-5; ρ is what holds whoever knows the records of each release. For "
        "the plan the two say the same. Accuracy in %, with the standard deviation over seeds.",
    )
    lines = [
        "# Secret sampling beside the plan",
        "",
        textwrap.fill(told[0], 120),
        "",
        textwrap.fill(told[1], 120),
        "",
        "| method | passes | ε | ρ without the secret | releases a machine | machines a round | accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in sorted(rows, key=lambda each: (each["target_rho"], each["passes"], each["method"])):
        lines.append(
            f"| {each['method']} | {each['passes']} | {each['epsilon']:.3f} | {each['rho']:.3f} | {each['releases']} "
            f"| {each['participants']:g} | {each['mean']:.2f} ± {each['deviation']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Carry out the study and write it down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    rows = study()
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "sampling.json", {"rows": rows})
    write_whole(out / "sampling.md", table(rows))


if __name__ == "__main__":
    main()
