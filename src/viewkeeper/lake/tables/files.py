"""What every reader of a warehouse shares: its files, its log, and a way to Spark."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewkeeper.lake.log.catalog import Catalogs
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.cached_reads import CachedReads
from viewkeeper.lake.tables.file_lists import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Files:
    """The store of a warehouse, with what has been read of it; `spark` starts Spark when it is needed first."""

    store: LocalStore
    log: CommitLog
    catalogs: Catalogs
    tables: Tables
    spark: "Callable[[], SparkSession]"
    cached_reads: CachedReads = field(default_factory=CachedReads)
