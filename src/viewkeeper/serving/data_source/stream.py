"""`spark.readStream.format("viewkeeper")`: first what the view holds, then what changes, state by state.

    offset  =  the number of the last state that was delivered          batch (a, b]  =  Σ Δ_s,  a < s <= b

Before the first batch nothing was delivered, and the offset is -1: that batch is the rows of the state where it ends.
A batch has the same rows whenever it is requested, so that Spark's checkpoint makes a stream exact across restarts.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from viewkeeper.errors import StateGone, UsageError
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.serving.data_source.batch import (
    changed_partitions,
    columns_of,
    read_partition,
    row_partitions,
    starts_with_rows,
)
from viewkeeper.serving.data_source.opened import snapshot_of, wanted_schema
from viewkeeper.serving.data_source.options import LATEST, Asked

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING = -1
STATE_OF_OFFSET, VIEW_OF_OFFSET, TIME_OF_OFFSET = "state", "view", "time"
"""the last state that was delivered and when it was committed, and the commit that created the view: another of its
name has other states, and so has a warehouse that was put back from an older copy"""

Offset = dict[str, Any]


class ViewStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The changes of a view as a stream."""

    def __init__(self, asked: Asked, schema: StructType) -> None:
        if asked.state is not None or asked.ending_state is not None:
            raise UsageError(
                "a stream has no 'state' and no 'endingState'", "'startingState' is where it begins; or use spark.read"
            )
        self._asked = asked
        self._wanted = wanted_schema(asked.view, columns_of(self._now(), asked), schema)
        self._target: int | None = None

    # --- how far ---

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        snapshot = self._now()
        return self._offset(snapshot, self._start(snapshot))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        snapshot = self._same_view(start)
        state, last = start[STATE_OF_OFFSET], snapshot.state(self._asked.view)
        if self._target is not None:
            last = min(last, max(self._target, state))
        if state == NOTHING:
            first = self._asked.starting_state
            return self._offset(snapshot, last if first is None or first == LATEST else int(first))
        if not isinstance(limit, ReadAllAvailable):
            last = min(last, state + self._asked.most_states)
        return self._offset(snapshot, max(last, state))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # Spark knows no limit of states; any limit but "all" means the one that was asked for.
        return ReadMaxFiles(self._asked.most_states)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._now().state(self._asked.view)

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        snapshot = self._now()
        return self._offset(snapshot, snapshot.state(self._asked.view))

    # --- what ---

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        snapshot, view = self._same_view(end), self._asked.view
        since, until = start[STATE_OF_OFFSET], end[STATE_OF_OFFSET]
        if since == until:
            return []
        if since == NOTHING:
            return row_partitions(snapshot, view, until)
        return changed_partitions(snapshot, view, since, until)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(partition, self._wanted, signed=self._asked.changes)

    def _now(self) -> HeldCommit:
        return snapshot_of(self._asked.warehouse, None)

    def _start(self, snapshot: HeldCommit) -> int:
        first = self._asked.starting_state
        if first is None:
            return NOTHING
        if first == LATEST:
            return snapshot.state(self._asked.view)
        return NOTHING if starts_with_rows(snapshot, self._asked.view, int(first)) else int(first) - 1

    def _offset(self, snapshot: HeldCommit, state: int) -> Offset:
        return {
            STATE_OF_OFFSET: state,
            VIEW_OF_OFFSET: self._created(snapshot),
            TIME_OF_OFFSET: self._committed(snapshot, state),
        }

    def _committed(self, snapshot: HeldCommit, state: int) -> str | None:
        """When a state was committed; None if that is not known any more."""
        if state == NOTHING:
            return None
        group = snapshot.members(self._asked.view)[0].group
        try:
            record = snapshot.record
            if state != record.groups[group].last:
                record = snapshot.files.log.find_state(group, state, since=0, newest=snapshot.commit)
        except StateGone:
            return None
        return record.groups[group].time

    def _created(self, snapshot: HeldCommit) -> int:
        return max(member.created for member in snapshot.members(self._asked.view))

    def _same_view(self, offset: Offset) -> HeldCommit:
        """The last commit; UsageError if the view is not the one that the stream was begun with."""
        snapshot = self._now()
        if offset[VIEW_OF_OFFSET] != self._created(snapshot):
            raise UsageError(
                f"view {self._asked.view} was dropped and created again since this stream was begun",
                "start the stream again, with another checkpointLocation",
            )
        state, last = offset[STATE_OF_OFFSET], snapshot.state(self._asked.view)
        then, now = offset.get(TIME_OF_OFFSET), self._committed(snapshot, state)
        if state > last or (then is not None and now is not None and then != now):
            raise UsageError(
                f"state {state} of {self._asked.view} is not the one that this stream has come to: the warehouse was "
                "put back from an older copy",
                "start the stream again, with another checkpointLocation",
            )
        return snapshot
