"""A plain copy of a view: a Delta table of its rows, for any reader, that knows nothing of weights and states."""

import os
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from viewkeeper.errors import UsageError
from viewkeeper.warehouse.catalog import Definition
from viewkeeper.warehouse.columns import arrow_schema
from viewkeeper.warehouse.delta_table import (
    ROWS,
    OpenTables,
    change_table,
    create_table,
    describe_file,
    list_files,
    newest_version,
)
from viewkeeper.warehouse.parquet_files import file_name
from viewkeeper.warehouse.spark_files import write_frame
from viewkeeper.warehouse.store import LocalStore, open_store


def publish(
    warehouse: LocalStore, view: Definition, rows: DataFrame, commit: int, target: str | os.PathLike[str]
) -> Path:
    """Write the rows as a Delta table, or as the next version of the one that is there; where it is."""
    path = open_store(target).root
    if path.is_relative_to(warehouse.root):
        raise UsageError(f"{path} is inside the warehouse", "publish to a folder outside of it")
    store, folder = LocalStore(path.parent), path.name
    version = newest_version(store, folder)
    if version is None and store.names(folder):
        raise UsageError(f"{path} is not empty, and not a Delta table", "name a new folder, or a published table")
    written, _ = write_frame(store, folder, file_name(ROWS, commit), rows, {"rows": F.count(F.lit(1))})
    adds = [describe_file(store, folder, name)[1] for name in written]
    schema = arrow_schema(view.columns, signed=False)
    if version is None:
        create_table(store, folder, view.name, schema, adds, commit)
    else:
        old = list_files(store, folder, version)[1]
        change_table(OpenTables(store), folder, version, schema, adds, old, commit)
    return path
