"""The signed rows of a range of states, without Spark.

Without copies a view is linear in what is stored: the changes of its table, as readers see them. With copies, state by
state, each table before or behind its own change:

    ΔV_s  =  Σ_i  T_0(s) ⋈ ... ⋈ T_(i-1)(s) ⋈ ΔT_i,s ⋈ T_(i+1)(s-1) ⋈ ...

Only the rows that a change can meet are kept of the tables: those of `rows` that point to a changed row of a copy, and
those of the copies that one of them, or a changed row of `rows`, points to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.errors import StateGone
from viewkeeper.lake.log.catalog import Definition, families, tables_of
from viewkeeper.lake.log.columns import STATE, WEIGHT, Columns
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.lake.tables.arrow_tables import StoredTable, read_changes, read_whole, table_at
from viewkeeper.lake.tables.change_files import ChangeFiles, change_files
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.arrow_parts import joined, shown_columns, vacuumed_meanwhile
from viewkeeper.lake.views.arrow_rows import (
    padded_rows,
    refuse_what_spark_alone_evaluates,
    shown_rows,
)


@dataclass(frozen=True)
class ChangedView:
    """Where the changes of a view, or of a member of a family, are: by table, with what it held before."""

    view: Definition
    before: tuple[StoredTable, ...]
    changed: tuple[tuple[ChangeFiles, ...], ...]


@dataclass(frozen=True)
class ChangedPart:
    """The changes of a view in a range of states, at a commit."""

    view: str
    commit: int
    members: tuple[ChangedView, ...]
    family: Columns | None


def changes_of(snapshot: HeldCommit, view: str, since: int, until: int) -> ChangedPart:
    """The changes of the states after `since`, up to `until`; StateGone, ExpressionError."""
    if until < since:
        raise StateGone(f"state {until} of {view} is before state {since}", "give the earlier one first")
    members = []
    for member in snapshot.members(view):
        tables = tables_of(snapshot.catalog, member)
        refuse_what_spark_alone_evaluates(member, tables)
        before = tuple(table_at(snapshot, table, since, view) for table in tables)
        changed = tuple(
            tuple(change_files(snapshot.files, table, snapshot.holding(table, until, view)[0], since, until))
            for table in tables
        )
        members.append(ChangedView(member, before, changed))
    family = shown_columns(snapshot, view) if view in families(snapshot.catalog) else None
    return ChangedPart(view, snapshot.commit, tuple(members), family)


def read_changed(store: LocalStore, part: ChangedPart) -> ArrowZSet:
    """The signed rows as readers see them, in the order of their states, which are the last column. Rows of one state
    are added up."""
    total: ArrowZSet | None = None
    for member in part.members:
        with vacuumed_meanwhile(store, member.view, part.commit):
            rows = _changes(store, member)
        shown = shown_rows(rows, member.view, [table.view for table in member.before])
        shown = shown if part.family is None else padded_rows(shown, member.view, part.family)
        total = shown if total is None else total + shown
    assert total is not None
    net = total.consolidate()
    return ArrowZSet(net.columns, net.table.sort_by(STATE), consolidated=True, positive=False)


def _changes(store: LocalStore, member: ChangedView) -> ArrowZSet:
    """The signed rows of what the view is shown of, each with its state."""
    signed = [
        _sum([read_changes(store, table.view, one) for one in files])
        for table, files in zip(member.before, member.changed, strict=True)
    ]
    if len(signed) == 1:
        # Added up before they are shown: on a row that one state inserts and deletes an expression might fail.
        return signed[0].consolidate()
    return _joined_changes(store, member, signed)


def _joined_changes(store: LocalStore, member: ChangedView, signed: Sequence[ArrowZSet]) -> ArrowZSet:
    view, tables = member.view, member.before
    assert view.computed is not None
    now = _within_reach(view.computed.copies, [read_whole(store, table) for table in tables], signed)
    states = sorted({state for one in signed for state in one.table[STATE].to_pylist()})
    found = [_stamped(joined(view, now[0], now[1:], tables), 0, empty=True)]
    for state in states:
        changes = [_of_state(one, state) for one in signed]
        for place, change in enumerate(changes):
            if change.table.num_rows:
                operands = [*now[:place], change, *now[place + 1 :]]
                found.append(_stamped(joined(view, operands[0], operands[1:], tables), state))
                now[place] = (now[place] + change).consolidate()
    return _sum(found).consolidate()


def _within_reach(
    copies: Sequence[tuple[str, tuple[str, ...]]], before: Sequence[ArrowZSet], signed: Sequence[ArrowZSet]
) -> list[ArrowZSet]:
    """The rows of each table that a change can meet."""
    rows, ids_of = before[0], [ids for _, ids in copies]
    keys = [tuple((name, name) for name in ids) for ids in ids_of]
    touched = [
        rows.matching(_present(one.keep(ids)), on) for one, ids, on in zip(signed[1:], ids_of, keys, strict=True)
    ]
    # A row that points to two changed rows is one row.
    some = _sum(touched).distinct()
    pointing = _sum([some, signed[0].keep(rows.columns)])
    return [
        some,
        *(
            copy.matching(_present(pointing.keep(ids)), on)
            for copy, ids, on in zip(before[1:], ids_of, keys, strict=True)
        ),
    ]


def _present(rows: ArrowZSet) -> ArrowZSet:
    """The same rows, whatever their signs."""
    ones = rows.table.set_column(len(rows.columns), WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.table.num_rows))
    return ArrowZSet(rows.columns, ones, consolidated=False, positive=True)


def _of_state(signed: ArrowZSet, state: int) -> ArrowZSet:
    of_state = signed.table.filter(pc.equal(signed.table[STATE], pa.scalar(state, pa.int64())))
    return ArrowZSet.of_table(of_state.drop_columns([STATE])).consolidate()


def _stamped(rows: ArrowZSet, state: int, *, empty: bool = False) -> ArrowZSet:
    table = rows.table.slice(0, 0) if empty else rows.table
    stamped = table.add_column(len(rows.columns), STATE, pa.repeat(pa.scalar(state, pa.int64()), table.num_rows))
    return ArrowZSet((*rows.columns, STATE), stamped, consolidated=False, positive=rows.positive)


def _sum(parts: Sequence[ArrowZSet]) -> ArrowZSet:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
