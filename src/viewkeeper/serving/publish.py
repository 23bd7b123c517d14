"""A plain copy of a view: a Delta table of its rows, for any reader, that knows nothing of weights and states."""

import os
from pathlib import Path

from viewkeeper.algebra.pyspark_names import DataFrame, F
from viewkeeper.errors import UsageError
from viewkeeper.lake.log.columns import arrow_schema, columns_of
from viewkeeper.lake.log.store import ANYBODYS, LocalStore, open_store
from viewkeeper.lake.tables.delta_table import (
    ROWS,
    OpenTables,
    change_table,
    create_table,
    describe_file,
    list_files,
    newest_version,
)
from viewkeeper.lake.tables.parquet_files import file_name
from viewkeeper.lake.tables.spark_files import write_frame


def target_folder(warehouse: LocalStore, target: str | os.PathLike[str]) -> Path:
    """Where to publish; UsageError if that cannot be."""
    path = Path(target).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file, and a Delta table is a folder", "name a folder")
    path = open_store(target).root.resolve()
    if path.is_relative_to(warehouse.root):
        raise UsageError(f"{path} is inside the warehouse", "publish to a folder outside of it")
    store, folder = LocalStore(path.parent, ANYBODYS), path.name
    if store.names(folder) and newest_version(store, folder) is None:
        raise UsageError(f"{path} is not empty, and not a Delta table", "name a new folder, or a published table")
    return path


def publish(name: str, rows: DataFrame, commit: int, path: Path) -> Path:
    """Write the rows as a Delta table, or as the next version of the one that is there; where it is."""
    store, folder = LocalStore(path.parent, ANYBODYS), path.name
    version = newest_version(store, folder)
    written, _ = write_frame(store, folder, file_name(ROWS, commit), rows, {"rows": F.count(F.lit(1))})
    adds = [describe_file(store, folder, file)[1] for file in written]
    schema = arrow_schema(columns_of(rows.schema), signed=False)
    if version is None:
        create_table(store, folder, name, schema, adds, commit)
    else:
        old = list_files(store, folder, version)[1]
        change_table(OpenTables(store), folder, version, schema, adds, old, commit)
    return path
