"""How much memory a process has held."""

from __future__ import annotations

import re
from pathlib import Path


def peak_memory() -> float:
    """Return the most memory that this process has held, in GiB (of this program alone, unlike getrusage's)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 2**20
