"""`spark.read.format("viewkeeper")`: the rows of one state, or the changes between two.

The commit is chosen when the load is made, and what is made of its DataFrame reads that one, whatever is committed
meanwhile. Tasks get lists of files, and read them with Arrow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from viewkeeper.errors import StateGone, UsageError
from viewkeeper.lake.log.catalog import Definition, tables_of
from viewkeeper.lake.log.columns import STATE, WEIGHT, Columns
from viewkeeper.lake.log.states import oldest_state
from viewkeeper.lake.log.store import open_store
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.arrow_changes import ChangedPart, changes_of, read_changed
from viewkeeper.lake.views.arrow_parts import Part, parts_of, read_part, repeated, shown_columns
from viewkeeper.serving.data_source.opened import snapshot_of, wanted_schema
from viewkeeper.serving.data_source.options import LATEST, MOST_STATES, Asked

if TYPE_CHECKING:
    import pyarrow as pa

    from viewkeeper.algebra.arrow import ArrowZSet

ROWS_OF_BATCH = 65_536
SIGNED: Columns = ((WEIGHT, "BIGINT"), (STATE, "BIGINT"))
"""beside the columns of a view in its changes"""


@dataclass
class ViewPartition(InputPartition):
    """What one task reads. `state` is that of rows which stand for all changes up to it."""

    store: str
    part: Part | ChangedPart
    state: int | None = None


def columns_of(snapshot: HeldCommit, asked: Asked) -> Columns:
    """What a load shows."""
    columns = shown_columns(snapshot, asked.view)
    return (*columns, *SIGNED) if asked.changes else columns


def changed_partitions(snapshot: HeldCommit, view: str, since: int, until: int) -> list[ViewPartition]:
    """The changes of a range of states, in tasks of so many states."""
    store, starts = str(snapshot.files.store), range(since, until, MOST_STATES)
    return [
        ViewPartition(store, changes_of(snapshot, view, start, min(start + MOST_STATES, until))) for start in starts
    ]


def row_partitions(snapshot: HeldCommit, view: str, state: int) -> list[ViewPartition]:
    """The rows of a state."""
    store = str(snapshot.files.store)
    return [ViewPartition(store, part, state) for part in parts_of(snapshot, view, state)]


def starts_with_rows(snapshot: HeldCommit, view: str, state: int) -> bool:
    """Whether the changes of a state are all of its rows, for there was no view before; StateGone if they are gone."""
    members, last = snapshot.members(view), snapshot.state(view)
    oldest = max(oldest_state(tables_of(snapshot.catalog, member), snapshot.record) for member in members)
    if oldest < state <= last:
        return False
    if state == oldest == _first_state(snapshot, max(members, key=lambda one: one.created)):
        return True
    raise StateGone(
        f"there are no changes of state {state} of {view} to be read",
        f"'viewkeeper states {view}' lists its states; if vacuum took those before the oldest, its changes are gone",
    )


def _first_state(snapshot: HeldCommit, view: Definition) -> int | None:
    """The state that a view was created with; None if that is not known any more."""
    try:
        return snapshot.files.log.retained(view.created).tables[view.name].oldest
    except StateGone:
        return None


class ViewReader(DataSourceReader):
    """Rows at a state, or signed rows between two."""

    def __init__(self, asked: Asked, commit: int | None, schema: StructType) -> None:
        snapshot = snapshot_of(asked.warehouse, commit)
        self._asked, self._commit = asked, snapshot.commit
        self._wanted = wanted_schema(asked.view, columns_of(snapshot, asked), schema)

    def partitions(self) -> list[InputPartition]:
        snapshot = snapshot_of(self._asked.warehouse, self._commit)
        return list(self._planned(snapshot)) or [InputPartition(None)]

    def _planned(self, snapshot: HeldCommit) -> list[ViewPartition]:
        asked = self._asked
        if not asked.changes:
            if asked.starting_state is not None or asked.ending_state is not None:
                raise UsageError(
                    "'startingState' and 'endingState' ask for changes",
                    "add .option('changes', 'true'), or name a 'state'",
                )
            state = snapshot.state(asked.view) if asked.state is None else asked.state
            return row_partitions(snapshot, asked.view, state)
        if asked.starting_state is None or asked.starting_state == LATEST:
            raise UsageError(
                "changes need a state to start from", ".option('startingState', 1) begins with its changes"
            )
        first = int(asked.starting_state)
        until = snapshot.state(asked.view) if asked.ending_state is None else asked.ending_state
        if until < first:
            raise UsageError(f"endingState is {until}, before startingState {first}", "give the earlier one first")
        if starts_with_rows(snapshot, asked.view, first):
            return [
                *row_partitions(snapshot, asked.view, first),
                *changed_partitions(snapshot, asked.view, first, until),
            ]
        return changed_partitions(snapshot, asked.view, first - 1, until)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(partition, self._wanted, signed=self._asked.changes)


def read_partition(partition: InputPartition, wanted: "pa.Schema", *, signed: bool) -> "Iterator[pa.RecordBatch]":
    """The rows of a task, in the columns that are asked for."""
    if not isinstance(partition, ViewPartition):
        return  # there is nothing to read
    store = open_store(partition.store)
    if isinstance(partition.part, ChangedPart):
        rows = read_changed(store, partition.part)
        table = rows.table if signed else _inserted(rows, partition.part)
    else:
        names = tuple(name for name in wanted.names if name not in (WEIGHT, STATE))
        rows = read_part(store, partition.part, names)
        table = _at_state(rows, partition.state) if signed else repeated(rows)
    yield from table.select(wanted.names).cast(wanted).to_batches(max_chunksize=ROWS_OF_BATCH)


def _at_state(rows: "ArrowZSet", state: int | None) -> "pa.Table":
    import pyarrow as pa

    return rows.table.append_column(STATE, pa.repeat(pa.scalar(state, pa.int64()), rows.table.num_rows))


def _inserted(rows: "ArrowZSet", part: ChangedPart) -> "pa.Table":
    """Changes without their signs: there may be no deletion among them."""
    import pyarrow.compute as pc

    deleted = rows.table.filter(pc.less(rows.table[WEIGHT], 0))
    if deleted.num_rows:
        raise UsageError(
            f"state {pc.min(deleted[STATE]).as_py()} of {part.view} deletes or updates a row, and a "
            "stream of rows can only grow",
            "add .option('changes', 'true'): rows then come with _vk_weight, +1 inserted and -1 deleted, and _vk_state",
        )
    return repeated(rows)
