"""Delta tables as a source: one table, or a folder of tables, written by anyone.

Position   the version of the table; of several tables, the number of a recorded step (`steps.py`)
Reading    the files of the pinned versions: exact by construction, while VACUUM leaves them there
Stream     a transaction per version: the rows of the files that it added, minus those of the files that it removed

Nothing is installed in a table, and no change data feed is needed.
"""

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import (
    PositionLost,
    SourceUnavailable,
    SourceUnfit,
    StorageFailure,
    UnknownTable,
    ViewkeeperError,
)
from viewkeeper.messages import Fetch, Position, Transaction, position
from viewkeeper.sources.base import GLOBAL_TX, Batch, Finding, Reading, Request, Source
from viewkeeper.sources.delta.commits import LOG
from viewkeeper.sources.delta.follower import Event, Follower
from viewkeeper.sources.delta.marks import Marks
from viewkeeper.sources.delta.steps import RecordedSteps, Steps, VersionSteps, made_anew
from viewkeeper.sources.delta.table import LakeTable, State
from viewkeeper.sources.lake.column_types import Misfit
from viewkeeper.sources.lake.content import Content, FileGone
from viewkeeper.sources.lake.durable import explained
from viewkeeper.sources.lake.fetching import answer
from viewkeeper.sources.lake.keys import violation
from viewkeeper.sources.lake.names import check_column_names
from viewkeeper.sources.lake.options import checked_key, declared_keys, folder_and_options, refuse_others, seconds
from viewkeeper.sources.lake.workshop import SMALL, Workshop
from viewkeeper.sources.layout import laid_out
from viewkeeper.sql.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL = 0.05
"""Seconds between two looks for the next version: a look costs microseconds."""

_CHANGES_AT_ONCE = 5_000
_AGAIN = "remove the source and add it again"


class DeltaSource(Source):
    """Delta tables on this machine; `workspace` is a folder of the warehouse, `spark` is asked for large joins and
    differences."""

    def __init__(
        self, request: Request, spark: "Callable[[], SparkSession]", workspace: Path, *, small: int = SMALL
    ) -> None:
        super().__init__()
        self.name = request.name
        root, options = folder_and_options(request.url, "delta")
        refuse_others(options, ("key", "poll"))
        self._poll = seconds("poll", options["poll"]) if "poll" in options else POLL
        self._workspace = workspace
        self._workshop = Workshop(spark, workspace / "scratch", small)
        self._tables = _tables(request, root)
        keys = declared_keys(request, options.get("key", ""), list(self._tables))
        self._relations: dict[str, Relation] = {}
        self._found: dict[str, Relation] = {}
        self._read: dict[str, State] = {}
        self._reading = threading.Lock()
        for name, table in tuple(self._tables.items()):
            with request.may_refuse(name):
                state = table.state(table.newest())
                found = _relation(request.name, name, state, keys.get(name))
                self._read[name], self._found[found.name] = state, found
                self._relations[name] = laid_out(request.layout.get(found.name), found)
        self._tables = {name: self._tables[name] for name in self._relations}
        self.relations = {relation.name: relation for relation in self._relations.values()}
        self._steps: Steps
        if (root / LOG).is_dir():
            self._steps = VersionSteps(next(iter(self._tables.values())), workspace)
        else:
            self._steps = RecordedSteps(self._tables, workspace)
        self._marks = Marks(self._tables, workspace)

    @property
    def found(self) -> Mapping[str, Relation]:
        return self._found

    # --- set-up ---

    def doctor(self) -> list[Finding]:
        """Tables that cannot be read, and keys that are none."""
        findings = []
        for name, table in self._tables.items():
            try:
                content = table.state(table.newest()).content(self._relations[name])
                if wrong := violation(content, self._workshop):
                    findings.append(Finding(f"{self.name}.{name}: {wrong}", "delete rows, or declare another key"))
            except (FileGone, Misfit) as error:
                findings.append(Finding(f"{self.name}.{name} cannot be read: {error}", "restore an earlier version"))
            except ViewkeeperError as error:
                findings.append(Finding(error.detail, error.hint))
        return findings

    def install(self) -> None:
        """Note where capture begins; the tables themselves need nothing. Those that were recreated are taken for what
        they are now."""
        if self._other_tables() is not None:
            self._steps.begin_anew()
            self._marks.begin(self._steps.versions(self._steps.observe()))
        else:
            # What the marks are at, somebody has stored. What came since is told yet.
            self._marks.begin_once(self._steps.versions(self._steps.observe()))

    def _other_tables(self) -> str | None:
        """A table that is not the one whose versions were counted."""
        try:
            self._steps.observe()
        except PositionLost as error:
            return error.detail
        return self._marks.made_anew()

    def _refuse_other_tables(self) -> None:
        if (name := self._marks.made_anew()) is not None:
            raise made_anew(name)

    def remove(self) -> list[str]:
        """Delete the notes."""
        with explained(self._workspace):
            if self._workspace.exists():
                shutil.rmtree(self._workspace)
        return []

    # --- the stream ---

    def reach(self) -> None:
        for table in self._tables.values():
            table.newest()

    def end(self) -> Position:
        """The newest version, or the step that it is."""
        return position(self._steps.observe())

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        """A transaction per version of a table."""
        self.stream_starts(after)
        self._refuse_other_tables()
        self._steps.observe()
        number = self._steps.began() if after is None else int(after)
        follower = Follower(self._tables, self._relations, self._workshop, self._steps.versions(number))
        yield self._passing(Batch((), position(number)))
        while not stop.is_set():
            last = self._steps.observe()
            while number < last and not stop.is_set():
                events: list[Event] = []
                changes = 0
                while number < last and changes < _CHANGES_AT_ONCE and not stop.is_set():
                    number += 1
                    made = follower.step(self.name, position(number), *self._steps.step(number))
                    changes += sum(len(event.changes) for event in made if isinstance(event, Transaction))
                    events += made
                yield self._passing(Batch(events, position(number)))
            stop.wait(self._poll)

    def _passing(self, batch: Batch) -> Batch:
        self.passed(batch.upto)
        return batch

    # --- readings ---

    @contextmanager
    def reading(self, fetches: Sequence[Fetch]) -> Iterator[Reading]:
        """Read the newest versions."""
        self._refuse_other_tables()
        number = self._steps.observe()
        versions = self._steps.versions(number)
        self._marks.begin_once(versions)
        asked = {operand.relation.name for fetch in fetches for operand in fetch.reads}
        contents = {
            relation.name: self._content(name, versions[name])
            for name, relation in self._relations.items()
            if relation.name in asked
        }
        rows = tuple(_told(answer(fetch, contents, self._workshop)) for fetch in fetches)
        yield Reading(position(number), rows, ((),) * len(fetches))

    def _content(self, name: str, version: int) -> Content:
        table, relation = self._tables[name], self._relations[name]
        with self._reading:
            state = self._read[name]
            if state.version > version:
                state = table.state(version)
            while state.version < version:
                try:
                    state.apply(table.commit(state))
                except PositionLost:
                    state = self._read[name] = table.state(version)
            if state.problem is not None:
                raise SourceUnfit(f"{relation.name} cannot be read: {state.problem}", _AGAIN)
            return state.content(relation)

    # --- upkeep ---

    def acknowledge(self, position: Position) -> None:
        """Forget the steps from before a position."""
        with suppress(StorageFailure):  # it is noted with the next position
            self._marks.note(self._steps.versions(int(position)))
        self._steps.forget_before(int(position))

    def close(self) -> None:
        """There is nothing to let go of."""


def _tables(request: Request, root: Path) -> dict[str, LakeTable]:
    if (root / LOG).is_dir():
        found = {root.name: LakeTable(root.name, root)}
    elif root.is_dir():
        found = {path.name: LakeTable(path.name, path) for path in sorted(root.iterdir()) if (path / LOG).is_dir()}
    else:
        raise SourceUnfit(f"there is no folder {root}", "correct the URL of the source")
    for name in request.tables or ():
        if name not in found and not request.registered:
            raise UnknownTable(f"{request.name} has no Delta table {name}", f"it has {', '.join(found) or 'none'}")
    # A commit is of one table, so a row of global_tx says nothing of the rows of another.
    names = [name for name in found if name != GLOBAL_TX] if request.tables is None else request.tables
    names = [name for name in names if name in found]
    if not names:
        raise SourceUnfit(f"{root} holds no Delta table", f"name a folder with {LOG} in it, or the one above")
    return {name: found[name] for name in names}


def _relation(source: str, name: str, state: State, key: tuple[str, ...] | None) -> Relation:
    names = [column for column, _ in state.columns]
    check_column_names(name, names)
    types = tuple(type for _, type in state.columns)
    return Relation(f"{source}.{name}", source, tuple(names), types, checked_key(name, names, key))


def _told(batches: Iterator[Sequence[Row]]) -> Iterator[Sequence[Row]]:
    try:
        yield from batches
    except FileGone as error:
        raise SourceUnavailable(
            f"{error.path} was vacuumed while it was read", "read again; VACUUM with a longer retention avoids it"
        ) from error
    except Misfit as error:
        raise SourceUnfit(f"a row cannot be read: {error}", "correct the row in the table") from error
