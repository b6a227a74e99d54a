"""Break the privacy code on purpose, one way at a time, and demand that a test notices.

    .venv/bin/python tests/mutants/mutants.py        (or: make mutants)

A test that cannot fail protects nobody. Each mutation below is a mistake that a person could make: it replaces a piece
of one source file in a copy of ``src`` and runs the tests that should catch it against that copy. The tests must
pass on the unchanged copy, and at least one must *fail* on each changed one, by an assertion about what is claimed: a
test that merely breaks off with an error has noticed nothing. The table of what caught what is printed and written to
``RESULTS.md`` beside this file. Exit code 1: a mutation survived.

A mutation whose old text is no longer found exactly once stops everything: the code has moved on, so bring the
mutation along.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("RESULTS.md")
COMMAND = ".venv/bin/python tests/mutants/mutants.py"
TIME_LIMIT = 120
FAILED = 1
"""The exit code of pytest for tests that ran and failed."""

CERTIFICATE = "tests/privacy/test_certificate.py::"
BUDGET = "tests/privacy/test_budget.py::"
THEOREM = "tests/privacy/test_thm_privacy.py::"
TREE = "tests/privacy/test_release_tree.py::"

ONE_RECORD = THEOREM + "test_one_record_moves_a_release_by_its_share_of_twice_the_clip_at_most"
REVEALED = THEOREM + "test_a_machines_messages_reveal_what_the_certificate_says"
UNAIDED = THEOREM + "test_the_noise_alone_meets_the_guarantee_with_no_budget_to_refuse_a_release"
LET_OUT = THEOREM + "test_what_a_trusted_server_lets_out_reveals_what_the_certificate_says"
FIRST_RECORD = THEOREM + "test_noise_cancelling_meets_thm_privacy_with_equality_for_the_first_record"
ADAPTIVE = THEOREM + "test_a_server_that_adapts_learns_no_more_on_any_path"
NAMED_PARENT = TREE + "test_a_release_takes_off_the_noise_of_the_parent_that_is_named_and_of_no_other"
STAIRCASE = "tests/privacy/test_staircase.py::"
DISCRETE = STAIRCASE + "test_draws_have_the_law_of_the_discrete_gaussian"
SURELY = STAIRCASE + "test_what_floating_point_decides_is_what_whole_numbers_decide"
WHOLE = (
    "tests/privacy/test_whole_numbers.py"
    "::test_fine_noise_keeps_to_its_route_which_is_within_a_thousandth_of_what_it_reveals"
)
FIGURES = "tests/cli/test_certificate.py::test_a_certificate_whose_figures_were_replaced_is_found_out"
COARSE = "tests/protocol/test_policy.py::test_a_grid_too_coarse_for_the_noise_is_refused_and_no_default_is"
APPROVED = "tests/flower/test_approved.py::test_flower_believes_the_approved_app_and_no_other"
EXACTLY = STAIRCASE + "test_the_answers_are_the_same_when_nothing_is_left_to_floating_point"
CHARGED = TREE + "test_every_record_is_charged_for_the_releases_that_were_built_on_its_own"
BRUTE_FORCE = CERTIFICATE + "test_the_certificate_is_the_divergence_of_the_whole_transcript"


class Mutation(NamedTuple):
    """One mistake: in ``file``, ``old`` becomes ``new``; ``tests`` are those that should turn red."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "no clipping",
        "problems/base.py",
        "return np.minimum(1.0, limit / np.maximum(norms, limit))",
        "return np.ones_like(norms)",
        (ONE_RECORD,),
    ),
    Mutation(
        "clip after averaging, not each record",
        "engines/machine.py",
        """self._chosen(first, stop, number), clip)
        signal = signal / algorithm.divisor(stop - first)""",
        """self._chosen(first, stop, number), 1e200)
        signal = signal / algorithm.divisor(stop - first)
        signal *= min(1.0, (1 - 1e-12) * clip / max(float(np.linalg.norm(signal)), clip))""",
        (ONE_RECORD,),
    ),
    Mutation(
        "sensitivity C instead of 2C",
        "algorithms/base.py",
        "return 2 * self.clip / self.divisor(records) + rounding",
        "return self.clip / self.divisor(records) + rounding",
        (REVEALED,),
    ),
    Mutation(
        "the noise of the round before the parent's is cancelled",
        "engines/journal.py",
        "return self._memories[number]",
        "return self._memories[max((k for k in self._memories if k < number), default=number)]",
        (NAMED_PARENT,),
    ),
    Mutation(
        "the last release's noise is cancelled, absorbed or not",
        "engines/journal.py",
        "return self._memories[number]",
        "return self._memories[max(self._memories)]",
        (NAMED_PARENT,),
    ),
    Mutation(
        "the cancelled noise is added a second time",
        "algorithms/noise_cancelling.py",
        "return signal + noise - self.taken_off(memory)",
        "return signal + noise + self.taken_off(memory)",
        (NAMED_PARENT,),
    ),
    Mutation(
        "one noise vector for all releases of a machine",
        "privacy/noise.py",
        'generator(self.seed, "noise", self.machine + 1, number)',
        'generator(self.seed, "noise", self.machine + 1, 1)',
        ("tests/privacy/test_noise.py::test_no_two_releases_share_their_noise",),
    ),
    Mutation(
        "one noise vector for all machines in a round",
        "privacy/noise.py",
        'generator(self.seed, "noise", self.machine + 1, number)',
        'generator(self.seed, "noise", 0, number)',
        ("tests/privacy/test_noise.py::test_no_two_releases_share_their_noise",),
    ),
    Mutation(
        "the noise drawn is 10 % smaller than the ledger says",
        "privacy/noise.py",
        "return sigma * generator",
        "return 0.9 * sigma * generator",
        ("tests/privacy/test_noise.py::test_the_noise_is_gaussian_of_the_deviation_asked_for",),
    ),
    Mutation(
        "σ is 10 % smaller than the guarantee needs",
        "algorithms/base.py",
        "return sensitivity * (self.level * unit)",
        "return 0.9 * sensitivity * (self.level * unit)",
        (UNAIDED,),
    ),
    Mutation(
        "σ of a phase plans for one call instead of its cap",
        "algorithms/localized.py",
        "return sensitivity * (math.sqrt(self.phases[phase].cap) / self.setting.rho)",
        "return sensitivity * (math.sqrt(1) / self.setting.rho)",
        (UNAIDED,),
    ),
    Mutation(
        "participations are counted from 0",
        "privacy/schedules.py",
        "return np.float64(1 + math.log(rounds)) * participation",
        "return np.float64(1 + math.log(rounds)) * np.maximum(participation - 1, 1)",
        (UNAIDED,),
    ),
    Mutation(
        "the round counts as the participation",
        "engines/machine.py",
        "algorithm.scale(query.phase, np.asarray(number), ",
        "algorithm.scale(query.phase, np.asarray(query.round), ",
        (FIRST_RECORD,),
    ),
    Mutation(
        "a record is used again: the cursor stands still",
        "engines/machine.py",
        "algorithm.span(query.phase, self.records.size, number)",
        "algorithm.span(query.phase, self.records.size, 1)",
        (TREE + "test_each_release_uses_the_next_records_even_if_the_last_one_was_lost",),
    ),
    Mutation(
        "the ledger misses a release",
        "engines/machine.py",
        "            self.ledger.append(release)",
        "            if number != 2: self.ledger.append(release)",
        (CHARGED, REVEALED),
    ),
    Mutation(
        "the ledger forgets parents",
        "engines/machine.py",
        "linked_to = parent if algorithm.linked else NO_PARENT",
        "linked_to = NO_PARENT",
        (CHARGED, REVEALED),
    ),
    Mutation(
        "a release that failed is made again under the same number",
        "engines/machine.py",
        """        self.releases, self.used = number, stop
        noise = self.noise.draw(number, sigma / (grid or 1.0), algorithm.problem.dimension)
""",
        """        noise = self.noise.draw(number, sigma / (grid or 1.0), algorithm.problem.dimension)
        self.releases, self.used = number, stop
""",
        (TREE + "test_a_release_that_fails_after_it_was_charged_is_not_made_again_under_its_number",),
    ),
    Mutation(
        "the trusted server divides its noise by m twice",
        "engines/server.py",
        "return self.noise.draw(number, sigma / algorithm.unit, ",
        "return self.noise.draw(number, sigma / algorithm.unit / participants, ",
        (LET_OUT,),
    ),
    Mutation(
        "the trusted server forgets that a record stays in its sum",
        "engines/server.py",
        "parent = self.parent if algorithm.linked else NO_PARENT",
        "parent = NO_PARENT",
        (LET_OUT,),
    ),
    Mutation(
        "the sum of corrections is sent without its noise",
        "algorithms/full_participation.py",
        "return memory + noise, memory",
        "return memory, memory",
        (REVEALED, ADAPTIVE),
    ),
    Mutation(
        "the budget never refuses",
        "privacy/budget.py",
        "if not spent <= self.rho * (1 + ROUNDING):",
        "if not spent <= float('inf'):",
        (BUDGET + "test_it_refuses_exactly_what_would_pass_the_limit_and_then_charges_nothing",),
    ),
    Mutation(
        "the budget does not hand a parent's shift on",
        "privacy/budget.py",
        "shift[: len(before)] += multiple * before",
        "shift[: len(before)] += 0 * before",
        (BUDGET + "test_what_is_spent_is_the_certificate_after_every_release",),
    ),
    Mutation(
        "the certificate looks no further than a release's children",
        "privacy/certificate.py",
        "np.add.at(weight, forest.parents[linked], weight[linked])",
        "np.add.at(weight, forest.parents[linked], 1.0 / releases.sigma[linked] ** 2)",
        (BRUTE_FORCE,),
    ),
    Mutation(
        "the certificate takes every record to be used once",
        "privacy/certificate.py",
        "    if only_repeated and not overlaps.any():\n        return []",
        "    if only_repeated:\n        return []",
        (BRUTE_FORCE,),
    ),
    Mutation(
        "a strategy other than cancelling is not scaled to its own cost",
        "algorithms/base.py",
        "return math.sqrt(self.strategy.level(variance, rounding, reused=reused))",
        "return 1.0",
        (
            "tests/privacy/test_strategies.py::"
            "test_a_machine_that_is_called_as_often_as_planned_spends_just_what_was_asked_for",
        ),
    ),
    Mutation(
        "the noise of grandparents is forgotten",
        "algorithms/base.py",
        "return (noise, *memory)[: self.strategy.reach]",
        "return (noise,)[: self.strategy.reach]",
        ("tests/privacy/test_strategies.py::test_along_every_path_of_the_tree_the_noise_is_that_of_the_strategy",),
    ),
    Mutation(
        "the certificate takes nothing off but the parent's noise",
        "privacy/certificate.py",
        "            for distance, multiple in enumerate(multiples[taken], start=1):",
        "            for distance, multiple in enumerate(multiples[taken][:1], start=1):",
        (BRUTE_FORCE,),
    ),
    Mutation(
        "an exported event states half of the distance",
        "privacy/events.py",
        "reach.sigma / reach.shift",
        "2 * reach.sigma / reach.shift",
        (CERTIFICATE + "test_the_rdp_accountant_confirms_the_zcdp_route",),
    ),
    Mutation(
        "the collective law has its off-diagonal with the wrong sign",
        "engines/law.py",
        "mixing, reach = strategy.mixing(calls),",
        "mixing, reach = np.abs(strategy.mixing(calls)),",
        ("tests/engines/test_law.py::test_the_law_is_exactly_that_of_the_messages_of_the_reference_engine",),
    ),
    Mutation(
        "noise in bulk: zero is drawn with either sign",
        "privacy/staircase.py",
        "accepted &= ~(negative & (distance == 0))",
        "accepted &= ~(negative & (distance == -1))",
        (DISCRETE,),
    ),
    Mutation(
        "noise in bulk: the staircase is below the Gaussian",
        "privacy/staircase.py",
        "STEEP = 1.1775",
        "STEEP = 0.55",
        (DISCRETE,),
    ),
    Mutation(
        "noise in bulk: a step too many is taken for granted",
        "privacy/staircase.py",
        "np.exp(step * math.log(2) -",
        "np.exp((step - 1) * math.log(2) -",
        (SURELY,),
    ),
    Mutation(
        "noise in bulk: where floating point cannot tell, the answer is the opposite",
        "privacy/staircase.py",
        "return drawn < low",
        "return drawn >= low",
        (EXACTLY,),
    ),
    Mutation(
        "noise of whole numbers counts as continuous, of the same deviation",
        "privacy/conversions.py",
        "_exact(widened(max(rho, 1e-20)), epsilon)",
        "_exact(max(rho, 1e-20), epsilon)",
        (WHOLE,),
    ),
    Mutation(
        "noise of a few steps of its grid goes out",
        "privacy/entropy.py",
        "if 0 < sigma < FINE * step:",
        "if 0 < sigma < 0 * step:",
        (COARSE,),
    ),
    Mutation(
        "a machine runs code that its owner has not approved",
        "flower/approved.py",
        "if digest in known:",
        "if known:",
        (APPROVED,),
    ),
    Mutation(
        "a certificate's digest is checked and its figures are believed",
        "studies/statement.py",
        "return [rows, _figures(account, certificate)]",
        "return [rows]",
        (FIGURES,),
    ),
)

GUARD = """
import pathlib, pytest
def pytest_configure(config):
    import anechoic
    if not pathlib.Path(anechoic.__file__).is_relative_to({copy!r}):
        raise pytest.UsageError(f"the tests would import {{anechoic.__file__}}, not the copy")
"""


def copy_of_source(folder: Path) -> Path:
    """Return the package in a fresh copy of ``src``, beside a plug-in that insists on its being imported."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (source / "only_the_copy.py").write_text(GUARD.format(copy=str(source)))
    return source / "anechoic"


def mutate(package: Path, mutation: Mutation) -> None:
    """Apply one mutation, or stop: the old text must be there exactly once."""
    path = package / mutation.file
    text = path.read_text()
    if (found := text.count(mutation.old)) != 1:
        sys.exit(f"{mutation.name}: the text to replace stands in {mutation.file} {found} times, not once")
    path.write_text(text.replace(mutation.old, mutation.new))


def run(package: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """Run the tests against the copied package; return pytest's exit code (−1: time is up) and what it printed."""
    arguments = ("-x", "-q", "-p", "no:cacheprovider", "-p", "only_the_copy", "-p", "no:xdist")
    command = [sys.executable, "-B", "-m", "pytest", *arguments, *tests]
    environment = os.environ | {"PYTHONPATH": str(package.parent), "COLUMNS": "1000"}  # or reasons are cut off
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end after {TIME_LIMIT} s"
    return done.returncode, done.stdout + done.stderr


def catcher(printed: str) -> str | None:
    """Return the test that failed by an assertion, None if none did: an error or a crash is no such failure."""
    found = re.search(
        r"^FAILED (\S+?::\w+)(\[.*\])? - (assert|AssertionError|Failed: DID NOT RAISE)", printed, re.MULTILINE
    )
    return found.group(1) if found else None


def main() -> int:
    """Run everything; return the exit code."""
    began, survivors, rows = time.perf_counter(), [], []
    with tempfile.TemporaryDirectory() as folder:
        every_test = tuple(dict.fromkeys(test for mutation in MUTATIONS for test in mutation.tests))
        code, printed = run(copy_of_source(Path(folder)), every_test)
        if code != 0:
            sys.exit(f"the tests must pass before anything is broken, but pytest ended with {code}:\n{printed}")
    for mutation in MUTATIONS:
        with tempfile.TemporaryDirectory() as folder:
            package = copy_of_source(Path(folder))
            mutate(package, mutation)
            code, printed = run(package, mutation.tests)
        caught_by = catcher(printed) if code == FAILED else None
        if caught_by is None:
            survivors.append(mutation.name)
            print(f"SURVIVED: {mutation.name} (pytest ended with {code})\n{printed}", flush=True)
        rows.append((mutation.name, mutation.file, caught_by or "**nothing**"))
        print(f"{mutation.name:60} {rows[-1][2].removeprefix('tests/')}", flush=True)
    RESULTS.write_text(
        f"# Mutations of the privacy code, and the tests that caught them\n\nMade by `{COMMAND}` (`make mutants`).\n\n"
        "| mutation | file | caught by |\n|---|---|---|\n"
        + "".join(f"| {name} | `{file}` | `{test}` |\n" for name, file, test in rows)
    )
    print(f"{len(rows) - len(survivors)} of {len(rows)} caught in {time.perf_counter() - began:.0f} s; see {RESULTS}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
