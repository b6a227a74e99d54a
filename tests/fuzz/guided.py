"""The process in which atheris tries one door, following which lines of the package its inputs reach."""

from __future__ import annotations

import logging
import shutil
import sys
import warnings


def main(name: str, seconds: str) -> None:
    """Try the door of that name for so long; the process ends with an error where there is a finding."""
    import atheris

    with atheris.instrument_imports(include=["anechoic"]):
        from tests.fuzz.doors import Finding, Place, attempt, doors, readable

    logging.disable(logging.ERROR)
    warnings.simplefilter("error")
    place = Place()
    door = next(door for door in doors(place) if door.name == name)
    corpus, words = place.path / "corpus", place.path / "words"
    corpus.mkdir()
    for number, example in enumerate(door.examples):
        (corpus / str(number)).write_bytes(example)
    told = ["".join(f"\\x{byte:02x}" for byte in word[:100]) for word in door.words if word] or ["x"]
    words.write_text("".join(f'"{word}"\n' for word in told))
    flags = [f"-max_total_time={seconds}", "-print_final_stats=1", "-rss_limit_mb=4096", "-max_len=20000"]
    flags += ["-timeout=20", f"-dict={words}", f"-artifact_prefix={place.path}/", str(corpus)]

    def once(content: bytes) -> None:
        try:
            attempt(door, content)
        except Finding:
            print(f"{name}: {readable(content)}", file=sys.stderr)
            raise

    atheris.Setup([sys.argv[0], *flags], once)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(place.path, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
