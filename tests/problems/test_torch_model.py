"""A user's PyTorch model: the softmax problem written in torch is the same problem, in numbers, engines and apps."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from anechoic.engines import train
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.problems import Ball, Softmax, Term
from anechoic.problems.torch_model import TorchModel, flat, load_flat
from anechoic.records import Records, Vector

cross_entropy = torch.nn.functional.cross_entropy

FEATURES, CLASSES = 5, 3


def records_of(size: int = 100, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((size, FEATURES))
    features /= np.linalg.norm(features, axis=1)[:, None]
    return Records(features, features[:, :CLASSES].argmax(1))


def linear(**options: Any) -> TorchModel:
    module = torch.nn.Linear(FEATURES, CLASSES, bias=False, dtype=torch.float64)
    return TorchModel(module, cross_entropy, Ball(20.0), **options)


def network(seed: int = 1, **options: Any) -> TorchModel:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 8), torch.nn.Tanh(), torch.nn.Dropout(), torch.nn.Linear(8, CLASSES)
    )
    return TorchModel(module, cross_entropy, Ball(20.0, flat(module)), **options)


SOFTMAX = Softmax(FEATURES, Ball(20.0), bound=1.0, classes=CLASSES)


def test_a_linear_module_with_cross_entropy_is_the_softmax_problem() -> None:
    rng, records, problem = np.random.default_rng(3), records_of(), linear(microbatch=7)
    point, other = rng.standard_normal((2, SOFTMAX.dimension))
    np.testing.assert_allclose(problem.losses(point, records), SOFTMAX.losses(point, records), rtol=1e-12)
    np.testing.assert_allclose(
        problem.gradients(point, records), SOFTMAX.gradients(point, records), rtol=1e-10, atol=1e-14
    )
    assert problem.accuracy(point, records) == SOFTMAX.accuracy(point, records)
    terms, shares = (Term(3.0, point), Term(-2.0, other)), rng.random(records.size)
    for clip in (0.1, 1.0, 100.0):
        expected = SOFTMAX.clipped_sum(terms, records, clip, shares)
        np.testing.assert_allclose(problem.clipped_sum(terms, records, clip, shares), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("engine", ["machines", "collective"])
def test_it_trains_in_every_engine_as_the_softmax_problem_does(engine: Any) -> None:
    federation = Federation.of_shards([records_of(60, seed) for seed in range(4)])
    models = [
        train(
            problem,
            federation,
            participants=2,
            rounds=8,
            batch=4,
            rho=20.0,
            clip=0.5,
            step=1.0,
            seed=1,
            engine=engine,
        ).model
        for problem in (linear(), SOFTMAX)
    ]
    assert np.linalg.norm(models[0]) > 0.1
    np.testing.assert_allclose(models[0], models[1], rtol=1e-9, atol=1e-12)


def test_a_network_learns_from_its_own_starting_point() -> None:
    federation = Federation.of_shards([records_of(200, seed) for seed in range(4)])
    problem, test = network(), records_of(500, 99)
    start = problem.domain.start(problem.dimension)
    np.testing.assert_array_equal(start, flat(problem.module))
    run = train(problem, federation, participants=2, rounds=20, batch=8, rho=1000.0, clip=1.0, step=0.3, seed=1)
    assert problem.loss(run.model, test) < 0.9 * problem.loss(start, test)
    module = problem.module
    load_flat(module, run.model)
    scores = module(torch.tensor(test.features, dtype=torch.float32))
    assert float((scores.argmax(1).numpy() == test.labels).mean()) == run.accuracy(test)


def test_no_contribution_is_longer_than_the_clip_and_no_more_gradients_are_held_than_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, held, whole = network(microbatch=8), list[int](), TorchModel.gradients

    def gradients(self: TorchModel, point: Vector, records: Records) -> Vector:
        held.append(records.size)
        return whole(self, point, records)

    monkeypatch.setattr(TorchModel, "gradients", gradients)
    point = np.random.default_rng(0).standard_normal(problem.dimension) * 5
    terms = (Term(50.0, point), Term(-49.0, 0.9 * point))
    for index in range(4):
        alone = problem.clipped_sum(terms, records_of().rows(slice(index, index + 1)), 0.25)
        assert np.linalg.norm(alone) <= 0.25
    problem.clipped_sum(terms, records_of(), 0.25)
    assert max(held) == 8


def test_models_that_differ_in_anything_tell_different_descriptions() -> None:
    half = network().module
    next(half.parameters()).requires_grad_(False)
    others = [
        network(2),
        linear(),
        TorchModel(network().module, torch.nn.functional.multi_margin_loss, Ball(20.0, flat(network().module))),
        TorchModel(half, cross_entropy, Ball(20.0, flat(half))),
        TorchModel(network().module, cross_entropy, Ball(20.0)),
    ]
    descriptions = {problem.description for problem in [network(), *others]}
    assert len(descriptions) == 6
    assert network().description == network().description


def test_without_constants_a_run_must_be_given_clip_and_step() -> None:
    federation = Federation.of_shards([records_of(60, seed) for seed in range(2)])
    with pytest.raises(BadInput, match="give the run a clip and a step"):
        train(network(), federation, participants=1, rounds=2, rho=1.0)
    declared = network(lipschitz=2.0, smoothness=1.0)
    assert declared.sensitivity == 2.0 + 2 * 20.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TorchModel(torch.nn.Tanh(), cross_entropy, Ball(1.0)), "no parameters"),
        (lambda: TorchModel(torch.nn.Linear(2, 2).half(), cross_entropy, Ball(1.0)), "float32 or all float64"),
        (lambda: network(microbatch=0), "microbatch must be a whole number"),
        (lambda: network(lipschitz=-1.0), "lipschitz must be a finite number above 0"),
        (lambda: load_flat(torch.nn.Linear(2, 2), np.zeros(5)), "does not belong"),
        (lambda: network().check_records(Records(np.ones((3, 4)), np.zeros(3, int))), "cannot take these records"),
        (lambda: TorchModel(torch.nn.Linear(2, 2), cross_entropy, Ball(1.0, np.zeros(3))), "dimension 3"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        make()


def test_a_module_with_convolutions_and_normalisation_takes_shaped_records() -> None:
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    problem = TorchModel(module, cross_entropy, Ball(4.0, flat(module)), shape=(1, 4, 4))
    records = Records(np.random.default_rng(0).random((5, 16), np.float32), np.array([0, 1, 2, 0, 1]))
    problem.check_records(records)
    both = problem.gradients(flat(module), records)
    for place in range(5):
        alone = problem.gradients(flat(module), records.rows(slice(place, place + 1)))
        np.testing.assert_allclose(alone[0], both[place], rtol=1e-4, atol=1e-6)


def test_torch_is_loaded_by_nothing_else_and_its_absence_names_the_extra() -> None:
    script = """
import sys
import anechoic, anechoic.flower, anechoic.problems
assert "torch" not in sys.modules
sys.modules["torch"] = None
try:
    import anechoic.problems.torch_model
except anechoic.AnechoicError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'anechoic[torch]'" in done.stdout
