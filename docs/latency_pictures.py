"""Draws the experiments of benchmarks/latency.py: the median latency of each sweep, both axes logarithmic.

A filled point: the algorithm keeps up. A hollow one: it falls behind, and its latency grows as long as the load lasts.
`python docs/latency_pictures.py` writes them to docs/pictures/. Colours follow the reader's light or dark setting.
"""

import importlib.util
import sys
from functools import cache
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
PICTURES = {
    "latency-relations.svg": ("relations", "number of relations", "10 updates per second, delay 10 ms"),
    "latency-rate.svg": ("rate", "updates per second", "4 relations, delay 10 ms"),
    "latency-delay.svg": ("delay", "delay of a message, ms", "4 relations, 10 updates per second"),
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 64, 190, 62, 46

LIGHT = ("#59636e", "#8250df", "#0969da", "#1b7c83", "#bc4c00", "#1a7f37")
DARK = ("#9198a1", "#bc8cff", "#58a6ff", "#39c5cf", "#f0883e", "#3fb950")


def _style() -> str:
    def series(colours: tuple[str, ...], page: str) -> str:
        return " ".join(
            f".s{n} {{ stroke: {colour}; fill: {colour} }} .h{n} {{ stroke: {colour}; fill: {page} }}"
            for n, colour in enumerate(colours)
        )

    return f"""
  .page {{ fill: #ffffff; stroke: #d0d7de }} .grid {{ stroke: #d0d7de }}
  .text {{ fill: #1f2328 }} .faint {{ fill: #59636e }}
  {series(LIGHT, "#ffffff")}
  text {{ font: 12px system-ui, sans-serif }} .title {{ font-weight: 600; font-size: 14px }}
  path.line {{ fill: none; stroke-width: 2px }} circle {{ stroke-width: 2px }}
  @media (prefers-color-scheme: dark) {{
    .page {{ fill: #0d1117; stroke: #30363d }} .grid {{ stroke: #30363d }}
    .text {{ fill: #e6edf3 }} .faint {{ fill: #9198a1 }}
    {series(DARK, "#0d1117")}
  }}
"""


@cache
def latency() -> ModuleType:
    """The benchmark, which is not part of the package."""
    name = "benchmarks_latency"
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / "latency.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def picture(file: str) -> str:
    """The SVG of an experiment."""
    name, across, given = PICTURES[file]
    measured = latency().experiment(name)
    values = [float(value) for value in next(iter(measured.values()))]
    medians = [cell["median_ms"] for row in measured.values() for cell in row.values()]
    low, high = floor(log10(min(medians))), ceil(log10(max(medians)))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log10(value / values[0]) / log10(values[-1] / values[0])

    def y(ms: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(ms) - low) / (high - low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">',
        f"<title>Median latency by {escape(across)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6"/>',
        f'<text class="text title" x="16" y="26">Median latency in ms, by {escape(across)}</text>',
        f'<text class="faint" x="16" y="46">{escape(given)}; hollow: falls behind</text>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        lines.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        lines.append(f'<text class="faint" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10**power:,}</text>')
    for value in values:
        lines.append(f'<text class="faint" x="{x(value):.1f}" y="{HEIGHT - 24}" text-anchor="middle">{value:g}</text>')
    last = {name: list(row.values())[-1]["median_ms"] for name, row in measured.items()}
    beside = {name: place for place, name in enumerate(sorted(last, key=lambda one: -last[one]))}
    for number, (name, row) in enumerate(measured.items()):
        points = [(x(value), y(cell["median_ms"]), cell) for value, cell in zip(values, row.values(), strict=True)]
        way = "L".join(f"{px:.1f} {py:.1f}" for px, py, _ in points)
        lines.append(f'<path class="line s{number}" style="fill: none" d="M{way}"/>')
        for px, py, cell in points:
            kind = "h" if cell["falls_behind"] else "s"
            lines.append(f'<circle class="{kind}{number}" cx="{px:.1f}" cy="{py:.1f}" r="4"/>')
        at = TOP + 14 + 24 * beside[name]
        lines.append(f'<circle class="s{number}" cx="{WIDTH - RIGHT + 18}" cy="{at}" r="4"/>')
        lines.append(f'<text class="text" x="{WIDTH - RIGHT + 28}" y="{at + 4}">{name}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    for file in PICTURES:
        (FOLDER / file).write_text(picture(file), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
