"""A warehouse as the workers of Spark see it: files and nothing else, for there is no session where they run."""

from typing import TYPE_CHECKING, NoReturn

from viewkeeper.errors import NotAWarehouse, UsageError
from viewkeeper.lake.log.catalog import Catalogs
from viewkeeper.lake.log.commit_log import FORMAT_FILE, CommitLog, read_format
from viewkeeper.lake.log.store import open_store
from viewkeeper.lake.tables.file_lists import Tables
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from viewkeeper.lake.log.columns import Columns


def open_files(warehouse: str) -> Files:
    """The files of a warehouse that is there."""
    store = open_store(warehouse)
    if not store.exists(FORMAT_FILE):
        raise NotAWarehouse(
            f"{store} is not a warehouse: there is no {FORMAT_FILE} in it",
            "name the folder of one, by a path that the driver and all executors see",
        )
    read_format(store)
    return Files(store, CommitLog(store), Catalogs(store), Tables(store), _no_session)


def snapshot_of(warehouse: str, commit: int | None) -> HeldCommit:
    """A commit, by default the last one."""
    files = open_files(warehouse)
    return HeldCommit.last(files) if commit is None else HeldCommit.numbered(files, commit)


def schema_text(columns: "Columns") -> str:
    """Columns as Spark writes a schema."""
    return ", ".join(f"`{name.replace('`', '``')}` {type}" for name, type in columns)


def wanted_schema(view: str, columns: "Columns", schema: "StructType") -> "pa.Schema":
    """The columns that are asked for, as Spark wants them in Arrow; UsageError for one that the view has not."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from viewkeeper.lake.log.columns import arrow_type
    from viewkeeper.lake.views.arrow_rows import VOID

    there = {name: pa.null() if type == VOID else arrow_type(type) for name, type in columns}
    wanted = to_arrow_schema(schema, timezone="UTC")
    for field in wanted:
        if there.get(field.name) != field.type:
            raise UsageError(
                f"the schema asks for {field.name} as {field.type}, and {view} has no such column",
                f"it has {schema_text(columns)}; without a schema all of them are read",
            )
    return wanted


def _no_session() -> NoReturn:
    raise AssertionError("there is no session in a worker of Spark")
