"""Summaries compared with their sources, and recreated from them.

audit     the text of the summary, run by Spark over the relations at its vector, compared with what its readers see
reload    facts and dimensions read again; what is different becomes a new state of core and lattice, in one commit
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from viewkeeper.errors import UsageError
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.stored_views import stored_view
from viewkeeper.maintenance.images import images_of
from viewkeeper.maintenance.original_rows import original_frames, repeated
from viewkeeper.maintenance.summaries.in_spark import with_weight
from viewkeeper.maintenance.summaries.lattices import Summaries
from viewkeeper.maintenance.summaries.recomputing import differences
from viewkeeper.maintenance.summaries.rounding import Weighted, beyond_rounding, confirmed
from viewkeeper.maintenance.typed_rows import weighted_frame
from viewkeeper.messages import Position
from viewkeeper.planner.summaries.lattice import Lattice, Table
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.summary.recompute_sql import centered_select, rounded_columns, select_of_summary, tolerance_column
from viewkeeper.summary.star import FACT
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def compare(
    summaries: Summaries, lattice: Lattice, tables: Mapping[str, Table]
) -> tuple[dict[str, tuple[int, list[Weighted]]], dict[str, int]]:
    """For each of these names how many rows readers see, and what should be there (+) or should not (-); and how many
    facts find no row in a dimension where a foreign key promises one.

    Each name has its table; that of a family, any one of its tables.
    """
    record = summaries.writer.last
    first = next(iter(tables.values())).name
    if first in summaries.awaiting_refresh():
        raise UsageError(
            f"changes wait for the refresh of {first}, so it cannot be compared with its sources now",
            f"run 'viewkeeper refresh {first}' first",
        )
    engines = summaries.context.engines
    found = {}
    with _relations(summaries, lattice, fresh=False) as (frames, _), _kept(frames, several=len(tables) > 1):
        for name, table in tables.items():
            stored = engines.of_frame(stored_view(HeldCommit(summaries.files, record), name).weights())
            difference = engines.of_frame(_selected(summaries, name, table, stored.columns, frames)) - stored
            wrong = [] if difference.is_empty() else beyond_rounding(difference.weights())
            if wrong and (rounded := _rounded(table, _shown(name, table, stored.columns))):
                # Spark rounds the mean of large values, and with it what VAR and STDDEV are made of; and a sum may be
                # small beside what is added up.
                again = _computed_again(summaries, lattice, name, table, stored.columns, frames)
                wrong = confirmed(wrong, again, [stored.columns.index(column) for column in rounded])
            found[name] = (stored.size(), wrong)
        return found, _without_rows(lattice, frames)


def _without_rows(lattice: Lattice, frames: "Mapping[str, DataFrame]") -> dict[str, int]:
    """Promises that the facts break, as far as these have the foreign key themselves."""
    from viewkeeper.algebra.pyspark_names import F

    found: dict[str, int] = {}
    for path in sorted(lattice.relied):
        dimension = lattice.dimensions[path]
        if all(column.startswith(f"{FACT}.") for column, _ in dimension.on):
            fact, other = frames[lattice.fact.name].alias("f"), frames[dimension.relation.name].alias("d")
            on = [
                F.col(f"f.{quoted(column.partition('.')[2])}") == F.col(f"d.{quoted(key)}")
                for column, key in dimension.on
            ]
            if number := fact.join(other, on, "left_anti").count():
                found[dimension.relation.name] = found.get(dimension.relation.name, 0) + number
    return found


@contextmanager
def _kept(frames: "Mapping[str, DataFrame]", *, several: bool) -> Iterator[None]:
    """Computed once, if several tables are compared with them."""
    try:
        for frame in frames.values() if several else ():
            frame.persist()
        yield
    finally:
        for frame in frames.values() if several else ():
            frame.unpersist()


def _selected(
    summaries: Summaries, name: str, table: Table, columns: Sequence[str], frames: "Mapping[str, DataFrame]"
) -> "DataFrame":
    view = table.defined.view
    with original_frames(summaries.files.spark(), frames) as original:
        if view.family not in (None, name):  # one table of a family: the text is that of all of them
            return original.select(select_of_summary(view, original.names))
        selected = original.of(view.sql, view.core.operands, columns)
        # A grouping set that is asked for twice is stored once.
        return selected.distinct() if view.repeated_sets else selected


def _computed_again(
    summaries: Summaries,
    lattice: Lattice,
    name: str,
    table: Table,
    columns: Sequence[str],
    frames: "Mapping[str, DataFrame]",
) -> Iterator[tuple[tuple[Any, ...], tuple[float, ...]]]:
    """The rows of a summary, or of all tables of a family, and how far each of their rounded columns may be off."""
    members = [one for one in lattice.visible.values() if one.defined.view.family == name]
    with original_frames(summaries.files.spark(), frames) as original:
        for one in members or [table]:
            shown = _shown(name, one, columns)
            items = [f"{sql} AS {quoted(column)}" for column, sql in shown.items()]
            items += _rounded(one, shown).values()
            rows = centered_select(one.defined.view, original.names)
            for row in original.select(f"SELECT {', '.join(items)} FROM (\n{rows}\n)").toLocalIterator():
                yield tuple(row[: len(columns)]), tuple(row[len(columns) :])


def _shown(name: str, table: Table, columns: Sequence[str]) -> dict[str, str]:
    """The columns that are compared, as SQL over those of a table: of a family it has its part."""
    if table.defined.view.family != name:
        return {column: quoted(column) for column in columns}
    padded = {column: sql for column, sql, *_ in table.definition.properties["padded"]}
    return {column: padded[column] for column in columns}


def _rounded(table: Table, shown: Mapping[str, str]) -> dict[str, str]:
    """Of these columns those that are rounded, and where it is told how far they may be off."""
    view = table.defined.view
    told = {quoted(view.output[place].name): tolerance_column(place) for place in rounded_columns(view)}
    return {column: told[sql] for column, sql in shown.items() if sql in told}


@contextmanager
def _relations(
    summaries: Summaries, lattice: Lattice, *, fresh: bool
) -> "Iterator[tuple[dict[str, DataFrame], dict[str, Position]]]":
    """The relations of a lattice as frames, each row as often as it is there: at its vector, or as they are now."""
    relations = {relation.name: relation for relation in lattice.input_relations.values()}
    at_sources = {name: relation for name, relation in relations.items() if relation.source != VIEWS}
    spark, record = summaries.files.spark(), summaries.writer.last
    with images_of(summaries.context, at_sources, lattice.facts.core, fresh=fresh) as (contents, at):
        frames = {name: repeated(weighted_frame(spark, rows, relations[name])) for name, rows in contents.items()}
        for view, relation in lattice.input_relations.items():
            if relation.source == VIEWS:
                frames[relation.name] = summaries.contents.frame(view, record).select(
                    *[quoted(column) for column in relation.columns]
                )
        yield frames, at


def reload(summaries: Summaries, lattice: Lattice) -> None:
    """Make all tables of a lattice again."""
    context, facts, record = summaries.context, lattice.facts, summaries.writer.last
    own_core = facts.feed.startswith(RESERVED)
    with _relations(summaries, lattice, fresh=own_core) as (frames, at):
        fact = with_weight(frames[facts.fact], lattice.fact)
        by_path = {d.path: frames[d.relation.name] for node in lattice.nodes.values() for d in node.dimensions}
        tables = differences(summaries.context, lattice, record, fact, by_path)
        held: dict[str, list[Any]] = {}
        for view, relation in lattice.input_relations.items():
            if view.startswith(RESERVED) and (view != facts.feed or facts.readable):
                new = context.engines.of_frame(frames[relation.name])
                held[view] = [new - context.engines.of_frame(summaries.contents.frame(view, record))]
        with context.new_commit() as commit:
            if own_core:
                # The tables get what is different themselves: nobody is to follow this state.
                commit.states(facts.core, [(at, held)], passed_on=[{}])
            commit.states(lattice.name, [(at, {name: [rows] for name, rows in tables.items()})])
            if lattice.deferred:
                summaries.waiting.empty(commit, summaries.waiting.tables(lattice), record)
    if own_core:
        context.incomplete.forget_skipped(facts.core, record.groups[facts.core].vector, at)
    summaries.unhalt(lattice)
