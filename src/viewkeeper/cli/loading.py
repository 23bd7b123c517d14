"""The load of a view, shown while it runs: rows so far, how many a second, how long it still takes.

    terminal     a bar that is drawn again as rows come, and goes away at the end
    elsewhere    a line every few seconds; none for a load that takes less

How many rows there are is what a source thinks without counting them, so it is told as "about".
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from viewkeeper.cli.progress import passing_line
from viewkeeper.clock import monotonic

if TYPE_CHECKING:
    from viewkeeper.maintenance.load_progress import LoadProgress, WatchLoad
    from viewkeeper.warehouse import Warehouse

DRAWN_EVERY, LINE_EVERY = 0.1, 5.0
BAR = 24
Say = Callable[[str], None]


@contextmanager
def load_shown(
    warehouse: "Warehouse", view: str = "the view", *, quiet: bool, say: Say | None = None
) -> Iterator[None]:
    """While the block runs, the loads of this warehouse are shown on standard error; in a terminal by `say`, if its
    caller has a passing line already."""
    with _shown(view, quiet, say) as watch:
        warehouse.watch_loads(watch)
        try:
            yield
        finally:
            warehouse.watch_loads(None)


@contextmanager
def _shown(view: str, quiet: bool, say: Say | None) -> "Iterator[WatchLoad | None]":
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with nullcontext(say) if say is not None else passing_line() as line:
            yield _watching(view, lambda figures: line(figures.bar() + figures.text()), DRAWN_EVERY, each_step=True)
    else:
        yield _watching(view, lambda figures: print(figures.text(), file=sys.stderr, flush=True), LINE_EVERY)


def _watching(view: str, show: "Callable[[Figures], None]", every: float, *, each_step: bool = False) -> "WatchLoad":
    figures = Figures(view)
    last = monotonic()

    def watch(load: "LoadProgress") -> None:
        nonlocal last
        another = figures.see(load)
        if (another and each_step) or monotonic() - last >= every:
            last = monotonic()
            show(figures)

    return watch


class Figures:
    """What is known of a load, and what follows from it."""

    def __init__(self, view: str) -> None:
        self._view = view
        self._since = monotonic()
        self.load: LoadProgress | None = None

    def see(self, load: "LoadProgress") -> bool:
        """Whether another step has begun."""
        before, self.load = self.load, load
        news = before is None or before.relation != load.relation or load.rows < before.rows
        if news:
            self._since = monotonic()
        return news

    def bar(self) -> str:
        """`[######..................] `; nothing if it is not known how much is left."""
        load = self.load
        if load is None or load.relation is None or not load.total:
            return ""
        done = round(min(load.rows / load.total, 1.0) * BAR)
        return f"[{'#' * done}{'.' * (BAR - done)}] "

    def text(self) -> str:
        """`reading shop.orders: 120,000 of about 1,000,000 rows, 52,000 a second, 17 s left`."""
        load = self.load
        assert load is not None, "something was seen before it is shown"
        if load.relation is None:
            # Over views that are stored, nothing was read from sources.
            return f"computing {self._view}" + (f" from {load.rows:,} rows" if load.rows else "")
        known = load.total is not None and load.total >= load.rows
        parts = [f"reading {load.relation}: {load.rows:,}{f' of about {load.total:,}' if known else ''} rows"]
        passed = monotonic() - self._since
        if load.rows and passed > 0:
            rate = load.rows / passed
            parts.append(f"{rate:,.0f} a second")
            if known and load.total is not None:
                parts.append(f"{duration((load.total - load.rows) / rate)} left")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """`9 s`, `2 min`, `1 h 5 min`."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
