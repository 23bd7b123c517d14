"""Figure 10 as SVG: well-formed, complete, and with every point where its measurement belongs."""

from copy import deepcopy
from typing import Any
from xml.etree import ElementTree

import pytest
from figure10 import LINES, PANELS, draw, fitting_axis, linear_axis, short

SVG = "{http://www.w3.org/2000/svg}"


def measurements(slowest: float) -> dict[str, Any]:
    seconds = {
        "rematerialize": [slowest, slowest, slowest],
        "propagate + refresh": [0.4, 0.5, 0.6],
        "propagate without lattice": [0.2, 0.3, 0.4],
        "propagate with lattice": [0.1, 0.15, 0.2],
    }
    change = {"x": [1000, 5000, 10_000], "fixed": 10_000_000, "seconds": seconds}
    pos = {"x": [1e6, 5e6, 1e7], "fixed": 10_000, "seconds": seconds}
    return {"a": deepcopy(change), "b": deepcopy(pos), "c": deepcopy(change), "d": deepcopy(pos)}


def panel_of(drawn: str, letter: str) -> ElementTree.Element:
    (panel,) = [
        group for group in ElementTree.fromstring(drawn).iter(f"{SVG}g") if group.get("id") == f"panel-{letter}"
    ]
    return panel


def places(line: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = [place.split(",") for place in line.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


def texts(element: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in element.iter(f"{SVG}text")]


def test_every_panel_has_its_four_lines_and_says_what_it_shows() -> None:
    drawn = draw(measurements(1.2))
    for letter in PANELS:
        panel = panel_of(drawn, letter)
        lines = list(panel.iter(f"{SVG}polyline"))
        assert [len(places(line)) for line in lines] == [3, 3, 3, 3]
        assert [line.get("stroke-dasharray") != "none" for line in lines] == [
            name.endswith("without lattice") for name in LINES
        ]
        assert len(list(panel.iter(f"{SVG}title"))) == 12
    assert "(a) update-generating changes, pos of 10M rows" in texts(panel_of(drawn, "a"))
    assert "(d) 10k insertion-generating changes" in texts(panel_of(drawn, "d"))
    legend = next(group for group in ElementTree.fromstring(drawn).iter(f"{SVG}g") if group.get("id") == "legend")
    assert texts(legend) == list(LINES)


def test_more_seconds_are_higher_and_larger_sizes_further_right() -> None:
    for slowest in (1.2, 30.0):
        lines = dict(zip(LINES, panel_of(draw(measurements(slowest)), "b").iter(f"{SVG}polyline"), strict=True))
        maintain, remake = places(lines["propagate + refresh"]), places(lines["rematerialize"])
        assert [x for x, _ in maintain] == [118.0 + 490, 270.0 + 490, 460.0 + 490]
        assert maintain[0][1] > maintain[1][1] > maintain[2][1] > remake[2][1]


def test_points_are_joined_in_the_order_of_their_sizes() -> None:
    told = measurements(1.2)
    turned = deepcopy(told)
    turned["a"]["x"].reverse()
    for values in turned["a"]["seconds"].values():
        values.reverse()
    assert draw(turned) == draw(told)


def test_the_seconds_are_logarithmic_when_they_are_far_apart() -> None:
    assert "seconds" in texts(panel_of(draw(measurements(1.2)), "a"))
    assert "seconds, logarithmic" in texts(panel_of(draw(measurements(30.0)), "a"))


def test_sizes_are_logarithmic_when_they_are_far_apart() -> None:
    told = measurements(1.2)
    told["b"]["x"] = [1e5, 1e6, 1e7]
    panel = panel_of(draw(told), "b")
    assert "size of pos (rows), logarithmic" in texts(panel)
    assert {"100k", "1M", "10M"} <= set(texts(panel))
    for line in panel.iter(f"{SVG}polyline"):
        assert [x for x, _ in places(line)] == [570.0, 760.0, 950.0]
    assert "size of pos (rows)" in texts(panel_of(draw(told), "d"))


def test_a_title_with_markup_stays_text() -> None:
    assert texts(ElementTree.fromstring(draw(measurements(1.2), title="a < b & c")))[0] == "a < b & c"


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([10_000], [0, 2000, 4000, 6000, 8000, 10_000]),
        ([0.12, 0.9], [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ([31], [0, 5, 10, 15, 20, 25, 30, 35]),
        ([1e6, 5e7], [0, 1e7, 2e7, 3e7, 4e7, 5e7]),
    ],
)
def test_ticks_in_equal_steps(values: list[float], ticks: list[float]) -> None:
    axis = linear_axis(values)
    assert list(axis.ticks) == pytest.approx(ticks)
    assert axis.place(axis.high) == 1


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.04, 9.0], [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]),
        ([0.1, 2.0], [0.1, 0.2, 0.5, 1, 2]),
        ([1.0, 100.0], [1, 2, 5, 10, 20, 50, 100]),
    ],
)
def test_logarithmic_ticks_hold_all_values(values: list[float], ticks: list[float]) -> None:
    axis = fitting_axis(values)
    assert list(axis.ticks) == pytest.approx(ticks)
    assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)


@pytest.mark.parametrize(("size", "told"), [(0, "0"), (750, "750"), (2500, "2.5k"), (10_000_000, "10M")])
def test_sizes_are_told_in_short(size: float, told: str) -> None:
    assert short(size) == told


def without_panel(told: dict[str, Any]) -> None:
    del told["c"]


def without_series(told: dict[str, Any]) -> None:
    del told["b"]["seconds"]["rematerialize"]


def without_a_value(told: dict[str, Any]) -> None:
    told["b"]["seconds"]["rematerialize"].pop()


def with_no_time_at_all(told: dict[str, Any]) -> None:
    told["b"]["seconds"]["rematerialize"][0] = 0


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_panel, r"the panels are a, b, c, d, and there are measurements of \['a', 'b', 'd'\]"),
        (without_series, "panel b needs seconds of rematerialize"),
        (without_a_value, "panel b has 2 values of 'rematerialize' for 3 sizes"),
        (with_no_time_at_all, "panel b has 0 in 'rematerialize'"),
    ],
)
def test_measurements_that_cannot_be_drawn(spoil: Any, message: str) -> None:
    told = measurements(1.2)
    spoil(told)
    with pytest.raises(ValueError, match=message):
        draw(told)
