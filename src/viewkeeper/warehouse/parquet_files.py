"""Data files that the driver writes: what is small, with no Spark job."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.clock import unique_id
from viewkeeper.warehouse.commit_log import HOME
from viewkeeper.warehouse.delta_table import DataFile
from viewkeeper.warehouse.store import LocalStore, damaged_file, explained

STAGING = f"{HOME}/staging"
"""What is on its way to its place. A crash leaves nothing else that does not tell the number of its commit."""


def file_name(kind: str, commit: int) -> str:
    """A name that no other attempt at the same commit has."""
    return f"{kind}{commit:020d}-{unique_id()}"


def read_table(store: LocalStore, folder: str, file: DataFile, schema: pa.Schema) -> pa.Table:
    """Read some columns of a file, or all; DamagedWarehouse if it is missing, or not what was written."""
    check_file(store, folder, file)
    path = store.path(f"{folder}/{file.name}")
    try:
        # Not pyarrow's `read_table`: it would take parts of the path for partition columns.
        return pq.ParquetFile(path).read(columns=schema.names).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_file(path, error) from error


ROWS_TOGETHER = 16_384
"""in a group of rows of a table that is looked up"""


def check_file(store: LocalStore, folder: str, file: DataFile) -> None:
    """DamagedWarehouse if a file is missing, or was cut short."""
    path = store.path(f"{folder}/{file.name}")
    with explained(path):
        size = path.stat().st_size
        if file.size and size != file.size:
            raise damaged_file(path, f"it has {size} bytes, and {file.size} were written")
        if not file.size:
            # The size of a file of changes is not known, but how it ends is.
            with open(path, "rb") as opened:
                opened.seek(max(0, size - len(_END)))
                if opened.read() != _END:
                    raise damaged_file(path, "it is not a whole Parquet file")


_END = b"PAR1"


def write_table(store: LocalStore, folder: str, name: str, table: pa.Table, sorted_by: tuple[str, ...] = ()) -> str:
    """Write an Arrow table as one Parquet file, with no Spark job; its name in the folder.

    In the order of some columns, if so asked, and in small groups of rows, which a lookup by these can pass over.
    """
    buffer = BytesIO()
    if sorted_by:
        table = table.sort_by([(column, "ascending") for column in sorted_by])
    pq.write_table(table, buffer, compression="zstd", row_group_size=ROWS_TOGETHER if sorted_by else None)
    store.write(f"{folder}/{name}.parquet", buffer.getvalue())
    return f"{name}.parquet"
