"""A view at one state as parts that can be read side by side, anywhere.

    V  =  ⊎ parts         part = shown ( share of rows ⋈ copy_0 ⋈ copy_1 ... )

A part knows the files that it is made of, so all parts of a view show one state, whatever is committed meanwhile.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.errors import DamagedWarehouse, StateGone
from viewkeeper.lake.log.catalog import Definition, families, tables_of
from viewkeeper.lake.log.columns import WEIGHT, Columns, arrow_type
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.arrow_tables import Share, StoredTable, read_share, read_whole, table_at
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.arrow_rows import (
    VOID,
    family_columns,
    padded_rows,
    refuse_what_spark_alone_evaluates,
    shown_rows,
)
from viewkeeper.lake.views.computed_expressions import pointing_columns
from viewkeeper.storage.pairs import with_columns_of


@dataclass(frozen=True)
class Part:
    """A share of a view, or of a member of a family, at a commit."""

    commit: int
    view: Definition
    tables: tuple[StoredTable, ...]
    share: Share
    family: Columns | None


def shown_columns(snapshot: HeldCommit, view: str) -> Columns:
    """The names and Spark types of what readers see of a view, or of a family."""
    members = snapshot.members(view)
    return family_columns(members) if view in families(snapshot.catalog) else members[0].shown.columns


def parts_of(snapshot: HeldCommit, view: str, state: int | None = None) -> list[Part]:
    """The parts of a view at a state (by default its last); ExpressionError if Spark is needed to read it."""
    family = shown_columns(snapshot, view) if view in families(snapshot.catalog) else None
    parts = []
    for member in snapshot.members(view):
        definitions = tables_of(snapshot.catalog, member)
        refuse_what_spark_alone_evaluates(member, definitions)
        tables = tuple(table_at(snapshot, table, state, view) for table in definitions)
        parts += [Part(snapshot.commit, member, tables, share, family) for share in tables[0].shares()]
    return parts


def read_part(store: LocalStore, part: Part, names: tuple[str, ...] | None = None) -> ArrowZSet:
    """The rows of a part as readers see them, all of them there; some columns of them, if so asked."""
    with vacuumed_meanwhile(store, part.view, part.commit):
        view, (rows_table, *copy_tables) = part.view, part.tables
        plain = view.expressions is None and view.having is None and part.family is None and not copy_tables
        rows = read_share(store, rows_table, part.share, names if plain else None)
        if plain and names is not None:
            return rows.keep(names)
        if copy_tables:
            rows = joined(view, rows, [read_whole(store, table) for table in copy_tables], part.tables)
        shown = shown_rows(rows, view, [table.view for table in part.tables])
        shown = shown if part.family is None else padded_rows(shown, view, part.family)
        return shown if names is None else shown.keep(names)


def joined(view: Definition, rows: ArrowZSet, copies: Iterable[ArrowZSet], tables: Iterable[StoredTable]) -> ArrowZSet:
    """Rows that point into copies, with what they point to."""
    assert view.computed is not None
    rows = rows.keep(tuple(pointing_columns(view, [table.view for table in tables])))
    for copy, (_, ids) in zip(copies, view.computed.copies, strict=True):
        rows = with_columns_of(rows, copy, ids)
    return rows


def repeated(rows: ArrowZSet) -> pa.Table:
    """Each row as often as it is there, without its weight."""
    weights = rows.table[WEIGHT]
    table = rows.table.select(list(range(len(rows.columns))))
    if pc.max(weights).as_py() in (None, 1):
        return table
    places = [place for place, weight in enumerate(weights.to_pylist()) for _ in range(weight)]
    return table.take(pa.array(places, pa.int64()))


def arrow_table(snapshot: HeldCommit, view: str, state: int | None = None) -> pa.Table:
    """A view in Arrow, read in this process; ExpressionError if Spark is needed to read it."""
    fields = [
        pa.field(name, pa.null() if type == VOID else arrow_type(type)) for name, type in shown_columns(snapshot, view)
    ]
    store = snapshot.files.store
    tables = [repeated(read_part(store, part)) for part in parts_of(snapshot, view, state)]
    return pa.concat_tables(table.cast(pa.schema(fields)) for table in tables)


@contextmanager
def vacuumed_meanwhile(store: LocalStore, view: Definition, commit: int) -> Iterator[None]:
    """A file that is missing because vacuum took it away is no damage."""
    try:
        yield
    except DamagedWarehouse as error:
        newest = CommitLog(store).last().tables.get(view.name)
        if newest is not None and newest.kept <= commit:
            raise
        raise StateGone(
            f"the files of {view.name} at commit {commit} have been vacuumed meanwhile",
            "load the view again; or give vacuum a retention that is longer than your longest query",
        ) from error
