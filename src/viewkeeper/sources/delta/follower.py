"""The tables as the stream comes to them, version by version.

A version whose features are not known, or that breaks its key, disrupts the relation: until that is fixed its changes
are not delivered. One that lacks a column, or has it in another type, disrupts that column alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.errors import PositionLost
from viewkeeper.messages import Change, Position, Transaction
from viewkeeper.sources.base import Disruption, as_transaction
from viewkeeper.sources.delta.commits import Commit
from viewkeeper.sources.delta.steps import Versions
from viewkeeper.sources.delta.table import LakeTable, State, commit_changes
from viewkeeper.sources.lake.column_types import Misfit
from viewkeeper.sources.lake.content import FileGone
from viewkeeper.sources.lake.keys import violation
from viewkeeper.sources.lake.workshop import Workshop
from viewkeeper.sources.layout import VIEW, Alteration, alterations, lost_columns
from viewkeeper.sql.relation import Relation

Event = Transaction | Disruption


class Follower:
    """The tables as the stream has come to them."""

    def __init__(
        self,
        tables: Mapping[str, LakeTable],
        relations: Mapping[str, Relation],
        workshop: Workshop,
        versions: Versions,
    ) -> None:
        self._tables = tables
        self._relations = relations
        self._workshop = workshop
        self._states = {name: table.state(versions[name]) for name, table in tables.items() if name in versions}
        self._broken: set[str] = set()

    def step(self, source: str, place: Position, name: str, version: int) -> list[Event]:
        """What one version of a table does."""
        if name not in self._tables:
            return []
        table, relation = self._tables[name], self._relations[name]
        state = self._states.get(name)
        if state is None:
            # A table that joins: whoever wants its rows reads them.
            self._states[name] = table.state(version)
            return []
        if version != state.version + 1:
            raise PositionLost(
                f"the log of the Delta table {table.path} no longer has version {state.version + 1}",
                "reload the views over this source",
            )
        commit = table.commit(state)
        broken = commit.problem or state.problem
        before, now = state.found(relation), replace(state, columns=commit.columns or state.columns).found(relation)
        lost = {**lost_columns(relation, before), **lost_columns(relation, now)}
        events: list[Event] = [
            Disruption.of(relation.name, place, one)
            for one in alterations(relation, now)
            if not (one.columns or frozenset()) <= lost_columns(relation, before).keys()
        ]
        changes: list[Change] = []
        if broken is None and name not in self._broken:
            absent = frozenset({*lost, *relation.gone})
            try:
                changes, misfits = self._changes(state, commit, relation, now, absent)
                events += [Disruption.of(relation.name, place, one) for one in misfits]
            except Misfit as error:
                broken = str(error)
            except FileGone as error:
                raise PositionLost(
                    f"version {version} of {relation.name} needs a file that is gone: {error.path}",
                    "reload the views over this source; VACUUM with a longer retention keeps such files",
                ) from error
        state.apply(commit)
        if broken is None and relation.key is not None:
            broken = self._key_violation(state, relation, changes, was_broken=name in self._broken)
        if broken is not None:
            is_new = name not in self._broken
            self._broken.add(name)
            found = Alteration(f"{broken}; fix the table, then run 'viewkeeper reload {VIEW}'")
            return [Disruption.of(relation.name, place, found)] if is_new else []
        self._broken.discard(name)
        return [*events, *([as_transaction(source, place, changes, looks=True)] if changes else [])]

    def _changes(
        self, state: State, commit: Commit, relation: Relation, now: Relation, absent: frozenset[str]
    ) -> tuple[list[Change], list[Alteration]]:
        """What a commit changes, and the columns that were widened and hold values that do not fit: these are NULL."""
        try:
            return commit_changes(state, commit, relation, self._workshop, absent), []
        except Misfit as error:
            types = dict(zip(now.columns, now.types, strict=True))
            registered = zip(relation.columns, relation.types, strict=True)
            wider = frozenset(column for column, type in registered if types.get(column, type) != type) - absent
            if not wider:
                raise
            what = f"{error}: the column was widened; 'viewkeeper reload {VIEW}' takes the new type"
            without = commit_changes(state, commit, relation, self._workshop, absent | wider)
            return without, [Alteration(what, wider, recomputable=True)]

    def _key_violation(
        self, state: State, relation: Relation, changes: list[Change], *, was_broken: bool
    ) -> str | None:
        inserted = [relation.key_of(change.row) for change in changes if change.count > 0]
        if not inserted and not was_broken:
            return None
        try:
            return violation(state.content(relation), self._workshop, None if was_broken else inserted)
        except Misfit as error:
            return str(error)
        except FileGone:
            # The table has gone on and was vacuumed: later versions are looked at again.
            return None
