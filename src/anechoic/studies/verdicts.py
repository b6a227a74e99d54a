"""What the numbers say: whether the paper's lie within what one run may give, and which differences are significant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LEVEL = 0.05
"""The p-value below which a difference counts as significant (Welch's t-test, two-sided, corrected after Holm)."""


def verdicts(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Say for each cell whether the paper's single run lies within mean ± 2 sd of ours; None with a single seed.

    >>> cell = {"algorithm": "a", "rho": 4, "participants": 50, "paper_accuracy": 53.8, "seeds": 20}
    >>> verdicts([cell | {"accuracy_mean": 50.0, "accuracy_sd": 5.0}])[0]["within"]
    True
    """
    found = []
    for cell in cells:
        mean, sd = cell["accuracy_mean"], cell["accuracy_sd"]
        low, high = (None, None) if sd is None else (mean - 2 * sd, mean + 2 * sd)
        within = None if low is None or high is None else bool(low <= cell["paper_accuracy"] <= high)
        found.append(
            {key: cell[key] for key in ("algorithm", "rho", "participants", "seeds")}
            | {"paper": cell["paper_accuracy"], "mean": mean, "sd": sd, "low": low, "high": high, "within": within}
        )
    return found


def comparisons(cells: Sequence[dict[str, Any]], first: str, others: Sequence[str]) -> list[dict[str, Any]]:
    """Compare one algorithm's mean accuracy with each other one's in every setting.

    ``significant`` is about our means over seeds. ``paper_significant`` says whether the paper's own gap between two
    single runs is larger than twice what such a gap varies by, judged by our spreads.
    """
    by = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in cells}
    settings = sorted({(cell["rho"], cell["participants"]) for cell in cells})
    found = [
        _compare(by[first, *setting], by[other, *setting])
        for other in others
        for setting in settings
        if (first, *setting) in by and (other, *setting) in by
    ]
    holm(found)
    return found


def holm(rows: Sequence[dict[str, Any]]) -> None:
    """Say of each row with a p-value whether it is significant, corrected after Holm for how many of them there are.

    >>> rows = [{"p_value": 0.01}, {"p_value": 0.03}, {"p_value": None}]
    >>> holm(rows)
    >>> [row.get("significant") for row in rows]
    [True, True, None]
    """
    tested = sorted((row for row in rows if row["p_value"] is not None), key=lambda row: row["p_value"])
    still = True
    for rank, row in enumerate(tested):
        still = still and row["p_value"] <= LEVEL / (len(tested) - rank)
        row["significant"] = still


def _compare(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    row = {
        "rho": one["rho"],
        "participants": one["participants"],
        "first": one["algorithm"],
        "second": two["algorithm"],
        "difference": one["accuracy_mean"] - two["accuracy_mean"],
        "standard_error": None,
        "p_value": None,
        "significant": None,
        "paper_difference": one["paper_accuracy"] - two["paper_accuracy"],
        "paper_significant": None,
    }
    if one["accuracy_sd"] is not None and two["accuracy_sd"] is not None:
        from scipy.stats import ttest_ind_from_stats

        test = ttest_ind_from_stats(
            *(one["accuracy_mean"], one["accuracy_sd"], one["seeds"]),
            *(two["accuracy_mean"], two["accuracy_sd"], two["seeds"]),
            equal_var=False,
        )
        spread = math.hypot(one["accuracy_sd"], two["accuracy_sd"])
        row |= {
            "standard_error": math.hypot(
                one["accuracy_sd"] / math.sqrt(one["seeds"]), two["accuracy_sd"] / math.sqrt(two["seeds"])
            ),
            "p_value": float(test.pvalue),
            "paper_significant": bool(abs(row["paper_difference"]) > 2 * spread),
        }
    return row
