"""Draws the packages of viewkeeper and what they import: `docs/pictures/packages.svg`.

A package stands above all that it imports. Of its imports only those are drawn that do not follow from the others.
"""

from html import escape
from pathlib import Path

import grimp

FOLDER = Path(__file__).resolve().parent / "pictures"
FILE = "packages.svg"
WIDTH, ROW, BOX, TALL = 860, 74, 104, 34
COLUMNS = {"demo": -1.0, "project": 0.0, "sim": 2.2, "checker": 2.2, "planner": 0.0, "storage": -2.0, "summary": -1.0}
"""where the middle of a row would put a package behind a line of others"""
COMMON = {"errors", "clock", "levels", "durations", "__main__"}
"""what everything may use, and what uses everything"""


def imports() -> dict[str, set[str]]:
    """The packages below `viewkeeper`, each with those that it imports."""
    graph = grimp.build_graph("viewkeeper", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {"viewkeeper"}:
        own = module.split(".")[1]
        found.setdefault(own, set())
        below = (one.split(".") for one in graph.find_modules_directly_imported_by(module))
        found[own] |= {parts[1] for parts in below if len(parts) > 1} - {own}
    return {own: below - COMMON for own, below in found.items() if own not in COMMON}


def reduced(below: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without imports that follow from others."""

    def all_below(package: str) -> set[str]:
        return below[package] | {one for direct in below[package] for one in all_below(direct)}

    return {
        own: {one for one in direct if not any(one in all_below(other) for other in direct)}
        for own, direct in below.items()
    }


def heights(below: dict[str, set[str]]) -> dict[str, int]:
    """The row of each package, counted from below."""

    def height(package: str) -> int:
        return 1 + max((height(one) for one in below[package]), default=-1)

    return {package: height(package) for package in below}


def picture() -> str:
    below = imports()
    rows: dict[int, list[str]] = {}
    for package, height in sorted(heights(below).items()):
        rows.setdefault(height, []).append(package)
    top = max(rows)
    places: dict[str, tuple[float, float]] = {}
    for height, packages in rows.items():
        free = [package for package in packages if package not in COLUMNS]
        columns = {package: number - (len(free) - 1) / 2 for number, package in enumerate(free)}
        for package in packages:
            column = COLUMNS.get(package, columns.get(package, 0.0))
            places[package] = WIDTH / 2 + column * (BOX + 40), 30 + (top - height) * ROW
    tall = 30 + top * ROW + TALL + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" width="{WIDTH}" role="img">',
        "<title>The packages of viewkeeper, each above what it imports</title>",
        "<style>rect{fill:#eef3fa;stroke:#35608f}line{stroke:#8a9bb0}text{font:13px sans-serif;fill:#1c2733}</style>",
    ]
    for package, direct in sorted(reduced(below).items()):
        x, y = places[package]
        for one in sorted(direct):
            to_x, to_y = places[one]
            lines.append(f'<line x1="{x:g}" y1="{y + TALL:g}" x2="{to_x:g}" y2="{to_y:g}"/>')
    for package, (x, y) in sorted(places.items()):
        lines.append(f'<rect x="{x - BOX / 2:g}" y="{y:g}" width="{BOX}" height="{TALL}" rx="5"/>')
        lines.append(f'<text x="{x:g}" y="{y + 22:g}" text-anchor="middle">{escape(package)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"
