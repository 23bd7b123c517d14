"""The views of a commit as DataFrames: as readers see them, as they are stored, and what changed between two states.

Spark is imported when something is read, not before.
"""

from typing import TYPE_CHECKING

from viewkeeper.errors import ExpressionError, StateGone
from viewkeeper.lake.log.catalog import Definition, Layout, families, find, spelled, tables_of
from viewkeeper.lake.tables.delta_table import DataFile
from viewkeeper.lake.tables.held_commit import HeldCommit

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from viewkeeper.lake.tables.spark_tables import AppendedView, RewrittenView
    from viewkeeper.lake.views.computed_views import ComputedView
    from viewkeeper.lake.views.shown_views import MemberView, StoredView


def stored_view(held: HeldCommit, view: str, state: int | None = None) -> "StoredView":
    """A view or a family at a state (by default its last), as readers see it."""
    from viewkeeper.lake.views.shown_views import FamilyView

    view = spelled(held.catalog, view)
    if (members := families(held.catalog).get(view)) is not None:
        return FamilyView([(_shown(held, member, state, view), member) for member in members])
    return _shown(held, find(held.catalog, view), state, view)


def with_hidden(held: HeldCommit, view: str, state: int | None = None) -> "AppendedView | RewrittenView | ComputedView":
    """One view as it is stored, with the rows and columns that are not shown; or as it is computed."""
    found = find(held.catalog, view)
    return _table(held, found, state, view) if found.computed is None else _computed(held, found, state, view)


def arrow_view(held: HeldCommit, view: str, state: int | None = None) -> "pa.Table":
    """The rows of a view in Arrow; Spark is not used, unless the view shows what Spark alone evaluates."""
    from viewkeeper.lake.views.arrow_parts import arrow_table

    view = spelled(held.catalog, view)
    try:
        return arrow_table(held, view, state)
    except ExpressionError:
        return stored_view(held, view, state).bag().toArrow()


def changes_of(held: HeldCommit, view: str, since: int, until: int | None = None) -> "DataFrame":
    """The signed rows of the states after `since`, up to `until` (by default the last)."""
    from viewkeeper.lake.views.changes import family_changes

    view = spelled(held.catalog, view)
    members = held.members(view)
    changes = [_changes(held, member, since, until, view) for member in members]
    return family_changes(changes, members) if view in families(held.catalog) else changes[0]


def _shown(held: HeldCommit, view: Definition, state: int | None, asked: str) -> "MemberView":
    from viewkeeper.lake.views.shown_views import ShownView

    if view.computed is not None:
        return _computed(held, view, state, asked)
    stored = _table(held, view, state, asked)
    return stored if view.shown_as_stored else ShownView(stored, view)


def _computed(held: HeldCommit, view: Definition, state: int | None, asked: str) -> "ComputedView":
    from viewkeeper.lake.views.computed_views import ComputedView

    tables, last = tables_of(held.catalog, view), held.record.groups[view.group].last
    for table in tables:
        held.holding(table, state, asked)
    stored = [_table(held, table, state, asked) for table in tables]
    at = last, *(held.record.tables[table.name].version for table in tables)

    def once(rows: "DataFrame") -> "DataFrame":
        return held.files.cached_reads.read(view, at, rows) if state in (None, last) else rows

    return ComputedView(view, tables, stored, once)


def _changes(held: HeldCommit, view: Definition, since: int, until: int | None, asked: str) -> "DataFrame":
    from viewkeeper.lake.views.changes import shown_changes, stored_changes
    from viewkeeper.lake.views.computed_changes import computed_changes, joined_changes

    tables, newest = tables_of(held.catalog, view), []
    last = held.record.groups[view.group].last if until is None else until
    for table in tables:
        held.holding(table, since, asked)
        newest.append(held.holding(table, last, asked)[0])
    if last < since:
        raise StateGone(f"state {last} of {asked} is before state {since}", "give the earlier one as 'since'")
    signed = [
        stored_changes(held.files, table, record, since, last) for table, record in zip(tables, newest, strict=True)
    ]
    if view.computed is None:
        return shown_changes(signed[0], view)
    if not view.computed.copies:
        return computed_changes(view, tables, signed[0])
    before = [_table(held, table, since, asked).bag() for table in tables]
    sizes = [held.record.tables[table.name].rows for table in tables]
    return joined_changes(view, tables, before, signed, since, sizes)


def _table(held: HeldCommit, view: Definition, state: int | None, asked: str) -> "AppendedView | RewrittenView":
    from viewkeeper.lake.tables.spark_tables import AppendedView, RewrittenView

    held.renew()
    record, state = held.holding(view, state, asked)
    view, table = view.at(record.commit), record.tables[view.name]
    files, spark, store = held.files, held.files.spark(), held.files.store
    listed = files.tables.files(view, table)
    if view.layout is Layout.APPENDED:
        return AppendedView(spark, store, view, listed, state, hashed=table.hashed)
    later = [DataFile(table.changes, 0, 0)] if table.changes and state < record.groups[view.group].last else []
    return RewrittenView(spark, store, view, listed, later, state)
