"""What the site needs besides MkDocs: files of the repository that pages lead to, and docstrings made readable.

A Markdown file outside of ``docs/`` becomes a page of the site where one in ``docs/`` leads to it. A link to any other
file of the repository, which a site does not have, becomes plain text. A page that would load anything from
elsewhere is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")
FOREIGN = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
ROLE = re.compile(r":(?:class|meth|func|mod|attr|data):`~?(?:[\w.]*\.)?(\w+)`")
NUMBERED = re.compile(r"(\]\([^)#\s]*#)(?=\d)")
COLOURS = '<style id="hljs-light"></style><style id="hljs-dark"></style>'
"""Styles of a highlighter that the theme would load from elsewhere: its script stops where it does not find them."""
DOCTEST = re.compile(r"^>>> ", re.MULTILINE)


def _target(page: str, link: str) -> str:
    """Return where a link of a page leads, from ``docs/``."""
    return os.path.normpath(PurePosixPath(page).parent / link)


def on_config(config: Any) -> Any:
    """Let no heading's name begin with a digit: no script may look for such a one, and the theme's stop at it."""
    plain = config.mdx_configs["toc"]["slugify"]
    config.mdx_configs["toc"]["slugify"] = lambda words, sep: re.sub(r"^(?=\d)", "s-", plain(words, sep))
    return config


def on_files(files: Files, config: Any) -> Files:
    """Take the repository's own pages into the site."""
    docs = Path(config.docs_dir)
    for page in list(files.documentation_pages()):
        for _, link, _ in LINK.findall(page.content_string):
            path = _target(page.src_uri, link)
            name = path.removeprefix("../")
            if path.startswith("../") and path.endswith(".md") and files.get_file_from_path(name) is None:
                text = (docs / path).read_text(encoding="utf-8")
                files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Lead to pages of the site, and write out the names of files that it does not have."""
    at = page.file.src_uri
    root = "" if page.file.generated_by else ".."

    def link(found: re.Match[str]) -> str:
        path = os.path.normpath(PurePosixPath("docs" if root else "") / PurePosixPath(at).parent / found[2])
        name = path.removeprefix("docs/")
        if files.get_file_from_path(name) is None:
            return found[1]
        there = os.path.relpath(name, PurePosixPath(at).parent)
        return f"[{found[1]}]({there}{found[3] or ''})"

    return LINK.sub(link, NUMBERED.sub(r"\1s-", markdown))


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load anything from elsewhere; give the theme what its choice of colours looks for."""
    foreign = [tag for tag in FOREIGN.findall(output) if 'rel="canonical"' not in tag]
    if foreign:
        raise PluginError(f"{page.file.src_uri} loads from elsewhere: {foreign[0]}")
    return output.replace("<head>", f"<head>{COLOURS}", 1)


class Docstrings(griffe.Extension):
    """Docstrings as the reference shows them: examples as such, and names without roles."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite what one object says of itself."""
        if obj.docstring is None:
            return
        told = ROLE.sub(r"`\1`", obj.docstring.value)
        if "Examples\n-----" not in told:
            told = DOCTEST.sub("Examples\n--------\n>>> ", told, count=1)
        obj.docstring.value = told
