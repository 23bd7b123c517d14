"""What waits for the refresh of a deferred lattice.

    noted changes       the rows that changed at the fact and the dimensions since the last propagation, with their sign
    summary-deltas      what propagation has made of earlier ones, for each node; rows of one group add up

Both are stored tables of the core group, hidden, so that nothing is lost between a commit of the core, after which its
sources may forget, and the refresh. They only grow, until the propagation or the refresh empties them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from viewkeeper.lake.commit import Commit, NewState
from viewkeeper.lake.log.columns import RESERVED, WEIGHT, Columns
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.signed_rows import frame_in_spark
from viewkeeper.lake.views.stored_views import with_hidden
from viewkeeper.maintenance.contents import read_rows
from viewkeeper.maintenance.summaries.input_changes import MOST_CHANGES_ON_DRIVER, Changes
from viewkeeper.maintenance.typed_rows import netted, weighted_table
from viewkeeper.planner.summaries.lattice import Lattice
from viewkeeper.planner.summaries.naming import CHANGE, log_name, pending_name, waiting_group
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.statements import quoted


class Waiting:
    """The tables of everything that waits."""

    def __init__(self, files: Files) -> None:
        self._files = files

    # --- noting ---

    def note(self, commit: Commit, lattice: Lattice, state: NewState) -> None:
        """Store the changes of a state of the core with it."""
        commit.also(
            state,
            {
                lattice.log(view): [_noted(delta, relation) for delta in state.deltas[view]]
                for view, relation in lattice.input_relations.items()
                if view in state.deltas
            },
        )

    def changes(self, lattice: Lattice, record: Record) -> Changes:
        """What was noted and not propagated yet."""
        held, rows = {}, {}
        for view, relation in lattice.input_relations.items():
            if size := record.tables[lattice.log(view)].rows:
                held[view] = self._noted(lattice.log(view), relation, record, size)
                rows[view] = size
        return Changes(held, rows, applied=True)

    def _noted(self, name: str, relation: Relation, record: Record, size: int) -> Any:
        """On the driver if they are few."""
        if size <= MOST_CHANGES_ON_DRIVER:
            view = self._files.catalogs.read(record.catalog)[name]
            rows = read_rows(self._files, view, record).select([*relation.columns, CHANGE])
            return netted(rows.rename_columns([*relation.columns, WEIGHT]), relation)
        from viewkeeper.algebra.pyspark_names import F

        columns = [F.col(quoted(column)) for column in relation.columns]
        return with_hidden(HeldCommit(self._files, record), name).bag().select(*columns, F.col(CHANGE).alias(WEIGHT))

    def noted(self, lattice: Lattice, record: Record) -> int:
        """How many changes were noted and not propagated."""
        return sum(record.tables[lattice.log(view)].rows for view in lattice.inputs)

    def has_any(self, lattice: Lattice, record: Record) -> bool:
        return any(record.tables[name].rows for name in self.tables(lattice))

    # --- summary-deltas ---

    def deltas(self, lattice: Lattice, record: Record) -> dict[str, pa.Table]:
        """The summary-deltas that wait, of the nodes that have any."""
        catalog = self._files.catalogs.read(record.catalog)
        return {
            name: read_rows(self._files, catalog[lattice.pending(name)], record).select(list(node.columns))
            for name, node in lattice.nodes.items()
            if record.tables[lattice.pending(name)].rows
        }

    def add(self, commit: Commit, lattice: Lattice, deltas: Mapping[str, pa.Table], record: Record) -> None:
        """Keep more summary-deltas."""
        catalog = self._files.catalogs.read(record.catalog)
        new = {}
        for node, table in deltas.items():
            name = lattice.pending(node)
            if table.num_rows:
                new[name] = [_once(table.select(catalog[name].names))]
        commit.states(lattice.waiting_group, [({}, new)])

    # --- creating and emptying ---

    def tables(self, lattice: Lattice) -> list[str]:
        return [*map(lattice.log, lattice.inputs), *map(lattice.pending, lattice.nodes)]

    def create_logs(self, commit: Commit, lattice: str, core: str, views: Mapping[str, Relation]) -> None:
        """Empty tables for changes to be noted in."""
        for view, relation in views.items():
            columns = list(zip(relation.columns, relation.types, strict=True))
            commit.create(log_name(lattice, view), columns, hidden={CHANGE: "BIGINT"}, group=core)

    def create_deltas(self, commit: Commit, lattice: str, nodes: Mapping[str, Columns]) -> None:
        """Empty tables for summary-deltas to wait in."""
        for node, columns in nodes.items():
            _create(commit, pending_name(node), columns, waiting_group(lattice))

    def empty(self, commit: Commit, names: Sequence[str], record: Record) -> None:
        """Tables again that have rows, without them."""
        catalog = self._files.catalogs.read(record.catalog)
        for name in names:
            if record.tables[name].rows:
                view = catalog[name]
                commit.drop(name)
                _create(commit, name, view.columns, view.group)


def _create(commit: Commit, name: str, columns: Columns, group: str) -> None:
    plain = [column for column in columns if not column[0].startswith(RESERVED)]
    hidden = {column: type for column, type in columns if column.startswith(RESERVED)}
    commit.create(name, plain, hidden=hidden, group=group)


def _noted(delta: Any, relation: Relation) -> Any:
    frame = frame_in_spark(delta)
    if frame is None:
        table = weighted_table(delta, relation)
        return _once(table.rename_columns([*relation.columns, CHANGE]))
    from viewkeeper.algebra.pyspark_names import F

    columns = [F.col(quoted(name)) for name in relation.columns]
    return frame.select(*columns, F.col(WEIGHT).alias(CHANGE), F.lit(1).cast("bigint").alias(WEIGHT))


def _once(table: pa.Table) -> pa.Table:
    return table.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
