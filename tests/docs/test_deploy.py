"""What the page on deployment shows is what the programs take and say."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from anechoic.protocol.policy import Policy
from anechoic.settings import build

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
SOURCE = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "src" / "anechoic").rglob("*.py"))
).replace("’", "'")
ROWS = [row.split(" | ") for row in re.findall(r"^\| ((?:machine|server|either).*) \|$", PAGE, re.MULTILINE)]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_policy_that_is_shown_is_one_and_shows_every_key() -> None:
    shown = tomllib.loads(blocks("toml")[1].replace("# earlier", "earlier"))
    policy = build(Policy, shown)
    assert policy.whole > 0
    assert {*shown, "rho"} == set(Policy.__dataclass_fields__)


def test_the_service_files_are_whole_and_every_flag_is_flowers() -> None:
    for block in blocks("ini"):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(block.replace("\\\n", ""))
        assert set(unit.sections()) == {"Unit", "Service", "Install"}
        command = unit["Service"]["ExecStart"].removeprefix("/opt/anechoic/bin/")
        own = (ROOT / "src" / "anechoic" / "flower").glob("*.py")
        told = "".join(path.read_text(encoding="utf-8") for path in own)
        assert command.startswith(("flower-superlink ", "anechoic supernode --app "))
        assert not [flag for flag in re.findall(r" (--[a-z-]+)", block) if f'"{flag}"' not in told]


def test_the_certificates_and_keys_are_made_by_the_commands_that_are_shown(tmp_path: Path) -> None:
    if not (shutil.which("openssl") and shutil.which("ssh-keygen")):
        pytest.skip("needs openssl and ssh-keygen")
    for script in (block for block in blocks("sh") if block.startswith(("openssl req", "ssh-keygen"))):
        done = subprocess.run(["sh", "-e"], input=script, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    for secret in ("ca.key", "server.key", "machine.key"):
        assert (tmp_path / secret).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].strip("`")[:40])
def test_every_sentence_of_the_table_of_errors_is_one_that_is_said(row: list[str]) -> None:
    """Sentences stand in the source over several lines and with values in them: compare the words between."""
    assert len(row) == 4
    plain = re.sub(r'"\s*\n\s*f?"', "", SOURCE)
    for part in re.findall(r"`([^`]+)`", row[1]):
        assert part in plain


def test_every_error_of_a_store_sends_to_a_page_that_is_there() -> None:
    assert "docs/deploy.md" in SOURCE
