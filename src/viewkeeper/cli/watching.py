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

from viewkeeper.cli.report_words import one_line, stopped, summary, tried_again, way_out
from viewkeeper.cli.tables import size, vector
from viewkeeper.cli.view_lines import VIEW_HEADINGS, VIEW_RIGHT, view_rows
from viewkeeper.cli.wait_words import waits_for
from viewkeeper.clock import monotonic, now

if TYPE_CHECKING:
    from viewkeeper.mediator.report import GroupReport, Report, SourceReport
    from viewkeeper.mediator.waits import Wait

Show = Callable[["Report"], None]

DRAWN_EVERY, JSON_EVERY, LINE_EVERY = 0.25, 1.0, 10.0
RATE_OVER = 5.0
"""Seconds over which the rate of transactions is taken."""

SOURCE_HEADINGS = ("source", "position", "waiting", "kept there", "trouble")
GROUP_HEADINGS = (
    "group", "views", "transactions", "per second", "in progress", "states", "commits", "queries each", "failure",
)  # fmt: skip


OF_ALL = ""
"""in rates, beside the names of groups: that of all transactions, each counted once"""


class Rates:
    """Transactions per second of each group and of all sources together, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, int]]] = deque()

    def of(self, report: "Report") -> dict[str, float]:
        counts = {group.name: group.transactions for group in report.groups} | {OF_ALL: report.transactions}
        moment = monotonic()
        self._seen.append((moment, counts))
        while len(self._seen) > 2 and moment - self._seen[0][0] > RATE_OVER:
            self._seen.popleft()
        begin, before = self._seen[0]
        passed = moment - begin
        return {name: (count - before.get(name, 0)) / passed if passed else 0.0 for name, count in counts.items()}


@contextmanager
def watching(*, as_json: bool, quietly: bool = False, positions: bool = True) -> Iterator[Show]:
    """A function to call as often as one likes with a report; quietly, if only the end counts, and what goes wrong
    ends it with an error. `positions`: whether lines say how far the streams of the sources have come."""
    rates = Rates()
    if as_json and quietly:
        yield lambda _: None
    elif as_json:
        yield _every(JSON_EVERY, lambda report: _write_json(report, rates.of(report)))
    elif sys.stdout.isatty():
        with _drawn(rates, transient=quietly) as draw:
            yield _every(DRAWN_EVERY, draw)
    else:
        lines = _Lines(rates, quietly=quietly, positions=positions)
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
    told = {"transactions": report.transactions, **asdict(report)}
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
            parts += [Text(), Text(f"{', '.join(group.views) or group.name}: {stopped(group, report)}", style="bold")]
        parts += [Text(f"{', '.join(group.views)}: {waits_for(wait)}", style="bold") for wait in lasting_waits(group)]
    for view, reason in report.halted.items():
        parts += [Text(), Text(f"halted: {view}: {reason}", style="bold"), Text(way_out(view))]
    return Group(*parts)


# --- the words ---


def lasting_waits(group: "GroupReport") -> list["Wait"]:
    """What a group waits for: not what is only on its way."""
    return [wait for wait in group.waits if wait.overdue]


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
    return f"{tried}, {again}: {one_line(source.trouble)}"


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
        f"{group.failure}{tried_again(group)}" if group.failure else "-",
    )


# --- lines ---


class _Lines:
    """Lines for a log: what changes, as it does; figures now and then."""

    def __init__(self, rates: Rates, *, quietly: bool, positions: bool) -> None:
        self._rates = rates
        self._quietly = quietly
        self._positions = positions
        self._said: dict[str, str | None] = {}
        self._attempts: dict[str, int] = {}
        self._waited: dict[tuple[str, str], None] = {}
        self._figures = _every(LINE_EVERY, self._say_figures, at_once=not quietly)

    def see(self, report: "Report") -> None:
        fatal = self._fatal(report)
        for source in report.sources:
            self._say_once(f"source {source.name}", _matter(source, report, fatal), "reached again")
        for group in report.groups:
            failed = group.failure is not None and group.failure != fatal
            again = group.attempts > self._attempts.get(group.name, 1)
            self._attempts[group.name] = max(group.attempts, 1)
            matter = stopped(group, report) if failed else None
            self._say_once(f"group {group.name}", matter, "goes on", again=again)
        self._say_waits(report)
        for view, reason in report.halted.items():
            self._say_once(f"view {view}", f"halted: {reason}; {way_out(view).strip()}", "goes on")
        self._figures(report)

    def _say_waits(self, report: "Report") -> None:
        """Each when it has lasted for a while, and when it is over."""
        lasting = {(group.name, wait.id): wait for group in report.groups for wait in lasting_waits(group)}
        for (group, id), wait in lasting.items():
            self._waited[group, id] = None
            self._say_once(f"group {group}, {id}", waits_for(wait), "")
        for group, id in [key for key in self._waited if key not in lasting]:
            del self._waited[group, id]
            self._say_once(f"group {group}, {id}", None, "no longer waited for")

    def _fatal(self, report: "Report") -> str | None:
        """The failure that ends the verb with an error, which says it; `run` goes on."""
        return next((group.failure for group in report.groups if group.failure and self._quietly), None)

    def _say_once(self, what: str, matter: str | None, over: str, *, again: bool = False) -> None:
        before = self._said.get(what)
        # The reasons of one trouble may differ from try to try: only that there is one is news.
        if (before is None) != (matter is None) or (again and matter is not None):
            _line(f"{what}: {matter or over}")
        self._said[what] = matter

    def _say_figures(self, report: "Report") -> None:
        # Asked for in any case: the first answer is what the next one counts from.
        rate = self._rates.of(report)[OF_ALL]
        told = f", {rate:.1f} per second" if report.transactions else ""
        positions = vector({source.name: source.upto for source in report.sources})
        _line(summary(report) + told + (f"; at {positions}" if self._positions else ""))


def _matter(source: "SourceReport", report: "Report", fatal: str | None) -> str | None:
    """What a line says of a source. That it has failed waits until every group over it knows: then it is known
    whether it ends all."""
    if source.failure is None:
        return source.trouble and f"out of reach: {source.trouble}"
    unaware = any(group.failure is None and source.name in group.behind for group in report.groups)
    return None if unaware or source.failure == fatal else f"stopped: {source.failure}"


def _line(text: str) -> None:
    click.echo(f"{now():%H:%M:%S} {one_line(text)}")
    sys.stdout.flush()
