"""The demo, step by step. Whoever shows it calls the steps in this order and says what comes of them.

    make_databases(folder, seed)                       three databases, filled
    demonstration = Demonstration(warehouse, urls, seed, seconds)
    demonstration.add_sources()
    demonstration.create_view(name)                    for each of views.VIEWS
    demonstration.keep_fresh(watch)                    while the writers write
    demonstration.outcome(...)                         with what Spark takes to recompute, and audits

What is in the databases and in the views at the end is a function of the seed and the seconds: the writers of different
databases meet in any order, and each database has its transactions in its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import quote

from viewkeeper.clock import monotonic
from viewkeeper.demo.databases import open_database
from viewkeeper.demo.freshness import lags
from viewkeeper.demo.retail import HIERARCHIES, TABLES
from viewkeeper.demo.views import JOINS, VIEWS, create
from viewkeeper.demo.writers import Writers
from viewkeeper.demo.writing import Order
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.store import open_store
from viewkeeper.maintenance.audits import Audit
from viewkeeper.mediator.report import GroupReport, Report
from viewkeeper.planner.summaries.naming import METRICS
from viewkeeper.warehouse import Warehouse

Watch = Callable[[Report], None]

GROUP = "purchases"
"""the group of the joins; named after the first of them"""
LATTICE = "shop.sales summaries"
PATIENCE = 30.0
"""Seconds that the views may be behind the writers at the end."""


def make_databases(folder: Path, seed: int, servers: Mapping[str, str] | None = None) -> dict[str, str]:
    """The three databases, filled, with their URLs: files in a folder, or databases at servers where there are any."""
    folder.mkdir()
    here = quote(str(folder.absolute()))
    urls = {name: f"sqlite:///{here}/{name}.db" for name in TABLES} | dict(servers or {})
    for name, url in urls.items():
        database = open_database(url)
        try:
            database.fill(name, seed)
        finally:
            database.close()
    return urls


@dataclass(frozen=True)
class KeptFresh:
    """What happened while the writers wrote."""

    seconds: float
    stopped: bool
    """whether somebody ended it before its time"""
    committed: Mapping[str, int]
    """transactions of each database"""
    report: Report
    states: Mapping[str, int]
    """that were added to each group"""
    fresh_after: Mapping[str, float]
    """of each group the seconds after which half of the transactions were in it, where that can be told"""
    refresh_seconds: float | None
    """of the summaries, all tables together: propagating and refreshing, in half of the cases no more"""

    @property
    def joins(self) -> GroupReport:
        return next(group for group in self.report.groups if group.name == GROUP)

    @property
    def refreshes(self) -> int:
        """of the summaries"""
        return self.states.get(LATTICE, 0)

    @property
    def queries_per_update(self) -> float | None:
        joins = self.joins
        return round(joins.queries / joins.transactions, 3) if joins.transactions else None


@dataclass(frozen=True)
class ViewOutcome:
    """One view at the end."""

    view: str
    level: str
    rows: int
    states: int
    """that were added while it was maintained"""
    fresh_after: float | None
    recompute_seconds: float
    audit: Audit | None
    """None of a view that is halted"""

    @property
    def right(self) -> bool:
        """Whether it is what its databases say."""
        return self.audit is not None and self.audit.clean


class Demonstration:
    """Views over the three databases, in a warehouse that was empty before."""

    def __init__(self, warehouse: Warehouse, urls: Mapping[str, str], seed: int, seconds: float) -> None:
        self.warehouse, self.urls = warehouse, urls
        self._order = Order(urls, seed, seconds)
        self._stopped = False

    def add_sources(self) -> None:
        for name, url in self.urls.items():
            self.warehouse.add_source(name, url, hierarchies=HIERARCHIES.get(name), install=True)

    def create_view(self, name: str) -> int:
        """Load a view; its rows."""
        self.warehouse.create_view(create(name))
        return self._rows(name)

    def _rows(self, name: str) -> int:
        return sum(one.rows for one in self.warehouse.status().views if name in (one.view, one.family))

    # --- while others write ---

    def stop(self) -> None:
        """End `keep_fresh` before its time: from another thread or a signal handler."""
        self._stopped = True
        self.warehouse.stop()

    def keep_fresh(self, watch: Watch) -> KeptFresh:
        """Let the writers write, and maintain the views until everything that was written is in them."""
        begin, before = monotonic(), self._log().last().commit
        with Writers(self._order) as writers:
            writers.begin()
            quiet = Quiet()

            def see(report: Report) -> None:
                watch(report)
                if not writers.writing and quiet.lasts(report):
                    self.warehouse.stop()

            report = self.warehouse.run(self._order.seconds + PATIENCE, watch=see)
            took = monotonic() - begin
            committed = writers.stop()
        if not self._stopped:
            # There is nothing left to do, unless a database was very slow to tell of its last commits.
            self.warehouse.catch_up()
        records = list(self._since(before))
        times = [
            told["propagate_seconds"] + told["refresh_seconds"]
            for record in records
            if (told := record.metrics.get(METRICS, {}).get(LATTICE)) and "refresh_seconds" in told
        ]
        return KeptFresh(
            round(took, 1),
            self._stopped,
            {name: len(made) for name, made in committed.items()},
            report,
            {group: sum(len(record.groups[group].steps) for record in records) for group in self._log().last().groups},
            {group: round(median(found), 3) for group, found in lags(records, committed, GROUP).items() if found},
            round(median(times), 4) if times else None,
        )

    def _log(self) -> CommitLog:
        return CommitLog(open_store(self.warehouse.path))

    def _since(self, commit: int) -> Iterator[Record]:
        log = self._log()
        return (log.record(number) for number in log.numbers() if number > commit)

    # --- the end ---

    def outcome(
        self, kept: KeptFresh, recomputed: Mapping[str, float], audits: Mapping[str, Audit]
    ) -> list[ViewOutcome]:
        """One for each view."""
        status = {name: one for one in self.warehouse.status().views for name in (one.view, one.family)}
        return [
            ViewOutcome(
                name,
                str(status[name].consistency),
                self._rows(name),
                kept.states[_group(name)],
                kept.fresh_after.get(_group(name)),
                recomputed[name],
                audits.get(name),
            )
            for name in VIEWS
        ]


def _group(view: str) -> str:
    return GROUP if view in JOINS else LATTICE


class Quiet:
    """Whether nothing has come and nothing was under way for some time."""

    def __init__(self, long_enough: float = 0.7) -> None:
        self._long_enough = long_enough
        self._since = monotonic()
        self._seen = -1

    def lasts(self, report: Report) -> bool:
        """To be asked again and again, with what goes on."""
        seen = sum(group.transactions for group in report.groups)
        waiting = any(source.waiting for source in report.sources) or any(one.in_progress for one in report.groups)
        if waiting or seen != self._seen:
            self._seen, self._since = seen, monotonic()
            return False
        return monotonic() - self._since >= self._long_enough
