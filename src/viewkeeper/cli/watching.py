"""What a mediator is doing, shown while it is at work: a live table, lines now and then, or JSON objects.

terminal    a line for each view and one for each source, drawn again several times a second
elsewhere   a line when something happens to a source, a view or a group; figures every ten seconds
--json      one object a second, each on its own line
"""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from viewkeeper.cli.tables import counted, size, vector
from viewkeeper.cli.view_lines import VIEW_HEADINGS, VIEW_RIGHT, view_rows
from viewkeeper.clock import monotonic, now

if TYPE_CHECKING:
    from viewkeeper.mediator.report import GroupReport, Report, SourceReport

Show = Callable[["Report"], None]

DRAWN_EVERY, JSON_EVERY, LINE_EVERY = 0.25, 1.0, 10.0
RATE_OVER = 5.0
"""Seconds over which the rate of transactions is taken."""

SOURCE_HEADINGS = ("source", "position", "waiting", "kept there", "trouble")
GROUP_HEADINGS = (
    "group", "views", "transactions", "per second", "in progress", "states", "commits", "queries each", "failure",
)  # fmt: skip


class Rates:
    """Transactions per second of each group, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, int]]] = deque()

    def of(self, report: "Report") -> dict[str, float]:
        counts = {group.name: group.transactions for group in report.groups}
        moment = monotonic()
        self._seen.append((moment, counts))
        while len(self._seen) > 2 and moment - self._seen[0][0] > RATE_OVER:
            self._seen.popleft()
        begin, before = self._seen[0]
        passed = moment - begin
        return {name: (count - before.get(name, 0)) / passed if passed else 0.0 for name, count in counts.items()}


@contextmanager
def watching(*, as_json: bool, quietly: bool = False) -> Iterator[Show]:
    """A function to call as often as one likes with a report; quietly, if only the end counts."""
    rates = Rates()
    if as_json and quietly:
        yield lambda _: None
    elif as_json:
        yield _every(JSON_EVERY, lambda report: _write_json(report, rates.of(report)))
    elif sys.stdout.isatty():
        with _drawn(rates, transient=quietly) as draw:
            yield _every(DRAWN_EVERY, draw)
    else:
        lines = _Lines(rates, first_figures_at_once=not quietly)
        yield lines.see


def _every(seconds: float, show: Show, *, at_once: bool = True) -> Show:
    last = float("-inf") if at_once else monotonic()

    def now_and_then(report: "Report") -> None:
        nonlocal last
        if monotonic() - last >= seconds:
            last = monotonic()
            show(report)

    return now_and_then


# --- for programs ---


def _write_json(report: "Report", rates: Mapping[str, float]) -> None:
    click.echo(json.dumps({"time": now().isoformat(), **report_as_json(report, rates)}))
    sys.stdout.flush()


def report_as_json(report: "Report", rates: Mapping[str, float]) -> dict[str, Any]:
    """A report, with what follows from it."""
    told = asdict(report)
    for group, one in zip(report.groups, told["groups"], strict=True):
        one["transactions_per_second"] = round(rates.get(group.name, 0.0), 3)
        one["queries_per_transaction"] = round(group.queries / group.transactions, 3) if group.transactions else None
    return told


# --- for a terminal ---


@contextmanager
def _drawn(rates: Rates, *, transient: bool) -> Iterator[Show]:
    from rich.live import Live

    # Drawn when it is told to: no thread of its own beside a Spark that is being started.
    with Live(auto_refresh=False, transient=transient, redirect_stdout=False, redirect_stderr=False) as live:
        yield lambda report: live.update(_picture(report, rates.of(report)), refresh=True)


def _picture(report: "Report", rates: Mapping[str, float]) -> Any:
    from rich.console import Group
    from rich.text import Text

    from viewkeeper.cli.tables import drawn_table

    parts = [
        drawn_table(VIEW_HEADINGS, view_rows(report, rates), right=VIEW_RIGHT),
        Text(),
        drawn_table(SOURCE_HEADINGS, [source_cells(source) for source in report.sources], right=(2, 3)),
    ]
    for group in report.groups:
        if group.failure is not None:
            parts += [Text(), Text(f"stopped: {', '.join(group.views) or group.name}: {group.failure}", style="bold")]
    for view, reason in report.halted.items():
        parts += [Text(), Text(f"halted: {view}: {reason}", style="bold"), Text(way_out(view))]
    return Group(*parts)


# --- the words ---


def source_cells(source: "SourceReport") -> tuple[str, ...]:
    """A source under SOURCE_HEADINGS."""
    return (
        source.name,
        source.upto.lstrip("0") or "0",
        str(source.waiting),
        "-" if source.retained is None else size(source.retained),
        trouble(source) or "-",
    )


def trouble(source: "SourceReport") -> str | None:
    """What is the matter with a source."""
    if source.failure is not None:
        return f"stopped: {source.failure}"
    if source.trouble is None:
        return None
    again = f"again in {source.retry_in:.0f} s" if source.retry_in >= 1 else "trying again"
    tried = f"out of reach for {source.unreachable_for:.0f} s, tried {source.attempts} times"
    return f"{tried}, {again}: {_one_line(source.trouble)}"


def group_cells(group: "GroupReport", rate: float | None) -> tuple[str, ...]:
    """A group under GROUP_HEADINGS."""
    return (
        group.name,
        ", ".join(group.views),
        str(group.transactions),
        "-" if rate is None else f"{rate:.1f}",
        str(group.in_progress),
        str(group.states),
        str(group.commits),
        f"{group.queries / group.transactions:.2f}" if group.transactions else "-",
        group.failure or "-",
    )


def _one_line(text: str) -> str:
    """Drivers explain themselves in several."""
    return " ".join(text.split())


def way_out(view: str) -> str:
    """What to do about a halted view."""
    return f"  the way out: viewkeeper reload {view}"


def summary(report: "Report") -> str:
    """What was done, in a line."""
    total = {
        name: sum(getattr(group, name) for group in report.groups)
        for name in ("transactions", "states", "commits", "queries")
    }
    each = f" with {total['queries'] / total['transactions']:.2f} queries each" if total["transactions"] else ""
    return (
        f"{counted(total['transactions'], 'transaction')} became {counted(total['states'], 'state')} in "
        f"{counted(total['commits'], 'commit')}{each}"
    )


# --- lines ---


class _Lines:
    """Lines for a log: what changes, as it does; figures now and then."""

    def __init__(self, rates: Rates, *, first_figures_at_once: bool) -> None:
        self._rates = rates
        self._said: dict[str, str | None] = {}
        self._figures = _every(LINE_EVERY, self._say_figures, at_once=first_figures_at_once)

    def see(self, report: "Report") -> None:
        for source in report.sources:
            matter = source.failure or source.trouble
            self._say_once(
                f"source {source.name}",
                f"stopped: {source.failure}" if source.failure else matter and f"out of reach: {matter}",
                "reached again",
            )
        for group in report.groups:
            self._say_once(f"group {group.name}", group.failure and f"stopped: {group.failure}", "goes on")
        for view, reason in report.halted.items():
            self._say_once(f"view {view}", f"halted: {reason}; {way_out(view).strip()}", "goes on")
        self._figures(report)

    def _say_once(self, what: str, matter: str | None, over: str) -> None:
        before = self._said.get(what)
        # The reasons of one trouble may differ from try to try: only that there is one is news.
        if (before is None) != (matter is None):
            _line(f"{what}: {matter or over}")
        self._said[what] = matter

    def _say_figures(self, report: "Report") -> None:
        rate = sum(self._rates.of(report).values())
        positions = vector({source.name: source.upto for source in report.sources})
        _line(f"{summary(report)}, {rate:.1f} per second; at {positions}")


def _line(text: str) -> None:
    click.echo(f"{now():%H:%M:%S} {_one_line(text)}")
    sys.stdout.flush()
