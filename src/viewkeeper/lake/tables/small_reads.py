"""A small view read on the driver, with no Spark job."""

from typing import Any

import pyarrow as pa

from viewkeeper.algebra.arrow_rows import weighted_rows
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.log.record import Record
from viewkeeper.lake.log.store import damaged_file
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.parquet_files import check_file, open_parquet


def small_rows(files: Files, view: Definition, record: Record, most: int) -> list[tuple[tuple[Any, ...], int]] | None:
    """The rows of the last state with weights that add up to the view; None if there are more than so many."""
    listed = files.tables.files(view, record.tables[view.name])
    if sum(file.rows for file in listed) > most:
        return None
    rows: list[tuple[tuple[Any, ...], int]] = []
    for file in listed:
        check_file(files.store, view.folder, file)
        path = files.store.path(f"{view.folder}/{file.name}")
        try:
            table = open_parquet(path).read()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged_file(path, error) from error
        if WEIGHT not in table.column_names:
            table = table.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
        rows += weighted_rows(table.select([*view.names, WEIGHT]))
    return rows
