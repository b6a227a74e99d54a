"""The study's results as a file for programs and as a page for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.studies.theory.finding import ALLOWANCE, ERRORS, Finding
from anechoic.studies.theory.grids import TIMES
from anechoic.studies.theory.laws import predicted_noise
from anechoic.studies.theory.limits import bound
from anechoic.studies.theory.measures import Samples

GROUPS = {
    "Statistical term": """
The excess of mu2-sgd on the worst slope, without noise; every record's coordinates are ±G/√d. The theorem has 1/√n
beside 1/T; L ≈ 0 leaves the first alone. On a problem with curvature theory permits any faster decay: there the rule
is 'at most'.""",
    "Privacy term": """
At the theorem's own step and noise, with records that are all alike and L ≈ 0, so that nothing but the privacy term is
left. 'Whole' is the excess of the worst slope; it includes what it costs that the noise forces the step to be small.
'Noise alone' is that minus the excess at the same step without noise. For the untrusted server both are divided by
√(1 + ln T) before the fit. There the bound's inequalities are near to equalities only for slopes between about
√(2κM)/n, from which on the box is crossed, and √(κ/n), above which the gradient drowns the noise; κ = 4S²(1 + ln T)/ρ².
The ratio of the two is √(K/2), K = mT/M being how often a machine is called. So at moderate K the excess is smaller
than the theorem allows, and with growing K it rises towards a constant share of the bound: where K varies along a sweep
(n by rounds or by participants, M) the exponents are off by that, though the bound holds. Two sweeps tell this apart:
one at large K, one at constant K (there M ∝ n, so that √M/n ∝ n^(−1/2)). They were added to test this explanation once
the exponent in n by rounds had been seen to disagree; that one stays as it was declared and as it came out.""",
    "Delayed updates": """
Delayed updates beside mu2-sgd on the same data. Cyclic participation is the paper's 'average case', a pause of M/m
rounds each time. Under uniform participation pauses τ are geometric, and the factor in the variance is
E[τ²]/E[τ] = 2M/m − 1, not M/m: the finding that fits M/m there tests the paper's simplification. L ≈ 0 makes every step
long, so that w_{t+1} follows q_t alone. With small steps (L = 0.3; the excess at the same step without randomness is
taken off) w adds up the q_t of M/m rounds, which different machines sent and whose errors average out: the √(M/m) of
the paper's appendix is then an upper bound only.""",
    "Accumulated noise": """
The noise Y_t in q̃_t and its running sum, which is what moves w; t = 64 … 1024. Fresh noise is a random walk: its sum
has variance ∝ t³. Noise cancelling with σ² ∝ N has Var Y_t = κt/m with κ = 4S²(1 + ln T)/ρ²: no smaller than fresh
noise's, but larger by 1 + ln T. What it gains is that noise is forgotten after M/m rounds, so that the sum has variance
∝ t². With constant σ² it settles at Mσ²/m². 'Measured/predicted' compares with the exact law: no allowance.""",
    "Bounds": """
The largest ratio of the mean excess to the theorem's bound over all settings of this study and all slopes.""",
}


def report(command: str, findings: Sequence[Finding], samples: Samples) -> dict[str, Any]:
    """Return all that a study found and measured, as it is to stand in a JSON file."""
    return {
        "command": command,
        "criterion": (
            f"± is a bootstrap standard error over seeds. 'Agrees' means: no further from the theory than {ERRORS} "
            f"standard errors and {ALLOWANCE} (0 for exact laws and bounds); for '≤', below it with {ERRORS} to spare."
        ),
        "groups": {group: note.strip().replace("\n", " ") for group, note in GROUPS.items()},
        "findings": [finding.as_json() for finding in findings],
        "points": list(points(samples)),
    }


def points(samples: Samples) -> Iterator[dict[str, Any]]:
    """Yield what was measured in every cell: of the worst slope, the excess, its spread over seeds, and the bound."""
    for cell, rows in samples.items():
        setup = {key: value for key, value in cell.setup._asdict().items() if value != math.inf}
        if cell.measure == "growth":
            law = predicted_noise(cell.algorithm, cell.setup, TIMES)
            measured = {"times": TIMES, "noise": digits(rows.mean(axis=0)), "predicted": digits(law)}
            yield {"measure": cell.measure, "algorithm": cell.algorithm, **setup, **measured}
            continue
        names = ("mu2-sgd", cell.algorithm) if cell.measure == "against" else (cell.algorithm,)
        parts = rows.swapaxes(0, 1) if cell.measure == "against" else (rows,)
        for algorithm, part in zip(names, parts, strict=True):
            excess = part[:, 0]
            slope = int(excess.mean(axis=0).argmax())
            limit = bound(cell, algorithm)
            yield {
                "measure": cell.measure,
                "algorithm": algorithm,
                **setup,
                "slope": slope,
                "excess": digits(excess[:, slope].mean()),
                "sd": digits(excess[:, slope].std(ddof=1)),
                "bound": None if limit is None else digits(limit),
            }


def digits(numbers: npt.ArrayLike) -> Any:
    """Return numbers as a file needs them, to six significant digits."""
    return np.vectorize(lambda number: float(f"{number:.6g}"))(numbers).tolist()


def markdown(report: dict[str, Any]) -> str:
    """Return the report, as it stands in its JSON file, as a page with a table for every group."""
    lines = [
        "# The theory beside measurements",
        "",
        f"Made by `{report['command']}`. {report['criterion']}",
    ]
    for group, note in report["groups"].items():
        lines += [
            "",
            f"## {group}",
            "",
            note,
            "",
            "| finding | theory | measured | verdict | seeds | settings |",
            "|---|---|---|---|---|---|",
        ]
        for row in (row for row in report["findings"] if row["group"] == group):
            sign = "≤ " if row["rule"] == "at most" else ""
            lines.append(
                f"| {row['name']} | {sign}{row['theory']:.3g} | {row['fitted']:.3f} ± {row['standard_error']:.3f} "
                f"| {row['verdict']} | {row['seeds']} | {row['settings']} |"
            )
    return "\n".join(lines) + "\n"
