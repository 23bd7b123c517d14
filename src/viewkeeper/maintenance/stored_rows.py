"""A stored view as a Z-set: a small one is read in this process, with no Spark job."""

from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.lake.log.catalog import find
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.small_reads import small_rows
from viewkeeper.lake.views.computed_rows import small_computed
from viewkeeper.lake.views.stored_views import with_hidden


def stored_rows(files: Files, engines: Engines, view: str) -> Any:
    """A view as it is stored at the last commit, hidden columns included."""
    record = files.log.last()
    catalog = files.catalogs.read(record.catalog)
    definition = find(catalog, view)
    if definition.computed is not None:
        small = small_computed(files, catalog, definition, record, engines)
        if small is not None:
            return small
    elif (rows := small_rows(files, definition, record, engines.most_rows)) is not None:
        return engines.zset(tuple(definition.names), rows)
    return engines.of_frame(with_hidden(HeldCommit(files, record), view).weights())
