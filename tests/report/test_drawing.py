"""Pictures: well-formed, with a text alternative, in their frame, and to be told apart without full colour sight."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report import samples

from anechoic.report import (
    Axis,
    Bars,
    Dot,
    Dots,
    Figure,
    Histograms,
    Lines,
    Page,
    Series,
    reproduction,
    standalone,
    study,
)
from anechoic.report.lines import FINEST
from anechoic.report.svg import DARK, LIGHT, Picture, inline, line, marks

SVG = "{http://www.w3.org/2000/svg}"


def pictures(page: Page) -> list[Picture]:
    return [
        panel
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Figure)
        for panel in block.panels
    ]


ALL = [
    *pictures(reproduction.page(samples.reproduction())),
    *pictures(study.page(samples.study())),
    *pictures(study.page(samples.named_study())),
    Bars(title="Noise", label="noise / signal", rows=(("the plan", 0.047), ("a record a message", 0.9), ("none", 0.0))),
]


@pytest.mark.parametrize("picture", ALL, ids=lambda picture: picture.title)
def test_a_picture_is_well_formed_and_says_what_it_shows(picture: Picture) -> None:
    root = ElementTree.fromstring(inline(picture, "x"))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text == picture.title
    assert len(description.text or "") > 40
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


@pytest.mark.parametrize("picture", ALL, ids=lambda picture: picture.title)
def test_a_picture_stays_in_its_frame(picture: Picture) -> None:
    height, drawing = picture.draw()
    for path in re.findall(r' d="([^"]+)"', drawing):
        for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", path):
            assert -1 <= float(x) <= 401
            assert -1 <= float(y) <= height


def test_a_picture_of_its_own_brings_its_legend_and_its_style() -> None:
    picture = ALL[0]
    root = ElementTree.fromstring(standalone(picture))
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert picture.title in words
    assert all(key.name in words for key in picture.legend())
    assert root.find(f"{SVG}style") is not None or root.find(f".//{SVG}style") is not None


def test_values_that_cannot_be_drawn_are_left_out() -> None:
    broken = Series(name="a", look=0, x=[1, 2, 3, 4], y=[1, math.nan, math.inf, 0], spread=[1, 1, 1, math.nan])
    chart = Lines(title="t", x=Axis("x", log=True), y=Axis("y", log=True), series=(broken,))
    assert broken.points(chart.x, chart.y) == [(1, 1, 1)]
    assert "nan" not in inline(chart, "x")
    lost = Dots(title="t", label="y", rows=(("a", (Dot(name="b", look=0, value=math.nan, reach=1),)),))
    assert "nan" not in lost.draw()[1]


@pytest.mark.parametrize("empty", [(), (Series(name="a", look=0, x=[], y=[]),)])
def test_a_chart_of_nothing_is_an_empty_frame(empty: tuple[Series, ...]) -> None:
    chart = Lines(title="t", x=Axis("x"), y=Axis("y"), series=empty)
    ElementTree.fromstring(inline(chart, "x"))
    assert chart.legend() == ()


def test_a_long_line_is_thinned_and_keeps_its_ends() -> None:
    points = Series(name="a", look=0, x=range(5000), y=range(5000)).points(Axis("x"), Axis("y"))
    assert len(points) == FINEST
    assert (points[0][0], points[-1][0]) == (0, 4999)


def test_what_is_at_the_limit_is_drawn_on_this_side_of_it_and_what_is_above_on_the_other() -> None:
    def ends(values: list[float]) -> tuple[float, float, float]:
        drawing = Histograms(title="t", label="x", rows=(("a", values),), limit=1.0, least=0.5).draw()[1]
        bar, limit = (
            re.search(r"M([\d.]+),\d+v-25H([\d.]+)V", drawing),
            re.search(r"M([\d.]+),15V\d+\" class=\"limit", drawing),
        )
        assert bar is not None
        assert limit is not None
        return float(bar[2]), float(bar[1]), float(limit[1])

    left, right, limit = ends([1.0, 1.0])
    assert left < right <= limit
    left, right, limit = ends([1.02, 1.02])
    assert limit <= left < right


def test_series_differ_without_colour() -> None:
    drawn = {re.sub(r"look\d+", "", line([(0, 0), (9, 9)], look) + marks([(5, 5)], look)) for look in range(len(LIGHT))}
    assert len(drawn) == len(LIGHT) == 9
    assert len({line([(0, 0), (9, 9)], look) for look in range(9)}) == 9
    assert len({marks([(5, 5)], look) for look in range(9)}) == 9


# Machado, Oliveira and Fernandes (2009), severity 1: how linear RGB looks to whom.
SIGHT = {
    "full": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}


@pytest.mark.parametrize(("colours", "page"), [(LIGHT, "#ffffff"), (DARK, "#14171c")], ids=["light", "dark"])
def test_every_colour_stands_out_from_the_page(colours: tuple[str, ...], page: str) -> None:
    def luminance(colour: str) -> float:
        return float(_linear(colour) @ [0.2126, 0.7152, 0.0722])

    for colour in colours:
        low, high = sorted((luminance(colour), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= 3


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart_by_everybody(colours: tuple[str, ...], sight: str) -> None:
    seen = [_lab(SIGHT[sight] @ _linear(colour)) for colour in colours]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) > 18


def _linear(colour: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    value = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _lab(rgb: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
