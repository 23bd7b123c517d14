"""A small computed view on the driver, with no Spark job."""

from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.lake.log.catalog import Catalog, Definition, tables_of
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.small_reads import small_rows
from viewkeeper.lake.views.computed_expressions import ComputedExpressions, pointing_columns
from viewkeeper.storage.pairs import with_columns_of


def small_computed(files: Files, catalog: Catalog, view: Definition, record: Record, engines: Engines) -> Any | None:
    """The Z-set of the last state; None if a table that it is computed from is large."""
    tables = tables_of(catalog, view)
    stored = []
    for table in tables:
        rows = small_rows(files, table, record, engines.most_rows)
        if rows is None:
            return None
        stored.append(engines.zset(tuple(table.names), rows))
    assert view.computed is not None
    joined, *copies = stored
    if copies:
        joined = joined.keep(tuple(pointing_columns(view, tables)))
    for copy, (_, ids) in zip(copies, view.computed.copies, strict=True):
        joined = with_columns_of(joined, copy, ids)
    expressions = ComputedExpressions(view, tables)
    if expressions.having is not None:
        joined = joined.select((expressions.having,))
    return joined.project(tuple((name, made) for name, made, _ in expressions.shown))
