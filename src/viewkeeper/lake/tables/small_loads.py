"""A first content that is already on the driver: written there, with no Spark job."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import BadDelta
from viewkeeper.lake.log.catalog import Definition, Layout
from viewkeeper.lake.log.columns import STATE, WEIGHT, arrow_schema, table_schema
from viewkeeper.lake.log.record import TableState
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import BASE, ROWS, describe_file
from viewkeeper.lake.tables.parquet_files import file_name, write_table
from viewkeeper.lake.tables.rewritten import apply_delta
from viewkeeper.lake.tables.signed_rows import conformed_table, table_in_arrow, table_of_zset
from viewkeeper.lake.tables.staged import StagedTable

MOST_ROWS = 200_000
"""Rows of an Arrow table that the driver writes itself."""


def stage_rows(store: LocalStore, view: Definition, given: Any, state: int, commit: int) -> StagedTable:
    """Write the rows of a Z-set or of an Arrow table as the first content of a view."""
    signed = view.layout is Layout.APPENDED
    schema = table_schema(view.columns) if signed else arrow_schema(view.columns, signed=False)
    columns = table_in_arrow(given)
    rows = conformed_table(view, table_of_zset(view, given) if columns is None else _once(columns))
    if rows.num_rows == 0:
        return StagedTable(view, schema, (), (), TableState(-1, state, state, commit, 0))
    if (pc.min(rows[WEIGHT]).as_py() or 0) < 0:
        raise BadDelta(f"the load of {view.name} has a row with a negative count", "load each row at least once")
    rows = rows.append_column(STATE, pa.repeat(pa.scalar(state, pa.int64()), rows.num_rows)).cast(
        arrow_schema(view.columns, signed=True)
    )
    size = pc.sum(rows[WEIGHT]).as_py()
    if not signed:
        rows = apply_delta(view, schema.empty_table(), rows)
    name = write_table(store, view.folder, file_name(BASE if signed else ROWS, commit), rows, view.sorted_by)
    add = describe_file(store, view.folder, name)[1]
    return StagedTable(view, schema, [add], (), TableState(-1, state, state, commit, size, added=(name,)))


def _once(table: pa.Table) -> pa.Table:
    if WEIGHT in table.column_names:
        return table
    return table.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
