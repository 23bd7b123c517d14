"""The layout of large views: a compacted base, and signed deltas appended to it.

    V at state s  =  base + Σ deltas of states in (base, s]

A change costs what it changes, whatever the size of the view: one more file.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deltalake.transaction import AddAction

from viewkeeper.lake.log.columns import table_schema
from viewkeeper.lake.log.record import TableState
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.delta_table import DELTA, describe_file
from viewkeeper.lake.tables.parquet_files import file_name, write_table
from viewkeeper.lake.tables.signed_rows import Figures, SignedRows, figures_of_table
from viewkeeper.lake.tables.small_loads import stage_rows
from viewkeeper.lake.tables.staged import StagedTable

if TYPE_CHECKING:
    import pyarrow as pa


def stage(store: LocalStore, before: TableState, rows: SignedRows, commit: int) -> StagedTable:
    """Write the changes of one commit as new files of the view."""
    view = rows.view
    names, figures = write_signed(store, view.folder, rows, commit)
    adds: list[AddAction] = [describe_file(store, view.folder, name)[1] for name in names]
    return StagedTable(
        view,
        table_schema(view.columns),
        adds,
        (),
        replace(
            before,
            rows=before.rows + sum(figures.growth.values()),
            pending=before.pending.plus(len(names), figures.rows),
            added=tuple(names),
            growth=tuple((state, net) for state, net in sorted(figures.growth.items()) if net),
        ),
    )


def stage_first(
    store: LocalStore, before: TableState, content: "pa.Table", state: int, rows: SignedRows, commit: int
) -> StagedTable:
    """The same for a view that was rewritten until now: its content before, of distinct rows, is the base."""
    base, changed = stage_rows(store, rows.view, content, state, commit), stage(store, before, rows, commit)
    return replace(
        changed,
        adds=[*base.adds, *changed.adds],
        after=replace(
            changed.after,
            version=base.after.version,
            base=base.after.base,
            added=(*base.after.added, *changed.after.added),
            changes=None,
        ),
    )


def write_signed(store: LocalStore, folder: str, rows: SignedRows, commit: int) -> tuple[Sequence[str], Figures]:
    """Write signed rows into a folder: the driver's by the driver, Spark's by Spark."""
    names: list[str] = []
    figures = Figures()
    table = rows.on_driver()
    if table is not None:
        names.append(write_table(store, folder, file_name(DELTA, commit), table))
        figures = figures.plus(figures_of_table(table))
    if rows.frames:
        from viewkeeper.lake.tables.signed_frames import figures_in_job, figures_of_job, stamped_frame
        from viewkeeper.lake.tables.spark_files import write_frame

        frame = stamped_frame(rows)
        assert frame is not None
        states = sorted({state for state, _ in rows.frames})
        written, observed = write_frame(store, folder, file_name(DELTA, commit), frame, figures_in_job(states))
        counted = figures_of_job(observed)
        if counted.rows:
            names += written
            figures = figures.plus(counted)
    return names, figures
