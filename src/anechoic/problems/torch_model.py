"""A model of the user's own in PyTorch: its parameters as one flat vector, a gradient for each record by torch.func.

Privacy does not need convexity: every record's contribution is clipped as always, and the certificate holds for any
model. Convergence does. The theorems are about convex losses, and for a network there is none: nothing here promises
that training ends anywhere good, and the default clip and step, which come from the loss's constants, do not exist.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from anechoic.errors import BadInput, MissingExtra, positive, whole
from anechoic.problems.base import Problem, Term
from anechoic.problems.domains import Domain
from anechoic.records import Records, Vector

try:
    import torch
    from torch.func import functional_call, grad, vmap
except ImportError:
    raise MissingExtra("torch", "torch") from None


class TorchModel(Problem):
    """The loss of a torch module over a domain of its parameters.

    A record's gradient is the module's for a batch of that record alone, so no layer can mix records. The module is
    copied and set to evaluate: dropout is off, and batch normalisation uses the statistics that it came with.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters that require a gradient are trained, in the order in which it names them; the others are fixed.
    loss : callable
        Given the module's output and the labels of a batch, returns one number, as ``torch.nn.functional`` has them.
    domain : Domain
        Where the flat parameter vector lives. ``Ball(diameter, flat(module))`` starts from the module's own parameters,
        which must then be the same on all machines: set torch's seed before the module is made, or load them.
    shape : sequence of int, optional
        The shape of one record's input to the module, where it is not the record's features as they are.
    microbatch : int
        For how many records at once gradients are held: memory is that many times the number of parameters.
    lipschitz, smoothness : float, optional
        G and L, where somebody knows them. Without them a run has to be given ``clip`` and ``step``.

    Examples
    --------
    >>> from anechoic.problems.domains import Ball
    >>> problem = TorchModel(torch.nn.Linear(3, 2), torch.nn.functional.cross_entropy, Ball(4.0))
    >>> problem.gradients(np.zeros(8), Records(np.eye(3)[:1], np.array([1]))).round(2).tolist()
    [[0.5, 0.0, 0.0, -0.5, 0.0, 0.0, 0.5, -0.5]]
    """

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Callable[[Any, Any], Any],
        domain: Domain,
        *,
        shape: Sequence[int] | None = None,
        microbatch: int = 32,
        lipschitz: float | None = None,
        smoothness: float | None = None,
    ) -> None:
        self.module = copy.deepcopy(module).eval()
        self.microbatch = whole("the microbatch", microbatch)
        self.shape = None if shape is None else tuple(shape)
        self._loss = loss
        self._constants = {
            name: None if value is None else positive(name, value)
            for name, value in (("lipschitz", lipschitz), ("smoothness", smoothness))
        }
        trained = {name: value for name, value in self.module.named_parameters() if value.requires_grad}
        if not trained:
            raise BadInput("the module has no parameters that require a gradient")
        kinds = {value.dtype for value in trained.values()}
        if kinds not in ({torch.float32}, {torch.float64}):
            raise BadInput(f"the module's parameters must all be float32 or all float64, not {sorted(map(str, kinds))}")
        self._dtype = kinds.pop()
        self._shapes = {name: value.shape for name, value in trained.items()}
        own = (*self.module.named_parameters(), *self.module.named_buffers())
        self._fixed = {name: value.detach() for name, value in own if name not in trained}
        self._gradients = vmap(grad(self._one), in_dims=(None, 0, 0), randomness="error")
        self._losses = vmap(self._one, in_dims=(None, 0, 0), randomness="error")
        super().__init__(sum(shape.numel() for shape in self._shapes.values()), domain)

    @property
    def lipschitz(self) -> float:
        """G, if it was declared."""
        return self._constant("lipschitz")

    @property
    def smoothness(self) -> float:
        """L, if it was declared."""
        return self._constant("smoothness")

    @property
    def description(self) -> str:
        """See :attr:`Problem.description`; a digest stands for the module, the loss, and where training starts."""
        start = self.domain.start(self.dimension).astype("<f8").tobytes()
        fixed = [(name, value.cpu().numpy().tobytes()) for name, value in sorted(self._fixed.items())]
        told = (str(self.module), list(self._shapes.items()), self.shape, getattr(self._loss, "__name__", ""), fixed)
        digest = hashlib.sha256(repr(told).encode() + start).hexdigest()
        return f"TorchModel(d={self.dimension}, K={type(self.domain).__name__}, D={self.domain.diameter!r}, {digest})"

    def losses(self, point: Vector, records: Records) -> Vector:
        """Return the loss of each record."""
        flat = self._tensor(point)
        with torch.no_grad():
            parts = [self._losses(flat, *self._inputs(part)) for part in self._parts(records)]
        return np.concatenate([part.numpy() for part in parts])

    def gradients(self, point: Vector, records: Records) -> Vector:
        """Return the gradient of each record, shape (n, d)."""
        flat = self._tensor(point)
        parts = [self._gradients(flat, *self._inputs(part)) for part in self._parts(records)]
        return np.concatenate([part.detach().numpy() for part in parts])

    def clipped_sum(self, terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
        """Return the sum of the clipped contributions, a microbatch at a time; see :meth:`Problem.clipped_sum`."""
        total = np.zeros(self.dimension)
        for place, part in enumerate(self._parts(records)):
            first = place * self.microbatch
            own = None if shares is None else shares[first : first + self.microbatch]
            total += super().clipped_sum(terms, part, clip, own)
        return total

    def accuracy(self, point: Vector, records: Records) -> float | None:
        """Return the share of records whose label has the highest score, None where the labels are no classes."""
        if not np.issubdtype(records.labels.dtype, np.integer):
            return None
        flat, right = self._tensor(point), 0
        with torch.no_grad():
            for part in self._parts(records):
                features, labels = self._inputs(part)
                scores = functional_call(self.module, self._named(flat), (features,))
                if scores.ndim != 2 or scores.shape[1] < 2:
                    return None
                right += int((scores.argmax(1) == labels).sum())
        return right / records.size

    def check_records(self, records: Records) -> None:
        """Refuse records that the module or the loss cannot take."""
        super().check_records(records)
        try:
            self.gradients(self.domain.start(self.dimension), records.rows(slice(0, 1)))
        except Exception as error:
            raise BadInput(f"the module cannot take these records: {' '.join(str(error).split())[:300]}") from None

    def _one(self, flat: Any, features: Any, label: Any) -> Any:
        """Return the loss of one record."""
        output = functional_call(self.module, self._named(flat), (features.unsqueeze(0),))
        return self._loss(output, label.unsqueeze(0))

    def _named(self, flat: Any) -> dict[str, Any]:
        """Return the flat vector as the module's own tensors."""
        parts = flat.split([shape.numel() for shape in self._shapes.values()])
        named = zip(self._shapes.items(), parts, strict=True)
        return {**self._fixed, **{name: part.view(shape) for (name, shape), part in named}}

    def _tensor(self, array: Any) -> Any:
        return torch.tensor(array, dtype=self._dtype)

    def _inputs(self, records: Records) -> tuple[Any, Any]:
        features = self._tensor(records.features)
        whole_labels = np.issubdtype(records.labels.dtype, np.integer)
        labels = torch.tensor(records.labels, dtype=torch.int64 if whole_labels else self._dtype)
        return features if self.shape is None else features.view(-1, *self.shape), labels

    def _parts(self, records: Records) -> Iterator[Records]:
        for first in range(0, records.size, self.microbatch):
            yield records.rows(slice(first, first + self.microbatch))

    def _constant(self, name: str) -> float:
        value = self._constants[name]
        if value is None:
            raise BadInput(f"nobody has declared the {name} of this model's loss: give the run a clip and a step")
        return value


def flat(module: torch.nn.Module) -> Vector:
    """Return a module's parameters that require a gradient as one vector, in the order of :class:`TorchModel`.

    >>> flat(torch.nn.Linear(3, 2)).shape
    (8,)
    """
    parts = [value.detach().ravel() for value in module.parameters() if value.requires_grad]
    vector: Vector = torch.cat(parts).to(torch.float64).numpy() if parts else np.zeros(0)
    return vector


def load_flat(module: torch.nn.Module, vector: Vector) -> None:
    """Put a flat vector, such as a trained ``model.npy``, into a module's parameters.

    >>> module = torch.nn.Linear(3, 2)
    >>> load_flat(module, np.arange(8.0))
    >>> module.bias.tolist()
    [6.0, 7.0]
    """
    own = [value for value in module.parameters() if value.requires_grad]
    if vector.shape != (sum(value.numel() for value in own),):
        raise BadInput(f"a vector of shape {vector.shape} does not belong to this module")
    parts: Any = torch.split(torch.as_tensor(vector), [value.numel() for value in own])
    with torch.no_grad():
        for value, part in zip(own, parts, strict=True):
            value.copy_(part.view(value.shape))
