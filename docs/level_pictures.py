"""Draws a worked example of the simulator as a sequence diagram: sources, warehouse, messages, states.

    source      warehouse
      ● insert      │          a commit; the line that leaves it arrives when the transaction is delivered
      │╲            │
      │ ╲──────────▶│ U1
      │◀╌╌╌╌╌╌╌╌╌╌╌╌│ asks     a query, and its answer
      │             ▇ state    what readers see from here on: right, or not

`python docs/level_pictures.py` writes all of them to docs/pictures/. Colours follow the reader's light or dark setting.
"""

import sys
from collections import deque
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

from viewkeeper.checker.judgement import Reason
from viewkeeper.messages import Query, Transaction, ViewDelta
from viewkeeper.sim.examples import EXAMPLES
from viewkeeper.sim.report import Report
from viewkeeper.sim.script import parse_updates
from viewkeeper.sim.trace import Observer, describe_changes, describe_query, describe_rows

FOLDER = Path(__file__).resolve().parent / "pictures"
PICTURES = {
    "level-none.svg": "strobe-1",
    "level-convergent.svg": "strobe-4",
    "level-weak.svg": "strobe-5",
    "level-strong.svg": "strobe-3",
    "level-complete.svg": "strobe-1-sweep",
}
ROW, TOP, LEFT, BETWEEN, RIGHT = 24, 70, 190, 190, 270
"""pixels: between two events, above the first, left of the first source, between two lines, right of the warehouse"""
WRONG = {Reason.NOT_CONVERGED, Reason.NO_SOURCE_STATE, Reason.WRONG_CLAIM, Reason.SPLIT_GLOBAL_TRANSACTION}

STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de } .line { stroke: #afb8c1 } .text { fill: #1f2328 } .faint { fill: #59636e }
  .update { stroke: #0969da } .asks { stroke: #8c959f; stroke-dasharray: 4 3 } .answer { stroke: #8250df }
  .dot { fill: #0969da } .reads { fill: #8250df } .right { fill: #1a7f37 } .wrong { fill: #cf222e }
  .on { fill: #ffffff }
  text { font: 12px system-ui, sans-serif; paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
  .on, .title { stroke: none } .title { font-weight: 600; font-size: 14px }
  path { fill: none; stroke-width: 1.5px }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d } .line { stroke: #484f58 } .text { fill: #e6edf3 } .faint { fill: #9198a1 }
    .update { stroke: #58a6ff } .asks { stroke: #768390 } .answer { stroke: #bc8cff }
    .dot { fill: #58a6ff } .reads { fill: #bc8cff } .right { fill: #238636 } .wrong { fill: #da3633 }
    text { stroke: #0d1117 } .on { stroke: none }
  }
"""


@dataclass
class Drawing(Observer):
    """What happened, one row each, as pieces of SVG."""

    columns: dict[str, int]
    names: dict[tuple[str, str], str]
    rows: int = 0
    states: list[tuple[int, str]] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    _commits: dict[tuple[str, str], int] = field(default_factory=dict)
    _asked: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)
    _answers: dict[int, int] = field(default_factory=dict)

    @property
    def warehouse(self) -> int:
        return max(self.columns.values()) + BETWEEN

    def committed(self, transaction: Transaction) -> None:
        row = self._next()
        self._commits[transaction.source, transaction.position] = row
        part = f" of {', '.join(transaction.global_ids)}" if transaction.parts else ""
        name = self.names[transaction.source, transaction.position]
        self._dot(transaction.source, row, "dot", f"{name}{part}: {describe_changes(transaction.changes)}")

    def delivered(self, transaction: Transaction) -> None:
        row, key = self._next(), (transaction.source, transaction.position)
        self._arrow("update", self.columns[transaction.source], self._commits[key], self.warehouse, row)
        self._beside(row, f"receives {self.names[key]}", "faint")

    def asked(self, ticket: int, query: Query) -> None:
        row = self._next()
        self._asked.setdefault(query.source, deque()).append((ticket, row))
        self._beside(row, f"asks {query.source}: {describe_query(query)}", "faint")

    def answered(self, source: str, query: Query, rows: Any) -> None:
        row = self._next()
        ticket, asked = self._asked[source].popleft()
        self._answers[ticket] = row
        self._arrow("asks", self.warehouse, asked, self.columns[source], row)
        self._dot(source, row, "reads", f"answers {describe_rows(rows)}")

    def answer_delivered(self, ticket: int, query: Query, rows: Any) -> None:
        row = self._next()
        self._arrow("answer", self.columns[query.source], self._answers[ticket], self.warehouse, row)
        self._beside(row, f"receives {describe_rows(rows)}", "faint")

    def installed(self, delta: ViewDelta, number: int, view: Any) -> None:
        self.states.append((self._next(), describe_rows(view)))

    def _next(self) -> int:
        self.rows += 1
        return self.rows

    def _dot(self, source: str, row: int, kind: str, label: str) -> None:
        x, y = self.columns[source], height(row)
        self.pieces.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="4"/>')
        self.pieces.append(f'<text class="text" x="{x - 9}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')

    def _beside(self, row: int, label: str, kind: str) -> None:
        x, y = self.warehouse + 10, height(row) + 4
        self.pieces.append(f'<text class="{kind}" x="{x}" y="{y}">{escape(label)}</text>')

    def _arrow(self, kind: str, x1: int, row1: int, x2: int, row2: int) -> None:
        y1, y2 = height(row1), height(row2)
        towards = 1 if x2 > x1 else -1
        x1, x2 = x1 + 5 * towards, x2 - 5 * towards
        head = f"M{x2 - 7 * towards} {y2 - 5}L{x2} {y2}L{x2 - 7 * towards} {y2 + 1}"
        self.pieces.insert(0, f'<path class="{kind}" d="M{x1} {y1}L{x2} {y2}"/><path class="{kind}" '
                              f'style="stroke-dasharray: none" d="{head}"/>')  # fmt: skip


def height(row: int) -> int:
    """The y of an event."""
    return TOP + ROW * row


def picture(name: str) -> str:
    """The SVG of an example."""
    example = EXAMPLES[name]
    sources = sorted({relation.split(".")[0] for relation in example.relations})
    script, names = parse_updates(example.updates)
    longest = max(len(describe_changes(part.changes)) for part in script.get(sources[0], ()))
    left = max(LEFT, 50 + 7 * longest)
    drawing = Drawing({source: left + BETWEEN * place for place, source in enumerate(sources)}, names)
    told: list[str] = []
    report = example.play(told.append, drawing)
    return _page(drawing, report, told)


def _page(drawing: Drawing, report: Report, told: list[str]) -> str:
    width, end = drawing.warehouse + RIGHT, height(drawing.rows + 1)
    verdict, *because = report.verdict_line().splitlines()
    below = [verdict.partition(" (")[0], *(line for text in because for line in wrap(text.strip(), width // 7))]
    tall = end + 14 + 18 * len(below)
    wrong = {one.state for one in report.claimed.violations if one.reason in WRONG}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" width="{width}" role="img">',
        f"<title>{escape(told[0])}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{tall - 1}" rx="6"/>',
        f'<text class="text title" x="16" y="26">{escape(report.scenario.algorithm)}</text>',
        f'<text class="faint" x="16" y="46">{escape(told[2])}; {escape(told[3].partition(";")[0])}</text>',
    ]
    for called, x in {**drawing.columns, "warehouse": drawing.warehouse}.items():
        lines.append(f'<text class="text title" x="{x}" y="{TOP}" text-anchor="middle">{called}</text>')
        lines.append(f'<path class="line" d="M{x} {TOP + 8}V{end}"/>')
    lines += drawing.pieces
    for number, (row, rows) in enumerate(drawing.states, 1):
        text, x, y = f"state {number}: V = {rows}", drawing.warehouse - 5, height(row) - 9
        kind = "wrong" if number in wrong else "right"
        lines.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{22 + 6.3 * len(text):.0f}" height="19" rx="4"/>')
        lines.append(f'<text class="on" x="{x + 11}" y="{y + 14}">{escape(text)}</text>')
    for place, line in enumerate(below):
        kind = "text title" if place == 0 else "faint"
        lines.append(f'<text class="{kind}" x="16" y="{end + 14 + 18 * place}">{escape(line)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    for file, example in PICTURES.items():
        (FOLDER / file).write_text(picture(example), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
