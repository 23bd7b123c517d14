"""Where large joins and differences are computed: a Spark session that is started when it is needed, and a folder.

Up to `small` rows are handled in Python at once. Differences and keys of up to `on_driver` rows go through Arrow, in
memory. The rest is Spark's, over Parquet; what is not canonical yet is first written to the folder.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from viewkeeper.clock import unique_id
from viewkeeper.sources.lake.content import Content, DataFile
from viewkeeper.sources.lake.durable import explained, make_folder, new_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = 100_000
"""Rows up to which Python is faster than a Spark job."""

_ROWS_PER_GROUP = 128 * 1024


@dataclass(frozen=True)
class Workshop:
    """What the large computations of one source need."""

    spark: "Callable[[], SparkSession]"
    folder: Path
    small: int = SMALL

    @property
    def on_driver(self) -> int:
        """Rows that may be held in memory at once, as Arrow."""
        return self.small * 20

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for one computation."""
        place = self.folder / unique_id()
        make_folder(place)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what a crash has left."""
        shutil.rmtree(self.folder, ignore_errors=True)


def canonical_files(content: Content, place: Path) -> list[Path]:
    """The files of a content in the relation's own types; those that are not yet are written to `place`."""
    staged = [file for file in content.files if not file.canonical]
    paths = [file.path for file in content.files if file.canonical]
    if staged:
        rest = replace(content, files=tuple(staged))
        path = place / f"{unique_id()}.parquet"
        write_parquet(path, content.schema, rest.batches(content.relation.columns))
        paths.append(path)
    return paths


def write_parquet(path: Path, schema: pa.Schema, batches: "Iterator[pa.RecordBatch]") -> int:
    """Write batches as one file, with flat memory; how many rows there were."""
    rows = 0
    with explained(path), pq.ParquetWriter(new_file(path), schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema), row_group_size=_ROWS_PER_GROUP)
            rows += batch.num_rows
    return rows


def total(files: Sequence[DataFile]) -> int:
    """How many rows there are in these files."""
    return sum(file.count() for file in files)
