"""Data files that the driver writes: what is small, with no Spark job."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.clock import unique_id
from viewkeeper.warehouse.commit_log import HOME
from viewkeeper.warehouse.store import LocalStore

STAGING = f"{HOME}/staging"
"""What is on its way to its place. A crash leaves nothing else that does not tell the number of its commit."""


def file_name(kind: str, commit: int) -> str:
    """A name that no other attempt at the same commit has."""
    return f"{kind}{commit:020d}-{unique_id()}"


def write_table(store: LocalStore, folder: str, name: str, table: pa.Table) -> str:
    """Write an Arrow table as one Parquet file, with no Spark job; its name in the folder."""
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    store.write(f"{folder}/{name}.parquet", buffer.getvalue())
    return f"{name}.parquet"
