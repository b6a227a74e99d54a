"""``anechoic certificate``: what it says follows from the ledger, it gives nothing away, and tampering shows."""

from __future__ import annotations

import itertools
import json
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.conftest import World, proposal_of

from anechoic.privacy.certificate import certify
from anechoic.privacy.conversions import Route, best_guess, epsilon
from anechoic.privacy.ledger import Ledger, Release, Use
from anechoic.protocol import store
from anechoic.protocol.fingerprint import chain
from anechoic.protocol.inspection import inspect
from anechoic.protocol.store import Store
from anechoic.studies.rundir import read_ledger
from anechoic.studies.statement import course, held

Command = Callable[..., tuple[int, str, str]]


def ran(place: Path, algorithm: str, **changes: Any) -> World:
    here = World(place, proposal_of(algorithm=algorithm, **changes))
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 6)
    return here


def told(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "certificate.json").read_text("utf-8"))
    return found


def test_a_machines_certificate_says_what_its_ledger_proves(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "noise-cancelling")
    (tmp_path / "policy.toml").write_text("rho = 2.5\n")
    code, out, err = anechoic("certificate", "machine0", "--policy", "policy.toml", "--out", "sheet")
    assert (code, err) == (0, "")
    assert "certificate.html" in out
    found, page = told(tmp_path / "sheet"), (tmp_path / "sheet" / "certificate.html").read_text("utf-8")
    with Store(tmp_path / "machine0") as opened:
        ledger, releases = opened.ledger(), opened.releases
    rho = certify(ledger, 1).rho
    assert (found["rho"], found["releases"], found["route"]) == (rho, releases, "whole")
    assert [entry["epsilon"] for entry in found["epsilon"]] == [
        epsilon(rho, entry["delta"], Route.WHOLE) for entry in found["epsilon"]
    ]
    assert found["best_guess"] == best_guess(rho, Route.WHOLE)
    assert found["left"] == math.sqrt(2.5**2 - rho**2)
    assert [line["release"] for line in found["course"]] == list(range(1, releases + 1))
    assert found["course"][-1]["rho"] == rho
    assert found["allowed"] == [epsilon(2.5, entry["delta"], Route.WHOLE) for entry in found["epsilon"]]
    assert "its owner’s budget: (ε" in page
    shown = re.search(r"ε\s=\s([\d.]+)", page)
    assert shown is not None
    assert epsilon(rho, 1e-5, Route.WHOLE) <= float(shown[1]) < epsilon(rho, 1e-5, Route.WHOLE) + 1e-3
    assert found["chain"]["digest"] in page
    assert page.count("<svg") == page.count("</svg>") >= 2
    assert page.count("<desc") == 2


def test_a_sheet_without_a_policy_says_that_it_does_not_know_the_budget(tmp_path: Path, anechoic: Command) -> None:
    """Towards a server that chooses by what it was sent when to ask, what was spent is no guarantee."""
    ran(tmp_path, "noise-cancelling")
    anechoic("certificate", "machine0")
    assert told(tmp_path)["allowed"] == []
    page = (tmp_path / "certificate.html").read_text("utf-8")
    assert "the budget in its owner’s policy (this sheet was made without --policy)" in page


def test_nothing_in_it_is_secret(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "noise-cancelling")
    anechoic("certificate", "machine0")
    account = inspect(tmp_path / "machine0")
    for name in ("certificate.json", "certificate.html"):
        text = (tmp_path / name).read_text("utf-8")
        assert account.about["data"] not in text
        for line in account.releases:
            assert line["chain"] not in text  # it rests on the digest of the data
            assert line["at"] not in text


def test_two_machines_with_other_data_and_the_same_history_have_the_same_chain(tmp_path: Path) -> None:
    """So the digest that is handed out cannot serve to test guesses at a record."""
    ran(tmp_path, "noise-cancelling")
    account = inspect(tmp_path / "machine0")
    other = replace(account, about=account.about | {"data": "0" * 64}, binding="")
    other = replace(other, uses=[use | {"chain": "another", "at": "later", "state": "open"} for use in account.uses])
    assert chain(account) == chain(other)


def test_a_servers_certificate_says_whom_it_does_not_bind(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "trusted-server")
    assert anechoic("certificate", "server")[0] == 0
    found, page = told(tmp_path), (tmp_path / "certificate.html").read_text("utf-8")
    assert (found["kind"], found["private"]) == ("server", True)
    assert found["rho"] == inspect(tmp_path / "server").rho
    assert "the server itself sees each machine’s messages without noise" in page
    assert anechoic("certificate", "machine0")[0] == 0
    found, page = told(tmp_path), (tmp_path / "certificate.html").read_text("utf-8")
    assert (found["private"], found["epsilon"], found["best_guess"]) == (False, [], 1.0)
    assert "Against the server nothing is guaranteed" in page
    assert "differentially private" not in page


def test_where_nobody_trusts_the_server_it_has_nothing_to_certify(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "noise-cancelling")
    code, out, err = anechoic("certificate", "server")
    assert (code, out) == (2, "")
    assert "each machine has a certificate of its own" in err


@pytest.mark.parametrize("algorithm", ["noise-cancelling", "localized-minibatch", "sgd"])
def test_a_simulated_run_is_certified_as_what_it_is(algorithm: str, tmp_path: Path, anechoic: Command) -> None:
    words = ["--data", "digits", "--unit-norm", "--diameter", "20", "--machines", "4", "--participants", "2"]
    words += ["--algorithm", algorithm, "--out", "run", *([] if algorithm == "sgd" else ["--rho", "2"])]
    words += [] if algorithm.startswith("localized") else ["--rounds", "4", "--batch", "4", "--clip", "0.5"]
    assert anechoic("train", *words)[0] == 0
    assert anechoic("certificate", "run")[0] == 0
    found, page = told(tmp_path), (tmp_path / "certificate.html").read_text("utf-8")
    ledger = read_ledger(tmp_path / "run")
    assert ledger is not None
    if algorithm == "sgd":
        assert not found["private"]
        assert "Nothing is guaranteed" in page
    else:
        rho = certify(ledger, 4).rho
        assert (found["rho"], found["route"]) == (rho, "exact")
        assert found["epsilon"][1]["epsilon"] == epsilon(rho, 1e-5, Route.EXACT)
        assert math.isclose(found["course"][-1]["rho"], rho)
        assert "the run itself protects nobody" in page
        assert "<title>Certificate of a simulation</title>" in page
    assert anechoic("certificate", "run", "--against", "certificate.json")[0] == 0
    lines = (tmp_path / "run" / "ledger.csv").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "ledger.csv").write_text("".join(lines[:-1]))
    code, printed, _ = anechoic("certificate", "run", "--against", "certificate.json")
    assert (code, "FAILED  unchanged" in printed) == (1, True)


def test_a_store_that_was_written_anew_does_not_fit_an_earlier_certificate(tmp_path: Path, anechoic: Command) -> None:
    """Whoever can write the file can make digests that fit each other; the certificate is in other hands."""
    here = ran(tmp_path, "noise-cancelling")
    anechoic("certificate", "machine0")
    assert anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")[0] == 0
    file = tmp_path / "machine0" / store.FILE
    with sqlite3.connect(file) as database:
        database.row_factory = sqlite3.Row
        about = dict(database.execute("SELECT key, value FROM about").fetchall())
        link = about["root"]
        for row in database.execute("SELECT * FROM release ORDER BY number").fetchall():
            changed = store.Row(**{**dict(row), "sigma": row["sigma"] * (2 if row["number"] == 1 else 1)})
            link = store.link(link, changed)
            sign = (changed.sigma, link, changed.number)
            database.execute("UPDATE release SET sigma = ?, chain = ? WHERE number = ?", sign)
            held = database.execute("SELECT memory, reply FROM held WHERE number = ?", (changed.number,)).fetchone()
            if held is not None:
                seal = store.seal(link, held["memory"], held["reply"])
                database.execute("UPDATE held SET seal = ? WHERE number = ?", (seal, changed.number))
    database.close()
    code, out, _ = anechoic("ledger", "verify", "machine0")
    assert (code, "FAILED" in out) == (0, False)
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")
    assert code == 1
    assert "FAILED  unchanged: the ledger's first" in out
    assert here.proposal.run == "test"


def _halved(sheet: dict[str, Any]) -> None:
    for entry in sheet["epsilon"]:
        entry["epsilon"] /= 2


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller rho": lambda sheet: sheet.update(rho=sheet["rho"] / 2),
    "a smaller epsilon": _halved,
    "epsilon at another delta": lambda sheet: sheet["epsilon"][1].update(delta=1e-9),
    "no epsilon": lambda sheet: sheet.update(epsilon=[]),
    "an epsilon that is no number": lambda sheet: sheet["epsilon"][0].update(epsilon="0.1"),
    "an epsilon below all": lambda sheet: sheet["epsilon"][0].update(epsilon=float("nan")),
    "a delta that is none": lambda sheet: sheet["epsilon"][0].update(delta=0),
    "a worse guess": lambda sheet: sheet.update(best_guess=0.51),
    "fewer releases": lambda sheet: sheet.update(releases=1),
    "more releases": lambda sheet: sheet.update(releases=10**30),
    "fewer records": lambda sheet: sheet.update(records=1),
    "a smaller budget": lambda sheet: sheet.update(allowed=[0.1] * 4),
    "no word of the budget": lambda sheet: sheet.pop("allowed"),
    "more left": lambda sheet: sheet.update(left=2.0),
    "a budget that is none": lambda sheet: sheet.update(budget=1e300, left=1e300),
    "another picture": lambda sheet: sheet["course"][0].update(sigma=99.0),
    "another machine": lambda sheet: sheet.update(identity="0" * 32),
    "another run": lambda sheet: sheet.update(run="other"),
    "another algorithm": lambda sheet: sheet.update(algorithm="noisy-sgd"),
    "something left out": lambda sheet: sheet.pop("rho"),
}


def test_a_certificate_whose_figures_were_replaced_is_found_out(tmp_path: Path, anechoic: Command) -> None:
    """The digest is of the ledger: a sheet that has the right one may still claim what it likes."""
    here = World(tmp_path, proposal_of(participants=5))
    (tmp_path / "policy.toml").write_text("rho = 2.5\n")
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 2)
        anechoic("certificate", "machine0", "--policy", "policy.toml")
        here.run(coordinator, 2)  # what comes later does not change what the sheet may say
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")
    true = told(tmp_path)
    assert code == 0
    assert f"figures: ρ = {true['rho']:.6g}" in out
    assert f"ε = {true['epsilon'][1]['epsilon']:.6g} at δ = 1e-05" in out
    account = inspect(tmp_path / "machine0")
    for name, lie in LIES.items():
        sheet = told(tmp_path)
        lie(sheet)
        assert not all(check.held for check in held(account, sheet)), name
    (tmp_path / "lie.json").write_text(json.dumps(true | {"rho": true["rho"] / 2}))
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "lie.json")
    assert (code, "FAILED  figures: the certificate says rho = " in out) == (1, True)
    (tmp_path / "policy.toml").write_text("rho = 2.6\n")
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")
    assert code == 0  # what the policy is, the ledger does not say
    words = ["--policy", "policy.toml", "--certificate", "certificate.json"]
    code, out, _ = anechoic("ledger", "verify", "machine0", *words)
    assert (code, "FAILED  figures: the certificate says budget = 2.5, the policy 2.6" in out) == (1, True)
    code, out, _ = anechoic("certificate", "machine0", "--against", "lie.json", "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)


def test_a_certificate_may_claim_less_than_its_ledger_proves(tmp_path: Path, anechoic: Command) -> None:
    """As one does that an earlier version made, by a route that has been improved since."""
    ran(tmp_path, "noise-cancelling")
    anechoic("certificate", "machine0")
    sheet = told(tmp_path)
    for entry in sheet["epsilon"]:
        entry["epsilon"] *= 1.1
    (tmp_path / "certificate.json").write_text(json.dumps(sheet))
    assert anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")[0] == 0


def test_the_store_of_another_machine_does_not_fit_and_the_sentence_says_so(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "noise-cancelling")
    anechoic("certificate", "machine0")
    code, out, _ = anechoic("ledger", "verify", "machine1", "--certificate", "certificate.json")
    assert code == 1
    assert f"FAILED  unchanged: the certificate is of machine {told(tmp_path)['identity']}, the ledger of" in out


def test_a_ledger_whose_end_was_cut_off_proves_itself_and_verify_says_that_it_cannot_know(
    tmp_path: Path, anechoic: Command
) -> None:
    ran(tmp_path, "noise-cancelling")
    anechoic("certificate", "machine0")
    with sqlite3.connect(tmp_path / "machine0" / store.FILE) as file:
        (last,) = file.execute("SELECT max(number) FROM release").fetchone()
        for table in ("held", "release"):
            file.execute(f"DELETE FROM {table} WHERE number = ?", (last,))
    file.close()
    code, out, _ = anechoic("ledger", "verify", "machine0")
    assert (code, "only --certificate tells" in out) == (0, True)
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")
    assert (code, f"was made from {last} rows, the ledger has {last - 1}" in out) == (1, True)


def test_a_trusted_servers_certificate_is_held_against_its_ledger(tmp_path: Path, anechoic: Command) -> None:
    here = World(tmp_path, proposal_of(algorithm="trusted-server"))
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 3)
    anechoic("certificate", "server", "--out", "early")
    with here.coordinator(resume=True) as coordinator:
        here.run(coordinator, 3)
    code, out, _ = anechoic("ledger", "verify", "server", "--certificate", "early/certificate.json")
    assert (code, "have been added since" in out) == (0, True), out
    sheet = told(tmp_path / "early")
    _halved(sheet)
    (tmp_path / "lie.json").write_text(json.dumps(sheet))
    code, out, _ = anechoic("ledger", "verify", "server", "--certificate", "lie.json")
    assert (code, "FAILED  figures: the certificate says ε = " in out) == (1, True)
    assert anechoic("certificate", "machine0")[0] == 0
    assert anechoic("ledger", "verify", "machine0", "--certificate", "certificate.json")[0] == 0


def test_later_releases_do_not_spoil_a_certificate_and_lost_ones_do(tmp_path: Path, anechoic: Command) -> None:
    here = World(tmp_path, proposal_of(participants=5))
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 2)
        anechoic("certificate", "machine0", "--out", "early")
        before = (tmp_path / "machine0" / store.FILE).read_bytes()
        here.run(coordinator, 2)
        anechoic("certificate", "machine0", "--out", "late")
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "early/certificate.json")
    assert code == 0
    assert "2 rows are as certified, 2 have been added since" in out
    (tmp_path / "machine0" / store.FILE).write_bytes(before)  # a copy from a backup: its own digests all fit
    assert anechoic("ledger", "verify", "machine0")[0] == 0
    code, out, _ = anechoic("ledger", "verify", "machine0", "--certificate", "late/certificate.json")
    assert code == 1
    assert "was made from 4 rows, the ledger has 2" in out


def test_a_ledger_that_does_not_prove_itself_gets_no_certificate(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "noise-cancelling")
    (tmp_path / "policy.toml").write_text("rho = 0.1\n")
    code, out, _ = anechoic("certificate", "machine0", "--policy", "policy.toml")
    assert (code, "FAILED  budget" in out) == (1, True)
    with sqlite3.connect(tmp_path / "machine0" / store.FILE) as file:
        file.execute("UPDATE release SET sigma = 2 * sigma")
    file.close()
    code, out, _ = anechoic("certificate", "machine0", "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    assert not (tmp_path / "certificate.json").exists()


def test_what_is_no_certificate_is_one_sentence(tmp_path: Path, anechoic: Command) -> None:
    ran(tmp_path, "noise-cancelling")
    sheets = ["", "[]", "{", "{}", '{"chain": 1}', '{"chain": {"rows": -1, "digest": "x"}}', "[" * 9999]
    for content in sheets:
        (tmp_path / "sheet.json").write_text(content)
        code, _, err = anechoic("ledger", "verify", "machine0", "--certificate", "sheet.json")
        assert code == 2
        assert "certificate" in err
        assert len(err.strip().splitlines()) == 1


def test_a_course_of_many_releases_is_thinned_and_ends_at_the_last() -> None:
    ledger = Ledger()
    for number in range(1, 451):
        ledger.append(Release(0, number, number - 1, number, 30.0, (Use(0, number - 1, number, 2.0),)))
    lines = course(ledger, 0)
    assert len(lines) == 200
    assert (lines[0]["release"], lines[-1]["release"]) == (1, 450)
    assert lines[-1]["rho"] == certify(ledger, 1).rho
    assert all(before["rho"] <= after["rho"] for before, after in itertools.pairwise(lines))
