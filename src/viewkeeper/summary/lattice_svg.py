"""The SVG of a lattice: no scripts, no fonts to fetch, and a background of its own.

The colours follow the reader's light or dark setting, background included, so that it is readable on any page. Text is
in a font of equal widths, so that the size of a box is known without measuring. There are no ids: several drawings can
stand in one page.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from viewkeeper.summary.cube_lattice import Lattice
from viewkeeper.summary.lattice_layout import Box, Layout, lay_out

Ends = tuple[str, str]

MARGIN = 24.0
LINE_HEIGHT = 18.0
CHARACTER = 7.5
PADDING = 12.0
# Where on its line a label may stand, the best place first.
LABEL_PLACES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
# What XML cannot hold, not even escaped.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

STYLE = """
.vk-lattice text { font: 12px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1f2430; }
.vk-lattice .title { font-size: 15px; font-weight: bold; }
.vk-lattice .name { font-weight: bold; }
.vk-lattice .paper { fill: #ffffff; }
.vk-lattice .node rect { fill: #eef3fb; stroke: #3b5b92; stroke-width: 1.5; }
.vk-lattice .node.hidden rect { fill: #f4f4f4; stroke: #777777; stroke-dasharray: 5 4; }
.vk-lattice .edge path { fill: none; stroke: #5b6475; stroke-width: 1.2; }
.vk-lattice .edge.other path { stroke: #8a92a0; stroke-dasharray: 4 4; }
.vk-lattice .edge.chosen path { stroke: #1f2430; stroke-width: 3; }
.vk-lattice .edge.doubtful path { stroke: #b0563f; stroke-dasharray: 1 5; stroke-linecap: round; }
.vk-lattice .join { fill: #8a3d00; stroke: #ffffff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) {
  .vk-lattice text { fill: #e6e9ef; }
  .vk-lattice .paper { fill: #171a21; }
  .vk-lattice .node rect { fill: #22304a; stroke: #8fb1ee; }
  .vk-lattice .node.hidden rect { fill: #24262b; stroke: #9a9a9a; }
  .vk-lattice .edge path { stroke: #a4adbd; }
  .vk-lattice .edge.other path { stroke: #78808e; }
  .vk-lattice .edge.chosen path { stroke: #e6e9ef; }
  .vk-lattice .edge.doubtful path { stroke: #f0937a; }
  .vk-lattice .join { fill: #ffb070; stroke: #171a21; }
}
"""


@dataclass(frozen=True)
class Picture:
    """What is to be shown: the lines of each box, a label (maybe empty) for each edge, what is chosen or hidden."""

    lattice: Lattice[str]
    lines: dict[str, tuple[str, ...]]
    labels: dict[Ends, str]
    chosen: frozenset[Ends] | None
    hidden: frozenset[str]
    doubtful: frozenset[Ends] = frozenset()


def as_svg(picture: Picture, title: str, description: str) -> str:
    """The whole drawing: title, lattice, legend."""
    layout = lay_out(picture.lattice, {node: _size(node, picture) for node in picture.lattice.nodes})
    legend = list(_legend(picture))
    # The title is in larger letters.
    inner = max([layout.width, text_width(title) * 1.25, *(56 + text_width(text) for _, text in legend)])
    top = 2 * MARGIN + LINE_HEIGHT / 2
    foot = top + layout.height + MARGIN
    width, height = inner + 2 * MARGIN, foot + 1.4 * LINE_HEIGHT * len(legend) + MARGIN / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="vk-lattice" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{_text(title)}</title>",
        f"<desc>{_text(description)}</desc>",
        f"<style>{STYLE}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="title" x="{MARGIN:.0f}" y="{MARGIN + 8:.0f}">{_text(title)}</text>',
        f'<g class="lattice" transform="translate({MARGIN + (inner - layout.width) / 2:.1f} {top:.1f})">',
        *_edges(layout, picture),
        *(_node(node, layout.boxes[node], picture) for node in picture.lattice.nodes),
        *_joins(layout, picture.labels),
        "</g>",
        '<g class="legend">',
        *(
            f'<g transform="translate({MARGIN:.0f} {foot + 1.4 * LINE_HEIGHT * row:.1f})">{sign}'
            f'<text x="56" y="12">{_text(text)}</text></g>'
            for row, (sign, text) in enumerate(legend)
        ),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def text_width(text: str) -> float:
    """The width of a text in the font of the drawing; East Asian characters take two places, combining marks none."""
    places = (
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
    return CHARACTER * sum(places)


def _size(node: str, picture: Picture) -> tuple[float, float]:
    """The room for its lines; also as wide as the labels of its edges, so that those of neighbours find places."""
    lines = picture.lines[node]
    beside = [label for ends, label in picture.labels.items() if node in ends]
    return max(map(text_width, (*lines, *beside))) + 2 * PADDING, len(lines) * LINE_HEIGHT + PADDING


def _edges(layout: Layout[str], picture: Picture) -> Iterator[str]:
    # The chosen ones come last, so that they lie on top.
    for ends in sorted(layout.lines, key=lambda ends: ends in (picture.chosen or ())):
        kind = _kind(ends, picture)
        way = " L ".join(f"{x:.1f} {y:.1f}" for x, y in layout.lines[ends])
        above, below = map(_quoted, ends)
        yield f'<g class="{kind}" data-above={above} data-below={below}><path d="M {way}"/></g>'


def _kind(ends: Ends, picture: Picture) -> str:
    if ends in picture.doubtful:
        return "edge doubtful"
    if picture.chosen is None:
        return "edge"
    return "edge chosen" if ends in picture.chosen else "edge other"


def _node(node: str, box: Box, picture: Picture) -> str:
    lines: Sequence[str] = picture.lines[node]
    first = box.y + (box.height - (len(lines) - 1) * LINE_HEIGHT) / 2 + 4
    texts = "".join(
        f'<text class="{"line" if row else "name"}" text-anchor="middle" x="{box.centre:.1f}" '
        f'y="{first + row * LINE_HEIGHT:.1f}">{_text(line)}</text>'
        for row, line in enumerate(lines)
    )
    kind = "node hidden" if node in picture.hidden else "node"
    frame = f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5"/>'
    return f'<g class="{kind}" data-node={_quoted(node)}>{frame}{texts}</g>'


def _joins(layout: Layout[str], labels: dict[Ends, str]) -> Iterator[str]:
    """Labels on the last stretch of their lines, where they are clear of other labels and, next to that, of lines."""
    taken: list[Box] = []
    for ends, label in labels.items():
        if not label:
            continue
        (x1, y1), (x2, y2) = layout.lines[ends][-2:]
        width = text_width(label)
        places = [
            Box(x1 + t * (x2 - x1) - width / 2, y1 + t * (y2 - y1) - LINE_HEIGHT / 2, width, LINE_HEIGHT)
            for t in LABEL_PLACES
        ]
        # min() takes the first of equals, and the best place comes first.
        box = min(places, key=lambda box: (sum(map(box.overlaps, taken)), _lines_behind(box, layout)))
        taken.append(box)
        above, below = map(_quoted, ends)
        yield (
            f'<text class="join" data-above={above} data-below={below} text-anchor="middle" x="{box.centre:.1f}" '
            f'y="{box.y + LINE_HEIGHT / 2 + 4:.1f}">{_text(label)}</text>'
        )


def _lines_behind(box: Box, layout: Layout[str]) -> int:
    """How many lines cross the middle of a box from its left to its right end."""
    middle = box.y + box.height / 2
    return sum(
        box.x <= x1 + (x2 - x1) * (middle - y1) / (y2 - y1) <= box.x + box.width
        for line in layout.lines.values()
        for (x1, y1), (x2, y2) in pairwise(line)
        if y1 <= middle <= y2
    )


def _legend(picture: Picture) -> Iterator[tuple[str, str]]:
    """Signs and their meaning, for what the picture has."""

    def line(kind: str) -> str:
        return f'<g class="{kind}"><path d="M 4 8 L 44 8"/></g>'

    certain = picture.labels.keys() - picture.doubtful
    if picture.chosen is None and certain:
        yield line("edge"), "the table below can be derived from the one above"
    elif picture.chosen is not None and certain:
        yield line("edge chosen"), "the table below is derived this way"
        yield line("edge other"), "it could be derived this way too"
    if picture.doubtful:
        yield line("edge doubtful"), "it could be if every foreign key found its row; nothing rests on that"
    if any("⋈" in label for label in picture.labels.values()):
        yield '<text class="join" x="16" y="12">⋈ t</text>', "after a join with the dimension table t"
    if picture.hidden:
        frame = '<rect x="4" y="0" width="40" height="16" rx="4"/>'
        yield f'<g class="node hidden">{frame}</g>', "stored for other tables, not a view"


def _text(text: str) -> str:
    return escape(NOT_XML.sub("\ufffd", text))


def _quoted(text: str) -> str:
    return quoteattr(NOT_XML.sub("\ufffd", text))
