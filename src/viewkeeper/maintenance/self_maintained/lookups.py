"""Where a refresh finds the rows that changes may concern: in the stored structures, at one commit.

ArrowTables       looked up on the driver, in the engine of ArrowZSet: for a batch
RowTables         the same as rows of Python: for a single small transaction
RememberedRows    what was looked up, kept and brought up to date from state to state: for many transactions
SparkTables       looked up by Spark: for structures that are too large for the driver
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.algebra.arrow_rows import weighted_rows
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.lake.log.columns import WEIGHT, arrow_schema
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.touched_rows import touched_rows
from viewkeeper.lake.views.stored_views import with_hidden
from viewkeeper.maintenance.contents import Contents
from viewkeeper.planner.self_maintained.kept_view import KeptView
from viewkeeper.storage.join_tree import Columns

if TYPE_CHECKING:
    from viewkeeper.algebra.spark import SparkZSet

MOST_SCANNED = 50_000_000
"""Rows of a structure that are looked up on the driver; in a larger one Spark finds those that do not lie together."""

_ONE = pa.scalar(1, pa.int64())


@dataclass(frozen=True)
class StoredRows:
    """The structures of one view at one commit, looked up on the driver."""

    kept: KeptView
    files: Files
    contents: Contents
    record: Record

    def found(self, structure: str, columns: Columns, keys: pa.Table, wanted: Columns | None) -> pa.Table:
        """The rows whose columns are those of some row of `keys`, which has no row twice."""
        catalog = self.files.catalogs.read(self.record.catalog)
        definition = catalog[self.kept.table_of(structure)]
        some = None if wanted is None else tuple(dict.fromkeys((*columns, *wanted)))
        if not self.contents.remembers(definition, self.record, some):
            room = self.contents.room if self.record.tables[definition.name].rows <= MOST_SCANNED else inf
            shown = wanted or tuple(definition.names)
            touched = touched_rows(self.files, definition, self.record, columns, keys, shown, room)
            if touched is not None:
                return touched
        rows = self.contents.content(definition, self.record, some, MOST_SCANNED).find(columns, keys).rows
        return rows if wanted is None else rows.select(list(wanted))

    def keys(self, columns: Columns, keys: pa.Table) -> pa.Table:
        """Keys under the names and in the types of the columns that they are compared with. One that has no such value
        equals nothing there, and is left out."""
        schema = arrow_schema(tuple((column, self.kept.types[column]) for column in columns), signed=False)
        try:
            return keys.rename_columns(list(columns)).cast(schema)
        except pa.ArrowInvalid:
            return fitting_rows(zip(*(column.to_pylist() for column in keys.columns), strict=True), schema)


def fitting_rows(rows: Iterable[Row], schema: pa.Schema) -> pa.Table:
    """Those of some rows whose values are values of these types."""
    whole = [pa.types.is_integer(type) for type in schema.types]
    found = [tuple(map(_as_whole, row, whole)) for row in rows]
    found = [row for row in found if not any(map(_is_part, row, whole))]
    try:
        return _table(found, schema)
    except (pa.ArrowInvalid, OverflowError):
        return _table([row for row in found if all(map(_fits, row, schema.types))], schema)


def _as_whole(value: Any, whole: bool) -> Any:
    """Arrow makes a whole number of any decimal, whatever is behind its point."""
    return int(value) if whole and isinstance(value, Decimal) and value == int(value) else value


def _is_part(value: Any, whole: bool) -> bool:
    return whole and isinstance(value, Decimal)


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(list(column), one.type) for column, one in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _fits(value: Any, type: pa.DataType) -> bool:
    try:
        pa.array([value], type)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


@dataclass(frozen=True)
class ArrowTables:
    """Structures looked up in Arrow."""

    stored: StoredRows

    def matching(self, table: str, columns: Columns, keys: ArrowZSet, wanted: Columns | None = None) -> ArrowZSet:
        distinct = keys.distinct().table.select(list(keys.columns))
        rows = self.stored.found(table, columns, self.stored.keys(columns, distinct), wanted)
        return ArrowZSet.of_table(rows, consolidated=True, positive=True)


@dataclass(frozen=True)
class RowTables:
    """Structures looked up on the driver, as rows of Python."""

    stored: StoredRows

    def matching(self, table: str, columns: Columns, keys: MemoryZSet, wanted: Columns | None = None) -> MemoryZSet:
        types = arrow_schema(tuple((column, self.stored.kept.types[column]) for column in columns), signed=False)
        wanted_keys = fitting_rows((row for row, _ in keys.distinct().weights()), types)
        rows = self.stored.found(table, columns, wanted_keys, wanted)
        with_weights = rows.append_column(WEIGHT, pa.repeat(_ONE, rows.num_rows))
        return MemoryZSet(tuple(rows.column_names), weighted_rows(with_weights))


@dataclass
class _Known:
    """What is known of a structure by some columns: the rows of every key that was ever asked for."""

    columns: Columns = ()
    rows: dict[Row, dict[Row, int]] = field(default_factory=dict)

    def add(self, by: Columns, change: MemoryZSet) -> None:
        """A change of the structure; keys that nobody has asked for are looked up later."""
        key_of, pick = _picker(change.columns, by), _picker(change.columns, self.columns)
        for row, weight in change.weights():
            there, kept = self.rows.get(key_of(row)), pick(row)
            if there is not None:
                there[kept] = there.get(kept, 0) + weight
                if not there[kept]:
                    del there[kept]


class RememberedRows:
    """Structures as they are while one transaction after the other is refreshed, none of them stored yet.

    Each key is looked up once. Changes are added to what was looked up, and to what is looked up later.
    """

    def __init__(self, tables: RowTables) -> None:
        self._tables = tables
        self._known: dict[tuple[str, Columns, Columns | None], _Known] = {}
        self._changed: dict[str, MemoryZSet] = {}

    def matching(self, table: str, columns: Columns, keys: MemoryZSet, wanted: Columns | None = None) -> MemoryZSet:
        known = self._known.setdefault((table, columns, wanted), _Known())
        asked = {row for row, weight in keys.weights() if weight > 0}
        missing = asked - known.rows.keys()
        if missing or not known.columns:
            self._look_up(table, columns, wanted, keys.like(columns, ((row, 1) for row in missing)), known)
        found = chain.from_iterable(known.rows[key].items() for key in asked)
        return MemoryZSet(known.columns, found)

    def _look_up(self, table: str, columns: Columns, wanted: Columns | None, keys: MemoryZSet, known: _Known) -> None:
        rows = self._tables.matching(table, columns, keys, None if wanted is None else _with(columns, wanted))
        changed = self._changed.get(table)
        if changed is not None:
            on = tuple((column, column) for column in columns)
            rows = rows + changed.matching(keys, on).keep(rows.columns)
        key_of, pick = _picker(rows.columns, columns), _picker(rows.columns, wanted or rows.columns)
        known.columns = wanted or rows.columns
        for key, _ in keys.weights():
            known.rows[key] = {}
        for row, weight in rows.weights():
            known.rows[key_of(row)][pick(row)] = weight

    def changed(self, changes: dict[str, MemoryZSet]) -> None:
        """The next transaction sees these."""
        for table, change in changes.items():
            there = self._changed.get(table)
            self._changed[table] = change if there is None else there + change
            for (name, columns, _), known in self._known.items():
                if name == table and known.columns:
                    known.add(columns, change)


def _with(columns: Columns, wanted: Columns) -> Columns:
    return tuple(dict.fromkeys((*wanted, *columns)))


def _picker(columns: Columns, wanted: Columns) -> Callable[[Row], Row]:
    places = [columns.index(column) for column in wanted]
    if len(places) == 1:
        (only,) = places
        return lambda row: (row[only],)
    return itemgetter(*places)


@dataclass(frozen=True)
class SparkTables:
    """Structures looked up by Spark."""

    kept: KeptView
    snapshot: HeldCommit

    def matching(self, table: str, columns: Columns, keys: "SparkZSet", wanted: Columns | None = None) -> "SparkZSet":
        from viewkeeper.algebra.spark import SparkZSet

        frame = with_hidden(self.snapshot, self.kept.table_of(table)).weights()
        rows = SparkZSet(frame, consolidated=True, positive=True)
        found = rows.matching(keys.distinct(), tuple(zip(columns, keys.columns, strict=True)))
        return (found if wanted is None else found.keep(wanted)).computed_once()
