"""The layout of small views: the rows of the last state, written again by every change.

    rows after  =  rows before + Δ         no row may end up with a negative count

Any tool reads the table as it is. What each state changed is kept beside it, in `_viewkeeper/changes/`, so that earlier
states can be computed backwards.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import BadDelta
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import STATE, WEIGHT, arrow_schema
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import TableState
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import ROWS, DataFile, describe_file
from viewkeeper.lake.tables.parquet_files import file_name, read_table, write_table
from viewkeeper.lake.tables.signed_rows import SignedRows, figures_of_table
from viewkeeper.lake.tables.staged import StagedTable
from viewkeeper.summary.grouping import canonical_floats

CHANGES = "changes"
"""in `_viewkeeper/`: a folder per view"""


def stage(
    store: LocalStore, before: TableState, files: Sequence[DataFile], rows: SignedRows, commit: int
) -> StagedTable:
    """Write the new content of the view, and its changes beside it."""
    view = rows.view
    schema = arrow_schema(view.columns, signed=False)
    delta = _all_on_driver(rows)
    if delta is None:
        return StagedTable(view, schema, (), (), before.untouched())
    known = rows.content
    content = apply_delta(view, read_rows(store, view, files), delta) if known is None else known.cast(schema)
    name = write_table(store, view.folder, file_name(ROWS, commit), content)
    changes = f"{CHANGES}/{view.folder.rpartition('/')[2]}"
    changes += "/" + write_table(store, f"{HOME}/{changes}", file_name("", commit), delta)
    growth = figures_of_table(delta).growth
    return StagedTable(
        view,
        schema,
        [describe_file(store, view.folder, name)[1]],
        files,
        replace(
            before,
            rows=content.num_rows,
            added=(name,),
            growth=tuple((state, net) for state, net in sorted(growth.items()) if net),
            changes=changes,
        ),
    )


def _all_on_driver(rows: SignedRows) -> Any:
    """The changes as one Arrow table. The view is small, and so is what changes it: Spark's part is collected."""
    tables = list(rows.tables)
    if rows.frames:
        from viewkeeper.lake.tables.signed_frames import stamped_frame
        from viewkeeper.lake.tables.spark_files import spark_errors

        frame = stamped_frame(rows)
        assert frame is not None
        with spark_errors(f"collecting a change of {rows.view.name}"):
            collected = frame.toArrow().cast(arrow_schema(rows.view.columns, signed=True))
        if collected.num_rows:
            tables.append(collected)
    return pa.concat_tables(tables) if tables else None


def read_rows(store: LocalStore, view: Definition, files: Sequence[DataFile]) -> Any:
    """The rows of the view, on the driver."""
    schema = arrow_schema(view.columns, signed=False)
    return pa.concat_tables([schema.empty_table(), *(read_table(store, view.folder, file, schema) for file in files)])


def apply_delta(view: Definition, content: Any, delta: Any) -> Any:
    """content + Δ, as a bag of rows; BadDelta names a row that would be there a negative number of times."""
    once = content.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), content.num_rows))
    both = pa.concat_tables([once, delta.drop_columns([STATE]).cast(once.schema)])
    for index, name in enumerate(view.names):
        both = both.set_column(index, name, canonical_floats(both[name]))
    total = both.group_by(view.names, use_threads=False).aggregate([(WEIGHT, "sum")])
    total = total.rename_columns([*view.names, WEIGHT])
    negative = total.filter(pc.less(total[WEIGHT], 0))
    if negative.num_rows:
        row = {name: value for name, value in negative.slice(0, 1).to_pylist()[0].items() if name != WEIGHT}
        raise BadDelta(
            f"a change of {view.name} deletes a row that is not there: {row}",
            "the view and its sources no longer agree: reload it",
        )
    counts = total[WEIGHT].combine_chunks()
    rows = total.select(view.names)
    if counts.null_count == len(counts) or pc.max(counts).as_py() in (0, 1):
        return rows.filter(pc.equal(counts, 1)).cast(content.schema)
    repeated = [index for index, count in enumerate(counts.to_pylist()) for _ in range(count)]
    return rows.take(pa.array(repeated, pa.int64())).cast(content.schema)
