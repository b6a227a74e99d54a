"""Made-up results with the shape and the size of real ones, for every section of a report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anechoic.studies.paper import ALGORITHMS, MACHINES, cells

_MEANS = {
    "noise-cancelling": ((48.3, 5.8), (61.2, 3.7), (64.7, 2.8), (58.7, 1.8), (61.5, 2.8)),
    "noisy-sgd": ((42.1, 8.7), (60.9, 4.4), (66.0, 2.3), (57.3, 6.3), (58.0, 5.1)),
    "localized-minibatch": ((69.6, 0.5), (70.2, 0.4), (70.2, 0.3), (69.8, 0.5), (70.3, 0.2)),
}
_SETTINGS = ((4.0, 50), (8.0, 50), (12.0, 50), (8.0, 20), (8.0, 80))
_EPSILON = {4.0: 24.4012, 8.0: 65.2871, 12.0: 122.2764}


def reproduction() -> dict[str, Any]:
    """Return the results of a reproduction of both tables."""
    found = _cells()
    verdicts = [_verdict(cell) for cell in found]
    return {
        "title": "Noise cancelling on MNIST: the paper's tables, reproduced",
        "command": "anechoic reproduce --table all --seeds 20 --out runs/paper --jobs 2",
        "created": "2026-07-01T12:34:56Z",
        "versions": {"anechoic": "0.1.0", "python": "3.11.9", "numpy": "2.4.6", "scipy": "1.17.1"},
        "seeds": "20 seeds a cell, 5 for the multi-pass method",
        "cells": found,
        "verdicts": verdicts,
        "comparisons": _comparisons(found),
        "choices": _choices(),
        "timing": _timing(found),
        "curves": _curves(),
        "epsilon": _epsilon(),
        "noise": _noise(),
        "left": _left(),
        "spent": _spent(),
        "rates": _rates(),
        "settings": {"data": "mnist", "diameter": 0.1, "machines": 100, "clip": None, "grid": {"rho": [4, 8, 12]}},
    }


def study() -> dict[str, Any]:
    """Return the results of a study with a number on the horizontal axis."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "algorithm": name,
            "share": share,
            "mean": base + 6 * math.log10(share) * slope,
            "sd": rng.uniform(1, 3),
            "seeds": 5,
        }
        for name, base, slope in (
            ("noise-cancelling", 64.0, 1.0),
            ("trusted-server", 71.0, 0.2),
            ("noisy-sgd", 60.0, 1.4),
        )
        for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    ]
    axes = {"x": "share", "y": "mean", "series": "algorithm", "log_x": True, "log_y": False}
    return {
        "name": "participation",
        "title": "How many machines take part",
        "explanation": "Accuracy at ρ = 4 as the share m/M of the machines that take part in a round grows.",
        "command": "anechoic study participation --seeds 5",
        "created": "2026-07-01T12:34:56Z",
        "versions": {"anechoic": "0.1.0"},
        "axes": axes | {"x_label": "m/M", "y_label": "test accuracy (%)"},
        "rows": rows,
        "notes": ["With m = M there is nothing to cancel across rounds & everything < 1 is partial."],
    }


def named_study() -> dict[str, Any]:
    """Return the results of a study whose settings have names."""
    splits = (("iid", 0.0), ("dirichlet 1", -1.5), ("dirichlet 0.1", -6.0), ("by-label", -14.0))
    methods = (("noise-cancelling", 64.0), ("noisy-sgd", 60.0), ("delayed-updates", 55.0))
    rows = [
        {"algorithm": name, "split": split, "mean": base + loss, "sd": 2.1, "seeds": 5}
        for split, loss in splits
        for name, base in methods
    ]
    axes = {"x": "split", "y": "mean", "series": "algorithm", "x_label": "split", "y_label": "test accuracy (%)"}
    return study() | {"name": "heterogeneity", "title": "Unequal machines", "axes": axes, "rows": rows, "notes": []}


def _cells() -> list[dict[str, Any]]:
    found = []
    for cell in cells([1, 2]):
        setting = cell.setting
        mean, sd = _MEANS[cell.algorithm][_SETTINGS.index((setting.rho, setting.participants))]
        many = cell.algorithm == "localized-minibatch"
        seconds = 0.412 * setting.rho**2 * setting.participants / 800 if many else 0.21437
        found.append(
            {
                "table": cell.table,
                "algorithm": cell.algorithm,
                "rho": setting.rho,
                "participants": setting.participants,
                "machines": MACHINES,
                "paper_accuracy": cell.paper_accuracy,
                "paper_seconds": cell.paper_seconds,
                "accuracy_mean": mean + 0.0137,
                "accuracy_sd": sd,
                "seeds": 5 if many else 20,
                "seconds": seconds,
                "gradients": 118_800.0 * (seconds / 0.05 if many else 1),
                "epsilon": _EPSILON[setting.rho],
            }
        )
    return found


def _verdict(cell: dict[str, Any]) -> dict[str, Any]:
    low, high = (cell["accuracy_mean"] + side * 2 * cell["accuracy_sd"] for side in (-1, 1))
    return {key: cell[key] for key in ("algorithm", "rho", "participants", "seeds")} | {
        "paper": cell["paper_accuracy"],
        "mean": cell["accuracy_mean"],
        "sd": cell["accuracy_sd"],
        "low": low,
        "high": high,
        "within": low <= cell["paper_accuracy"] <= high,
    }


def _comparisons(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keyed = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in found}
    result = []
    for rho, participants in _SETTINGS:
        first = keyed["noise-cancelling", rho, participants]
        for name in ALGORITHMS[1:]:
            second = keyed[name, rho, participants]
            difference = first["accuracy_mean"] - second["accuracy_mean"]
            error = math.hypot(*(cell["accuracy_sd"] / math.sqrt(cell["seeds"]) for cell in (first, second)))
            p_value = math.erfc(abs(difference) / error / math.sqrt(2))
            result.append(
                {
                    "rho": rho,
                    "participants": participants,
                    "first": "noise-cancelling",
                    "second": name,
                    "difference": difference,
                    "standard_error": error,
                    "p_value": p_value,
                    "significant": p_value < 0.05,
                    "paper_difference": first["paper_accuracy"] - second["paper_accuracy"],
                }
            )
    return result


def _choices() -> list[dict[str, Any]]:
    def cells_of(shift: float) -> list[dict[str, Any]]:
        return [
            {"rho": rho, "participants": m, "accuracy_mean": mean + shift, "accuracy_sd": sd, "seeds": 20}
            for (rho, m), (mean, sd) in zip(_SETTINGS, _MEANS["noise-cancelling"], strict=True)
        ]

    return [
        {
            "algorithm": "noise-cancelling",
            "choice": "Which point is returned",
            "taken": "x_T",
            "why": "The theorem is about the weighted average x_T; the last iterate w_T has no guarantee.",
            "alternatives": [{"name": "x_T", "cells": cells_of(0)}, {"name": "w_T", "cells": cells_of(3.4)}],
        },
        {
            "algorithm": "noisy-sgd",
            "choice": "The step",
            "taken": "D/√(T(G²/m + dσ²/m))",
            "why": "It minimises the bound on the average iterate.",
            "alternatives": [
                {"name": "D/√(T(G²/m + dσ²/m))", "cells": cells_of(-4)},
                {"name": "a tenth of it", "cells": cells_of(-11)},
            ],
        },
    ]


def _timing(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result = []
    for engine, scale in (("machines", 9.1), ("collective", 0.21)):
        for cell in found:
            ratio = {"noise-cancelling": 1.0, "noisy-sgd": 0.71}.get(cell["algorithm"], cell["seconds"] * 2)
            result.append(
                {key: cell[key] for key in ("algorithm", "rho", "participants", "paper_seconds")}
                | {
                    "engine": engine,
                    "seconds": scale * ratio,
                    "ratio": ratio,
                    "paper_ratio": cell["paper_seconds"] / 13,
                }
            )
    return result


def _curves() -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    result = []
    for name in ALGORITHMS:
        for (rho, participants), (mean, sd) in zip(_SETTINGS, _MEANS[name], strict=True):
            total = 320 if name == "localized-minibatch" else 60_000 // participants
            rounds = [round(total * share) for share in np.linspace(0.02, 1, 50)]
            share = np.array(rounds) / total
            accuracy = 12 + (mean - 12) * (1 - np.exp(-4 * share)) + rng.normal(0, 0.4, 50)
            result.append(
                {
                    "algorithm": name,
                    "rho": rho,
                    "participants": participants,
                    "rounds": rounds,
                    "mean": [float(value) for value in accuracy],
                    "sd": [float(sd * (1.3 - 0.3 * value)) for value in share],
                }
            )
    return result


def _epsilon() -> list[dict[str, Any]]:
    at = {0.13: 0.5, 0.25: 0.9, 0.5: 2.0, 1.0: 4.38, 2.0: 10.1, 4.0: 24.4, 8.0: 65.3, 12.0: 122.3}
    halves = {
        "noise-cancelling": 2.0,
        "noisy-sgd": 3.2,
        "localized-minibatch": 0.6,
        "localized-accelerated": 0.8,
        "trusted-server": 0.15,
        "full-participation": 1.7,
        "fresh-noise": 7.0,
        "localized-minibatch-trusted": 0.12,
        "full-participation-trusted": 0.1,
    }
    result: list[dict[str, Any]] = [
        {
            "algorithm": name,
            "rho": rho,
            "epsilon": value,
            "mean": 10 + 61 * rho / (rho + half),
            "sd": 6 * half / (rho + half),
            "seeds": 5,
        }
        for name, half in halves.items()
        for rho, value in at.items()
    ]
    return [*result, {"algorithm": "mu2-sgd", "rho": None, "epsilon": None, "mean": 72.4, "sd": 0.3, "seeds": 5}]


def _noise() -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    rounds = list(range(1, 1201, 6))
    laws = {"noise-cancelling": (9000.0, 4500.0), "trusted-server": (16000.0, 0.0), "fresh-noise": (0.0, 17.0)}
    return [
        {
            "algorithm": name,
            "rounds": rounds,
            "predicted": [start + slope * t for t in rounds],
            "measured": [(start + slope * t) * float(rng.normal(1, 0.02)) for t in rounds],
        }
        for name, (start, slope) in laws.items()
    ]


def _left() -> list[dict[str, Any]]:
    lengths = {"noise-cancelling": 17.0, "noisy-sgd": 28.0, "localized-minibatch": 2.5}
    return [
        {"algorithm": name, "rho": rho, "participants": participants, "noise": length / rho, "gradient": 1.04}
        for rho, participants in _SETTINGS
        for name, length in lengths.items()
    ]


def _spent() -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    result = []
    for name in ALGORITHMS:
        for rho, participants in _SETTINGS:
            share = np.clip(rng.normal(0.93, 0.02, 100), 0, 0.999) if name == "noise-cancelling" else np.ones(100)
            entry = {"algorithm": name, "rho": rho, "participants": participants}
            result.append(entry | {"spent": [float(value) for value in rho * share]})
    return result


def _rates() -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    result = []
    for quantity, theory, low in (
        ("n", -1.0, 1000),
        ("rho", -1.0, 0.125),
        ("d", 0.5, 16),
        ("M", 0.5, 4),
        ("m", 0.0, 2),
    ):
        points = []
        for power in range(6):
            x = low * 2.0**power
            y = 0.02 * (x / low) ** (0.97 * theory) * float(rng.normal(1, 0.03))
            points.append({"x": x, "y": y, "sd": 0.1 * y, "bound": 0.8 * (x / low) ** theory})
        entry = {"quantity": quantity, "algorithm": "noise-cancelling", "theory": theory, "points": points}
        result.append(entry | {"fitted": 0.97 * theory, "standard_error": 0.021})
    return result


def statement() -> dict[str, Any]:
    """Return what a certificate says of a machine with a long identity, many releases and a budget."""
    course = [
        {"release": number, "sigma": 7.0 * number**0.5, "sensitivity": 4.0, "rho": 1.4 * (1 - 0.6 / number)}
        for number in range(1, 201)
    ]
    return {
        "kind": "machine",
        "identity": "f01fd5ddf7a1b1f153ddbeecacb4ca9e",
        "run": "the clinics of the north, spring",
        "algorithm": "noise-cancelling",
        "issued": "2026-07-01T12:34:56+00:00",
        "machines": 1,
        "trusted_server": False,
        "releases": 1200,
        "entrusted": 0,
        "records": 123_456,
        "private": True,
        "rho": 1.396,
        "zcdp": 0.974,
        "route": "whole",
        "epsilon": [{"delta": delta, "epsilon": 7.0 - 100 * delta} for delta in (1e-3, 1e-5, 1e-7, 1e-9)],
        "drawn": None,
        "best_guess": 0.81,
        "budget": 2.5,
        "allowed": [14.0 - 100 * delta for delta in (1e-3, 1e-5, 1e-7, 1e-9)],
        "left": 2.074,
        "course": course,
        "worst_machine": None,
        "chain": {"rows": 1200, "releases": 1200, "digest": "9ba79dd1" * 8},
        "path": "/var/lib/anechoic/the-clinics-of-the-north/spring",
        "versions": dict.fromkeys(("python", "anechoic", "numpy", "scipy", "dp-accounting"), "1.2.3"),
    }
