"""Figure 10 of the summary-delta paper at its own sizes, measured and drawn: maintained and rematerialized.

    python benchmarks/retail_figure.py [--figure docs/pictures/figure-10.svg] [--page docs/summary-tables.md]
                                       [--rounds 5] [--warm-ups 2] [--quick]

    propagate + refresh    one commit: the changes appended to pos, propagated, all tables refreshed and written
    rematerialize          one commit: the changes appended to pos, all tables computed along the lattice and written
    propagate              the summary-deltas alone, with the lattice and without

All of it is Arrow on the driver: no engine is compared with another. Prints JSON: the medians of the rounds after
warm-ups, all ways in turn. --figure is where the drawing goes. --page is a page with two comments, between which the
drawing and the table go. It prints, draws and writes nothing if any table is not exactly what Spark computes from pos.
--quick shows that everything works; its figures mean little.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from figure10 import MAINTAIN, PROPAGATE, REMATERIALIZE, WITHOUT_LATTICE, Panel, draw
from pyspark.sql import SparkSession
from retail_data import Retail
from retail_rounds import Medians, in_turns, progress
from retail_warehouse import INSERTION, UPDATE, RetailWarehouse

from viewkeeper.lake.tables.spark_session import local_session

SERIES = {
    REMATERIALIZE: "rematerialize",
    MAINTAIN: "commit",
    WITHOUT_LATTICE: "propagate_on_driver_without_lattice",
    PROPAGATE: "propagate_on_driver",
}
KINDS = {UPDATE: ("a", "b"), INSERTION: ("c", "d")}
BEGIN, END = "<!-- figure 10: measured -->", "<!-- figure 10: end -->"


@dataclass(frozen=True)
class Effort:
    """Sizes of pos, and of the changes of the largest of these; of the others the largest changes are measured."""

    pos: Sequence[int] = (100_000, 200_000, 300_000, 400_000, 500_000)
    changes: Sequence[int] = (1_000, 2_500, 5_000, 7_500, 10_000)
    warm_ups: int = 2
    rounds: int = 5

    def batches(self, pos: int) -> int:
        """Batches of one kind that a warehouse gets: all sizes of changes are measured on the largest one alone."""
        return (self.warm_ups + self.rounds) * (len(self.changes) if pos == max(self.pos) else 1)


QUICK = Effort(pos=(20_000, 40_000), changes=(200, 400), warm_ups=1, rounds=2)


def measure(spark: SparkSession, home: Path, effort: Effort) -> dict[str, Panel]:
    """The four panels; `Inexact` if any result is wrong."""
    shops = []
    for rows in effort.pos:
        progress(f"loading {rows:,} sales")
        shops.append(RetailWarehouse(Retail(rows, batches=effort.batches(rows), spark=spark), home / str(rows)))
    how = {"warm_ups": effort.warm_ups, "rounds": effort.rounds, "in_spark": False}
    *fewer, most = sorted(effort.changes)
    largest = shops[-1]
    panels = {}
    for kind, (by_changes, by_pos) in KINDS.items():
        of_pos = in_turns(shops, kind, most, **how)
        of_changes = {size: in_turns([largest], kind, size, **how)[largest.retail.rows] for size in fewer}
        panels[by_changes] = _panel(of_changes | {most: of_pos[largest.retail.rows]}, fixed=largest.retail.rows)
        panels[by_pos] = _panel(of_pos, fixed=most)
    return dict(sorted(panels.items()))


def _panel(medians: Mapping[int, Medians], fixed: int) -> Panel:
    sizes = sorted(medians)
    seconds = {series: [medians[size][way] for size in sizes] for series, way in SERIES.items()}
    return {"x": sizes, "fixed": fixed, "seconds": seconds}


def table(panels: Mapping[str, Panel]) -> str:
    """The measurements in Markdown."""
    return "\n".join(
        [
            f"| panel | changes | pos | {' | '.join(SERIES)} | {REMATERIALIZE} / {MAINTAIN} |",
            f"|---|---|---|{'---|' * (len(SERIES) + 1)}",
            *(line for letter, panel in panels.items() for line in _lines(letter, panel)),
        ]
    )


def _lines(letter: str, panel: Panel) -> Iterator[str]:
    for place, size in enumerate(panel["x"]):
        changes, pos = (size, panel["fixed"]) if letter in "ac" else (panel["fixed"], size)
        taken = {series: panel["seconds"][series][place] for series in SERIES}
        cells = " | ".join(f"{1000 * seconds:.0f} ms" for seconds in taken.values())
        yield f"| {letter} | {changes:,} | {pos:,} | {cells} | {taken[REMATERIALIZE] / taken[MAINTAIN]:.1f} |"


def with_figure(page: str, measured: str, figure: str | None) -> str:
    """A page with the table, and the drawing if there is one, between the two comments; ValueError if it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN} and {END}, between which the table goes")
    drawn = f"![Figure 10: seconds against sizes, maintained and rematerialized]({figure})\n\n" if figure else ""
    return f"{before}{BEGIN}\n\n{drawn}{measured}\n\n{END}{after}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--figure", type=Path)
    options.add_argument("--page", type=Path)
    options.add_argument("--rounds", type=int, default=Effort.rounds)
    options.add_argument("--warm-ups", type=int, default=Effort.warm_ups)
    options.add_argument("--quick", action="store_true")
    given = options.parse_args()
    effort = QUICK if given.quick else Effort(rounds=given.rounds, warm_ups=given.warm_ups)
    with tempfile.TemporaryDirectory(prefix="viewkeeper-bench-") as home:
        panels = measure(local_session(), Path(home), effort)
    if given.figure is not None:
        given.figure.write_text(draw(panels), encoding="utf-8")
    if given.page is not None:
        figure = os.path.relpath(given.figure, given.page.parent) if given.figure is not None else None
        page = with_figure(given.page.read_text(encoding="utf-8"), table(panels), figure)
        given.page.write_text(page, encoding="utf-8")
    print(json.dumps({"cores": os.cpu_count(), "rounds": effort.rounds, "panels": panels}, indent=2))
    # Not `spark.stop()`: it waits for its shutdown hooks, and there is nothing left to save.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
