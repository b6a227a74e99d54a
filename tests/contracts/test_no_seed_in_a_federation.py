"""What hides real records is never drawn from a seed: by the text of the code, by running it, and by refusal."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from tests.protocol.conftest import MACHINES, World, federation_of, problem_of, proposal_of

import anechoic
from anechoic.errors import BadInput
from anechoic.flower import client_app, messages, mod
from anechoic.privacy import noise as sources
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.noise import NoiseSource, SeededGaussian, SeededWhole
from anechoic.privacy.staircase import Sampler, Staircase, exact_noise
from anechoic.protocol import coordinator as server_side
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy

SOURCE = Path(anechoic.__file__).parent

RANDOM = {
    *("SeededGaussian", "SeededWhole", "generator", "default_rng", "RandomState", "SeedSequence"),
    *("SFC64", "PCG64", "MT19937", "Philox", "random", "secrets", "urandom"),
}
"""Names by which code can come by randomness."""

SIMULATION = {f"anechoic.engines{name}" for name in ("", ".run", ".machines", ".collective", ".law", ".plan")}
"""Modules that draw from seeds, for simulations."""

FEDERATION = ("protocol", "flower", "algorithms", "engines/machine.py", "engines/server.py", "engines/journal.py")
"""What answers for real machines, and what it calls to do so."""

DECLARED = {
    ("protocol/coordinator.py", "generator"): "in which order a round asks machines, which hides nothing",
    ("protocol/database.py", "secrets"): "the name of a file that is being made",
    ("protocol/store.py", "secrets"): "a machine's name",
    ("flower/commands.py", "random"): "which free port to try first",
}


def files() -> Iterator[Path]:
    for place in FEDERATION:
        path = SOURCE / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def names(text: str) -> set[str]:
    """Return the names of randomness, and the simulation's modules, that code uses."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module or ""}
            if isinstance(node, ast.ImportFrom):
                modules |= {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {alias.name for alias in node.names if alias.name in RANDOM}
            found |= {name for name in modules if name in SIMULATION or name.split(".")[0] in ("random", "secrets")}
        elif isinstance(node, ast.Attribute) and node.attr in RANDOM:
            found.add(node.attr)
        elif isinstance(node, ast.Name) and node.id in RANDOM:
            found.add(node.id)
    return found


def test_no_code_of_a_federation_names_a_seeded_source() -> None:
    used = {(str(path.relative_to(SOURCE)), name) for path in files() for name in names(path.read_text("utf-8"))}
    assert used == DECLARED.keys()


@pytest.mark.parametrize(
    "text",
    [
        "from anechoic.privacy.noise import SeededWhole",
        "import numpy as np\nnp.random.standard_normal(3)",
        "import random",
        "from anechoic.privacy import noise\nnoise.generator(0, 'noise')",
        "from anechoic.engines import machines",
        "import anechoic.engines.machines as m",
    ],
)
def test_a_seed_that_was_slipped_in_is_seen(text: str) -> None:
    assert names(text)


def test_the_one_generator_of_a_federation_draws_the_order_of_machines_alone() -> None:
    tree = ast.parse((SOURCE / "protocol/coordinator.py").read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    streams = [
        ast.literal_eval(call.args[1])
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "generator"
    ]
    assert streams == ["participation"]


@pytest.mark.parametrize("sampler", ["opendp", "staircase"])
@pytest.mark.parametrize("algorithm", ["noise-cancelling", "trusted-server", "localized-minibatch"])
def test_a_federation_runs_where_every_seeded_source_is_broken(
    algorithm: str, sampler: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*told: Any) -> Any:
        raise AssertionError(f"a federation drew from a seed: {told}")

    def only_the_order(seed: int, stream: str, *key: int) -> np.random.Generator:
        return ordinary(seed, stream, *key) if stream == "participation" else broken(stream)

    ordinary = sources.generator
    monkeypatch.setattr(SeededGaussian, "draw", broken)
    monkeypatch.setattr(SeededWhole, "draw", broken)
    monkeypatch.setattr(sources, "generator", broken)
    monkeypatch.setattr(server_side, "generator", only_the_order)
    own = {"records": 24} if algorithm.startswith("localized") else {}
    here = World(tmp_path, proposal_of(algorithm=algorithm, **own), Policy(rho=2.0, trust_server=True, sampler=sampler))
    with Coordinator(here.proposal, problem_of(), tmp_path / "server") as coordinator:
        nodes = [
            Node(problem_of(), here.federation.shard(number), tmp_path / f"machine{number}", here.policy)
            for number in range(MACHINES)
        ]
        for node in nodes:
            coordinator.enrol(node.enrol(here.proposal).identity)
        for _ in range(2):
            for number, ask in coordinator.questions(range(MACHINES)).items():
                assert coordinator.absorb(number, nodes[number].answer(here.proposal, ask))
        assert coordinator.round == 2


@pytest.mark.parametrize("noise", [SeededGaussian(0, 0), SeededWhole(0, 0)])
def test_machines_and_servers_refuse_noise_that_could_be_drawn_again(noise: NoiseSource, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it hides nothing: leave the noise out"):
        Node(problem_of(), federation_of().shard(0), tmp_path / "machine", Policy(rho=1.0), noise)
    with pytest.raises(BadInput, match="it hides nothing: leave the noise out"):
        Coordinator(proposal_of(), problem_of(), tmp_path / "server", noise=noise)
    assert list(tmp_path.iterdir()) == []


def test_apps_refuse_noise_that_could_be_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_run_id", "_node_id", "_task_id"):  # what Flower tells a process before it runs an app
        monkeypatch.setattr(TaskIdentity, name, 1)
    (tmp_path / "policy.toml").write_text("rho = 2.0\n")
    apps: list[Callable[..., Any]] = [client_app(lambda _: (problem_of(), federation_of().shard(0)), _seeded)]
    intercept = mod(lambda _: (problem_of(), federation_of().shard(0)), _seeded)
    apps.append(lambda message, context: intercept(message, context, lambda *_: message))
    for app in apps:
        message = Message(messages.proposal_record(proposal_of(), problem_of().description), 1, "query")
        message.metadata.__dict__["_message_id"] = "1"
        config: dict[str, Any] = {"state-dir": str(tmp_path / "state"), "policy": str(tmp_path / "policy.toml")}
        context = Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={})
        refused = messages.read_refusal(app(message, context).content)
        assert refused is not None
        assert "it hides nothing" in refused[0]
    assert not (tmp_path / "state").exists()


def _seeded(context: Any) -> SeededWhole:
    return SeededWhole(0, 0)


def test_what_the_policy_can_name_is_never_seeded() -> None:
    assert not DiscreteGaussian.seeded
    assert not Staircase.seeded
    assert Staircase().entropy.__name__ == "urandom"
    for sampler in get_args(Sampler):
        assert not exact_noise(sampler).seeded
