"""Is incremental maintenance worth it for my view? What its refreshes took, beside recomputing it now.

    times  =  seconds of a recompute / seconds of a typical refresh

Nothing is written and no lock is taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewkeeper.errors import SourceError
from viewkeeper.lake.log.catalog import Catalog, Definition, find, tables_of
from viewkeeper.lake.log.states import oldest_state
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.planner.known_relations import relations_of
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.planner.refreshes import refreshes_of
from viewkeeper.planner.self_maintained.change_rates import recent
from viewkeeper.planner.stored_definitions import definition_of
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import ALGORITHM, SOURCES
from viewkeeper.serving.measuring.recompute import Recomputed, recomputed
from viewkeeper.serving.running import RunningFile

ONE_READER = ("postgres", "mysql")
"""kinds of source whose stream one process follows at a time: a second would disturb the first"""


@dataclass(frozen=True)
class ViewBench:
    """The figures of one view. What is not known is None."""

    view: str
    rows: int
    states: int
    """that can be read"""
    refreshes: int
    """in the newest commits"""
    updates: int
    """that these brought: transactions, or of a deferred summary changes"""
    queries_per_update: float | None
    refresh_seconds: float | None
    """of a typical refresh: the median"""
    last_refresh_seconds: float | None
    recompute: Recomputed | None
    not_recomputed: str | None
    """why it was not"""

    @property
    def recompute_seconds(self) -> float | None:
        return None if self.recompute is None else self.recompute.seconds

    @property
    def times(self) -> float | None:
        """How many times longer a recompute takes than a typical refresh."""
        if self.recompute is None or not self.refresh_seconds:
            return None
        return self.recompute.seconds / self.refresh_seconds


def bench(
    snapshot: HeldCommit,
    sources: KnownSources,
    views: Sequence[str],
    *,
    recompute: bool,
    watch: Callable[[str], None],
) -> list[ViewBench]:
    """The figures of these views, or of all that are maintained; `watch` is told which one is computed."""
    catalog = snapshot.catalog
    chosen = [find(catalog, name) for name in views] or _maintained(catalog)
    records = recent(snapshot.files.log)
    made = []
    for view in chosen:
        told = refreshes_of(view, records)
        found, why = None, "it was not requested"
        if recompute:
            watch(view.name)
            found, why = _recomputed(view, snapshot, sources)
        made.append(
            ViewBench(
                view.name,
                snapshot.record.tables[view.name].rows,
                snapshot.record.groups[view.group].last - oldest_state(tables_of(catalog, view), snapshot.record) + 1,
                len(told.seconds),
                told.updates,
                told.queries_per_update,
                told.typical,
                told.seconds[-1] if told.seconds else None,
                found,
                None if found is not None else why,
            )
        )
    return made


def _maintained(catalog: Catalog) -> list[Definition]:
    views = [catalog[name] for name in sorted(catalog)]
    return [view for view in views if ALGORITHM in view.properties and not view.hidden]


def _recomputed(view: Definition, snapshot: HeldCommit, sources: KnownSources) -> tuple[Recomputed | None, str]:
    sql = definition_of(view)
    if sql is None:
        return None, "it is maintained by commits of its own, and has no definition"
    if SUMMARY in view.properties and view.family is not None:
        return None, f"it is one table of the family {view.family}, whose definition computes them all"
    running = RunningFile(snapshot.files.store).read()
    held = [name for name in view.properties.get(SOURCES, ()) if sources.definition(name).kind in ONE_READER]
    if held and running is not None and running.alive:
        return None, f"'viewkeeper run' is at work, and reading {', '.join(held)} beside it would disturb it"
    try:
        return recomputed(sql, snapshot, sources, relations_of(snapshot.catalog, sources.relations())), ""
    except SourceError as error:
        return None, error.detail
