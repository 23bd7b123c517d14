"""The tables as the stream comes to them, version by version.

A version whose columns or features are not those of the relation, or that breaks its key, disrupts the relation: until
that is mended its changes are not told.
"""

from collections.abc import Mapping

from viewkeeper.errors import PositionLost
from viewkeeper.messages import Change, Position, Transaction
from viewkeeper.sources.base import Disruption, as_transaction
from viewkeeper.sources.delta.commits import Columns
from viewkeeper.sources.delta.steps import Versions
from viewkeeper.sources.delta.table import LakeTable, State, commit_changes
from viewkeeper.sources.lake.column_types import Misfit
from viewkeeper.sources.lake.content import FileGone
from viewkeeper.sources.lake.keys import violation
from viewkeeper.sources.lake.workshop import Workshop
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
        broken = self._why_broken(state, commit.problem, commit.columns, relation)
        changes: list[Change] = []
        if broken is None and name not in self._broken:
            try:
                changes = commit_changes(state, commit, relation, self._workshop)
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
            told = name not in self._broken
            self._broken.add(name)
            return [Disruption(relation.name, place, broken)] if told else []
        self._broken.discard(name)
        return [as_transaction(source, place, changes, looks=True)] if changes else []

    def _why_broken(self, state: State, problem: str | None, columns: Columns | None, relation: Relation) -> str | None:
        if problem or state.problem:
            return problem or state.problem
        registered = columns_of_relation(relation)
        if columns is not None and columns != state.columns:
            return "its columns have changed"
        return None if state.columns == registered else "its columns were others at this version"

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


def columns_of_relation(relation: Relation) -> Columns:
    """The columns with which a table was registered."""
    return tuple(zip(relation.columns, relation.types, strict=True))
