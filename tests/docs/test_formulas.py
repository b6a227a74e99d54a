"""Formulas on the site, and as a host of repositories shows them: none is taken for emphasis and swallowed."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
HOOK = runpy.run_path(str(ROOT / "docs" / "formulas.py"))
EMPHASIS = re.compile(r"\*\*[^*]+\*\*|(?<![\w*])\*[^*]+?\*(?![\w*])")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_nothing_of_a_formula_is_left_for_markdown(page: Path) -> None:
    prose = HOOK["LEFT_ALONE"].sub("…", HOOK["in_prose"](page.read_text(encoding="utf-8")))
    bare = re.sub(r"^[*-] ", "", EMPHASIS.sub("", prose), flags=re.MULTILINE)
    assert not re.findall(r"\S*[_^*]\S*", bare.replace("anechoic.problems.torch_model", ""))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_formula_is_emphasis_where_the_page_is_shown_as_it_is(page: Path) -> None:
    shown = MarkdownIt().render(page.read_text(encoding="utf-8"))
    assert not [words for words in re.findall(r"<em>(.*?)</em>", shown, re.DOTALL) if re.search(r"[=≤⟨‖_{]", words[1:])]


def test_every_brace_and_every_word_of_a_formula_is_kept() -> None:
    told = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    plain = re.sub(r"</?su[bp]>|[_^{}*\\∗]", "", told)
    assert re.sub(r"</?su[bp]>|[_^{}*\\∗]", "", HOOK["in_prose"](told)) == plain


def test_formulas_on_lines_of_their_own_are_set_and_examples_are_not() -> None:
    shown = HOOK["on_page_content"](
        '<pre><code>r_k = s_k\n</code></pre><pre><code class="language-py">a_b</code></pre>'
    )
    assert shown.startswith("<pre><code>r<sub>k</sub> = s<sub>k</sub>\n</code></pre>")
    assert "a_b" in shown
