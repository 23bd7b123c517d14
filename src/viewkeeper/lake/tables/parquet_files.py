"""Data files that the driver writes: what is small, with no Spark job.

    delta-00000000000000000042-...-5f3a09c1.parquet          5f3a09c1 = CRC-32 of all its bytes

The name of a file has its checksum, so that it goes wherever the file goes. Its pages have checksums too, which readers
verify as they read; `file_audit.py` verifies whole files.
"""

import re
import zlib
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.clock import unique_id
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.store import LocalStore, damaged_file, explained
from viewkeeper.lake.tables.delta_table import DataFile

STAGING = f"{HOME}/staging"
"""What is on its way to its place. A crash leaves nothing else that does not tell the number of its commit."""


def file_name(kind: str, commit: int) -> str:
    """A name that no other attempt at the same commit has."""
    return f"{kind}{commit:020d}-{unique_id()}"


def commit_of(name: str) -> int:
    """The commit that a data file was written for, which its name says; -1 if something else has put it there."""
    number = _COMMIT.search(name)
    return -1 if number is None else int(number[1])


_COMMIT = re.compile(r"/(?:base-|delta-|rows-)?(\d{20})-[0-9a-f]{32}")


def read_table(store: LocalStore, folder: str, file: DataFile, schema: pa.Schema) -> pa.Table:
    """Read some columns of a file, or all; DamagedWarehouse if it is missing, or not what was written."""
    check_file(store, folder, file)
    path = store.path(f"{folder}/{file.name}")
    try:
        # Not pyarrow's `read_table`: it would take parts of the path for partition columns.
        return open_parquet(path).read(columns=schema.names).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged_file(path, error) from error


def open_parquet(path: Path) -> pq.ParquetFile:
    """A file whose pages are verified when they are read."""
    return pq.ParquetFile(path, page_checksum_verification=True)


ROWS_TOGETHER = 16_384
"""in a group of rows of a table that is looked up"""


def check_file(store: LocalStore, folder: str, file: DataFile) -> None:
    """DamagedWarehouse if a file is missing, was cut short or, where it costs nothing to find out, was changed."""
    path = store.path(f"{folder}/{file.name}")
    with explained(path):
        size = path.stat().st_size
        if file.size and size != file.size:
            raise damaged_file(path, f"it has {size} bytes, and {file.size} were written")
        checksum = checksum_in(file.name)
        if size <= SMALL and checksum is not None and checksum_of(path) != checksum:
            raise damaged_file(path, "its content is not what was written")
        if not file.size:
            # The size of a file of changes is not known, but how it ends is.
            with open(path, "rb") as opened:
                opened.seek(max(0, size - len(_END)))
                if opened.read() != _END:
                    raise damaged_file(path, "it is not a whole Parquet file")


_END = b"PAR1"
SMALL = 1 << 20
"""bytes of a file that is read whole to be verified; of larger ones the pages that are read are"""


def write_table(store: LocalStore, folder: str, name: str, table: pa.Table, sorted_by: tuple[str, ...] = ()) -> str:
    """Write an Arrow table as one Parquet file, with no Spark job; its name in the folder.

    In the order of some columns, if so asked, and in small groups of rows, which a lookup by these can pass over.
    """
    buffer = BytesIO()
    if sorted_by:
        table = table.sort_by([(column, "ascending") for column in sorted_by])
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        row_group_size=ROWS_TOGETHER if sorted_by else None,
        write_page_checksum=True,
    )
    content = buffer.getvalue()
    name = with_checksum(f"{name}.parquet", zlib.crc32(content))
    store.write(f"{folder}/{name}", content)
    return name


_CHECKSUM = re.compile(r"-([0-9a-f]{8})\.parquet$")


def with_checksum(name: str, checksum: int) -> str:
    """The name of a file that has this checksum."""
    return f"{name.removesuffix('.parquet')}-{checksum:08x}.parquet"


def checksum_in(name: str) -> int | None:
    """The checksum that a file must have by its name; None for one that was written without."""
    found = _CHECKSUM.search(name)
    return int(found[1], 16) if found else None


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file."""
    checksum = 0
    with open(path, "rb", buffering=0) as file:
        while part := file.read(_PART):
            checksum = zlib.crc32(part, checksum)
    return checksum


_PART = 1 << 20
