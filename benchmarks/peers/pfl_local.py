"""The job in pfl-research, through its own backend, dataset and local privacy mechanisms (PyTorch, CPU).

Two peers of different standing:

- :func:`run_stock` is what pfl offers out of the box: ``FederatedAveraging`` with one local step, and
  ``GaussianMechanism`` as a local postprocessor. That is noisy SGD: **less work than the job** (one gradient, nothing
  cancelled, no averaging, no projection) at the same guarantee, with noise of standard deviation 2G/ρ on gradients
  clipped to G.
- :func:`run_cancelling` is the job itself, written as a pfl algorithm, model and privacy mechanism.

Neither evaluates a metric after the first round or prints one, so that only the training is timed.
"""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from benchmarks.peers.job import Floats, Integers, Job
from benchmarks.peers.torch_batched import as_tensor
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import FederatedAlgorithm, NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.common_types import Population
from pfl.context import CentralContext
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import AlgorithmHyperParams, ModelHyperParams, NNTrainHyperParams
from pfl.internal.ops.numpy_ops import NumpySeedScope
from pfl.metrics import Metrics, Weighted
from pfl.model.base import Model
from pfl.model.pytorch import PyTorchModel
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.stats import MappedVectorStatistics


def cohorts(job: Job, features: Floats, labels: Integers) -> FederatedDataset:
    """Return pfl's view of the job: users in the order of the trace, each with its one fresh record."""
    data, targets = as_tensor(features), as_tensor(labels)
    visits: Iterator[tuple[int, int]] = zip(job.trace.ravel().tolist(), job.records.ravel().tolist(), strict=True)

    def user_with_a_fresh_record(visit: tuple[int, int]) -> PyTorchTensorDataset:
        machine, record = visit
        return PyTorchTensorDataset((data[record : record + 1], targets[record : record + 1]), user_id=str(machine))

    return FederatedDataset(user_with_a_fresh_record, lambda: next(visits))


class Softmax(torch.nn.Module):
    """Softmax regression without a separate bias, from 0, with the two methods that pfl's PyTorch model asks for."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(job.features, job.classes, bias=False)
        torch.nn.init.zeros_(self.linear.weight)

    def loss(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy."""
        return torch.nn.functional.cross_entropy(self.linear(features), labels)

    def metrics(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
        """Return the loss, for the evaluation that pfl does in its first round."""
        return {"loss": Weighted(self.loss(features, labels).item() * len(features), len(features))}


def run_stock(job: Job, features: Floats, labels: Integers, rounds: int) -> Floats:
    """Do ``rounds`` rounds of federated averaging with local Gaussian noise and return the last iterate w."""
    relative_noise = 0.0 if job.noiseless else 2 / job.rho
    with warnings.catch_warnings(), NumpySeedScope(job.seed):
        # pfl's noise is added by `torch.tensor(tensor)`, of which torch disapproves once for every user.
        warnings.filterwarnings("ignore", message="To copy construct from a tensor")
        module = Softmax(job)
        model = PyTorchModel(
            module,
            local_optimizer_create=torch.optim.SGD,
            central_optimizer=torch.optim.SGD(module.parameters(), lr=job.step_size),
        )
        data = cohorts(job, features, labels)
        mechanism = GaussianMechanism(clipping_bound=job.lipschitz, relative_noise_stddev=relative_noise)
        FederatedAveraging().run(
            algorithm_params=NNAlgorithmParams(
                central_num_iterations=rounds,
                evaluation_frequency=rounds + 1,
                train_cohort_size=job.participants,
                val_cohort_size=0,
            ),
            backend=SimulatedBackend(training_data=data, val_data=data, postprocessors=[mechanism]),
            model=model,
            # A step of length 1, so that the model's difference is the negative gradient.
            model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=1.0, local_batch_size=None),
            send_metrics_to_platform=False,
        )
    answer: Floats = module.linear.weight.detach().numpy().copy()
    return answer


@dataclass(frozen=True)
class RoundsParams(AlgorithmHyperParams):
    """How many rounds to run, and how many users in each."""

    rounds: int
    participants: int


class Server(Model):
    """The server's state: estimate q, iterate w, query point x and the one before."""

    def __init__(self, job: Job) -> None:
        self.job = job
        shape = (job.classes, job.features)
        self.estimate, self.iterate, self.query, self.previous = (torch.zeros(shape) for _ in range(4))
        self.weight = 1
        self.total_weight = 1

    def apply_model_update(self, statistics: MappedVectorStatistics) -> tuple[Server, Metrics]:
        """Absorb the mean message of a round."""
        self.estimate += statistics["message"]
        self.iterate = self.iterate - self.job.step_size * self.estimate
        norm, radius = float(self.iterate.norm()), self.job.diameter / 2
        if norm > radius:
            self.iterate *= radius / norm
        self.weight += 1
        self.total_weight += self.weight
        step = self.weight / self.total_weight
        self.previous, self.query = self.query, (1 - step) * self.query + step * self.iterate
        return self, Metrics()


class NoiseCancelling(FederatedAlgorithm):
    """The correction of two weighted gradients on the user's side, the average on the server's."""

    def get_next_central_contexts(
        self,
        model: Server,
        iteration: int,
        algorithm_params: RoundsParams,
        model_train_params: ModelHyperParams,
        model_eval_params: ModelHyperParams | None = None,
    ) -> tuple[tuple[CentralContext, ...] | None, Server, Metrics]:
        """Ask for the round's cohort, or stop."""
        if iteration == algorithm_params.rounds:
            return None, model, Metrics()
        context = CentralContext(
            current_central_iteration=iteration,
            do_evaluation=False,
            cohort_size=algorithm_params.participants,
            population=Population.TRAIN,
            model_train_params=model_train_params,
            model_eval_params=model_eval_params,
            algorithm_params=algorithm_params,
            seed=self._get_seed(),
        )
        return (context,), model, Metrics()

    def simulate_one_user(
        self, model: Server, user_dataset: PyTorchTensorDataset, central_context: CentralContext
    ) -> tuple[MappedVectorStatistics, Metrics]:
        """Return the user's correction s."""
        features, labels = user_dataset.raw_data
        target = torch.nn.functional.one_hot(labels, model.job.classes)
        residuals = model.weight * (torch.softmax(features @ model.query.T, dim=1) - target)
        residuals -= (model.weight - 1) * (torch.softmax(features @ model.previous.T, dim=1) - target)
        return MappedVectorStatistics({"message": residuals.T @ features}), Metrics()

    def process_aggregated_statistics(
        self,
        central_context: CentralContext,
        aggregate_metrics: Metrics,
        model: Server,
        statistics: MappedVectorStatistics,
    ) -> tuple[Server, Metrics]:
        """Average the messages and let the server absorb the mean."""
        statistics.average()
        return model.apply_model_update(statistics)


class CancellingGaussianMechanism(GaussianMechanism):
    """pfl's clipping, then fresh Gaussian noise less the noise that the same user sent last."""

    def __init__(self, job: Job) -> None:
        super().__init__(clipping_bound=job.clip, relative_noise_stddev=0.0)
        self._generator = torch.Generator().manual_seed(job.seed)
        self._scales: Iterator[float] = iter(job.scales.ravel().tolist())
        self._last: dict[str, torch.Tensor] = {}

    def postprocess_one_user(
        self, *, stats: MappedVectorStatistics, user_context: Any
    ) -> tuple[MappedVectorStatistics, Metrics]:
        """Return the message s + y − Y, and remember y."""
        clipped, metrics = self.constrain_sensitivity(stats)
        message = clipped["message"]
        fresh = torch.empty_like(message).normal_(generator=self._generator)
        fresh *= next(self._scales)
        message = message + fresh
        last = self._last.get(user_context.user_id)
        if last is not None:
            message -= last
        self._last[user_context.user_id] = fresh
        return MappedVectorStatistics({"message": message}, weight=clipped.weight), metrics


def run_cancelling(job: Job, features: Floats, labels: Integers, rounds: int) -> Floats:
    """Do the job as a pfl algorithm."""
    with torch.inference_mode(), NumpySeedScope(job.seed):
        data = cohorts(job, features, labels)
        server = NoiseCancelling().run(
            algorithm_params=RoundsParams(rounds=rounds, participants=job.participants),
            backend=SimulatedBackend(
                training_data=data, val_data=data, postprocessors=[CancellingGaussianMechanism(job)]
            ),
            model=Server(job),
            model_train_params=ModelHyperParams(),
            send_metrics_to_platform=False,
        )
    answer: Floats = server.previous.numpy().copy()
    return answer
