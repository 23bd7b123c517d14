"""Figure 10 of the summary-delta paper, drawn from measurements: four panels, seconds against sizes, as one SVG.

    (a) update-generating changes of several sizes        (b) as many of them, pos of several sizes
    (c) insertion-generating changes of several sizes     (d) as many of them, pos of several sizes

Propagate without the lattice is dotted, as in the paper. All panels have one axis of seconds, so that they can be
compared. An axis is logarithmic where its values are far apart, or the lower lines, or the smaller sizes, would be one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict
from xml.sax.saxutils import escape

TITLE = "Summary tables on the driver: maintained and rematerialized, written by both"
REMATERIALIZE = "rematerialize"
WITHOUT_LATTICE = "propagate without lattice"
PROPAGATE = "propagate with lattice"
MAINTAIN = "propagate + refresh"


class Panel(TypedDict):
    """The sizes along the axis, the size that stays the same, and the seconds of each of the four series."""

    x: Sequence[float]
    fixed: float
    seconds: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Line:
    """How a series looks: distinguished by colour, by marker and by dashes, each of which is enough alone."""

    colour: str
    marker: str
    dashes: str = "none"


LINES = {
    REMATERIALIZE: Line("#d55e00", "square"),
    MAINTAIN: Line("#0072b2", "circle"),
    WITHOUT_LATTICE: Line("#009e73", "diamond", "2 5"),
    PROPAGATE: Line("#000000", "triangle"),
}
# The title, with the size that stays the same, and what varies.
PANELS = {
    "a": ("update-generating changes, pos of {} rows", "size of the changes"),
    "b": ("{} update-generating changes", "size of pos"),
    "c": ("insertion-generating changes, pos of {} rows", "size of the changes"),
    "d": ("{} insertion-generating changes", "size of pos"),
}

WIDTH, HEIGHT = 980, 800
PLOT_WIDTH, PLOT_HEIGHT = 380, 250
LEFTS, TOPS = (80, 570), (130, 490)
# Beyond this ratio of the largest value to the smallest, equal steps do not fit on the page.
MOST_ON_A_LINEAR_AXIS = 15


@dataclass(frozen=True)
class Axis:
    """Values to places between 0 and 1, and the values that get a tick."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def draw(measurements: Mapping[str, Panel], title: str = TITLE) -> str:
    """The SVG of `{"a": {"x": [...], "fixed": ..., "seconds": {"rematerialize": [...], ...}}, "b": ..., ...}`."""
    _check(measurements)
    series = [taken for panel in measurements.values() for taken in panel["seconds"].values()]
    seconds = fitting_axis([value for taken in series for value in taken])
    body = [part for number, letter in enumerate(PANELS) for part in _panel(number, measurements[letter], seconds)]
    scale = "logarithmic" if seconds.logarithmic else "linear"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            f"<desc>Four panels, seconds ({scale}) against sizes: {', '.join(LINES)}.</desc>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            _text(WIDTH / 2, 34, title, "middle", size=19),
            *_legend(),
            *body,
            "</svg>\n",
        ]
    )


def _check(measurements: Mapping[str, Panel]) -> None:
    if set(measurements) != set(PANELS):
        raise ValueError(f"the panels are {', '.join(PANELS)}, and there are measurements of {sorted(measurements)}")
    for letter, panel in measurements.items():
        if set(panel["seconds"]) != set(LINES):
            raise ValueError(f"panel {letter} needs seconds of {', '.join(LINES)}; it has {sorted(panel['seconds'])}")
        for name, values in {"x": panel["x"], **panel["seconds"]}.items():
            if not values or len(values) != len(panel["x"]):
                raise ValueError(f"panel {letter} has {len(values)} values of {name!r} for {len(panel['x'])} sizes")
            if min(values) <= 0:
                raise ValueError(f"panel {letter} has {min(values)} in {name!r}: sizes and seconds are above 0")


def fitting_axis(values: Sequence[float]) -> Axis:
    """From 0 in equal steps, or in powers of ten when these would hide the small ones."""
    if max(values) / min(values) <= MOST_ON_A_LINEAR_AXIS:
        return linear_axis(values)
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    ticks = [step * 10.0**power for power in range(low, high) for step in (1, 2, 5)]
    first = max(tick for tick in ticks if tick <= min(values))
    last = min([tick for tick in ticks if tick >= max(values)], default=10.0**high)
    shown = tuple(tick for tick in [*ticks, 10.0**high] if first <= tick <= last)
    return Axis(first, last, shown, logarithmic=True)


def linear_axis(values: Sequence[float]) -> Axis:
    """From 0 in four to eight equal steps of 1, 2 or 5 times a power of ten."""
    rough = max(values) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if rough <= times * power * 1.25)
    count = math.ceil(max(values) / step - 1e-9)
    return Axis(0, count * step, tuple(step * number for number in range(count + 1)))


def _panel(number: int, panel: Panel, seconds: Axis) -> Iterator[str]:
    left, top = LEFTS[number % 2], TOPS[number // 2]
    letter = list(PANELS)[number]
    title, varies = PANELS[letter]
    sizes = fitting_axis(panel["x"])
    right, bottom = left + PLOT_WIDTH, top + PLOT_HEIGHT
    yield f'<g id="panel-{letter}">'
    yield _text(left, top - 14, f"({letter}) {title.format(short(panel['fixed']))}", "start", size=15)
    for tick in seconds.ticks:
        y = bottom - PLOT_HEIGHT * seconds.place(tick)
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e3e3e3"/>'
        yield _text(left - 8, y + 4, f"{tick:g}", "end")
    for tick in sizes.ticks:
        x = left + PLOT_WIDTH * sizes.place(tick)
        yield f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}" stroke="#333333"/>'
        yield _text(x, bottom + 20, short(tick), "middle")
    yield f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#333333"/>'
    yield _text((left + right) / 2, bottom + 42, _labelled(f"{varies} (rows)", sizes), "middle")
    yield _text(left - 52, (top + bottom) / 2, _labelled("seconds", seconds), "middle", turned=True)
    for name, line in LINES.items():
        points = sorted(zip(panel["x"], panel["seconds"][name], strict=True))
        places = [(left + PLOT_WIDTH * sizes.place(x), bottom - PLOT_HEIGHT * seconds.place(y)) for x, y in points]
        yield _stroke(line, places)
        for place, (size, taken) in zip(places, points, strict=True):
            yield _marker(line, *place, f"{name}: {taken:.3g} s at {short(size)} rows")
    yield "</g>"


def _labelled(what: str, axis: Axis) -> str:
    return f"{what}, logarithmic" if axis.logarithmic else what


def _legend() -> Iterator[str]:
    left = 80.0
    yield '<g id="legend">'
    for name, line in LINES.items():
        yield _stroke(line, [(left, 66), (left + 44, 66)])
        yield _marker(line, left + 22, 66, name)
        yield _text(left + 54, 71, name, "start", size=14)
        left += 90 + 7.2 * len(name)
    yield "</g>"


def short(size: float) -> str:
    """2500000 as 2.5M: what fits below a tick."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{size / unit:g}{letter}"
    return f"{size:g}"


def _stroke(line: Line, places: Sequence[tuple[float, float]]) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return (
        f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="2.2" '
        f'stroke-dasharray="{line.dashes}" stroke-linecap="round"/>'
    )


def _marker(line: Line, x: float, y: float, told: str) -> str:
    outlines = {
        "circle": "M-4.5 0A4.5 4.5 0 1 1 4.5 0A4.5 4.5 0 1 1 -4.5 0Z",
        "square": "M-4 -4H4V4H-4Z",
        "diamond": "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
        "triangle": "M0 -5L5 4H-5Z",
    }
    return (
        f'<path d="{outlines[line.marker]}" transform="translate({x:.1f} {y:.1f})" fill="{line.colour}">'
        f"<title>{escape(told)}</title></path>"
    )


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 13, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>{escape(text)}</text>'
