"""How a query is answered: which stored tables, what else was considered, the SQL that runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from viewkeeper.errors import UsageError
from viewkeeper.maintenance.summaries.answering import AnsweredQuery, AnsweredSelect, all_ways, answered_query
from viewkeeper.maintenance.summaries.stored_ancestors import KnownTables
from viewkeeper.sql.syntax import parse_statement, spark_sql
from viewkeeper.summary.answering import Way
from viewkeeper.summary.defined import Defined
from viewkeeper.summary.statements import quoted
from viewkeeper.summary.unanswered import Unfit, unfit

if TYPE_CHECKING:
    from viewkeeper.lake.tables.held_commit import HeldCommit


@dataclass(frozen=True)
class Considered:
    """A stored table that can answer, and what that costs: its rows, once more for each join."""

    table: str
    lattice: str
    rows: int
    joins: tuple[str, ...]
    cost: float
    chosen: bool
    reason: str = ""
    """why it was not chosen, if that is not the cost"""


@dataclass(frozen=True)
class ExplainedSelect:
    """One of the summaries that a query asks for."""

    groups: tuple[str, ...]
    table: str
    state: int
    considered: tuple[Considered, ...]
    unfit: tuple[Unfit, ...]


@dataclass(frozen=True)
class QueryExplanation:
    """How a query is answered: `sql` is what Spark runs, over the tables as they are stored."""

    query: str
    commit: int
    views: tuple[str, ...]
    """views that it names itself"""
    parts: tuple[ExplainedSelect, ...]
    sql: str


def explain_query(snapshot: "HeldCommit", query: str) -> QueryExplanation:
    """Which stored tables answer a query, and why; NotAnswered if none does."""
    known = KnownTables(snapshot)
    tree = parse_statement(query)
    if not isinstance(tree, exp.Query):
        raise UsageError("only a SELECT can be explained", "give a query, or the name of a view")
    named = {name.casefold(): name for name in snapshot.views}
    tables = [
        source for scope in traverse_scope(tree) for source in scope.sources.values() if isinstance(source, exp.Table)
    ]
    views = [named[table.name.casefold()] for table in tables if not table.db and table.name.casefold() in named]
    answered = answered_query(query, tables, known)
    parts: list[ExplainedSelect] = []
    if answered is not None:
        for part in answered.parts:
            for table, way in zip(part.answer.asked.tables, part.answer.ways, strict=True):
                parts.append(_explained(table.defined, way, known))
        sql = _shown_sql(answered)
    else:
        sql = query
    return QueryExplanation(query, snapshot.commit, tuple(dict.fromkeys(views)), tuple(parts), sql)


def _shown_sql(answered: AnsweredQuery) -> str:
    def sql(part: AnsweredSelect) -> str:
        return part.answer.sql(lambda _, table: quoted(table))

    return sql(answered.whole) if answered.whole is not None else spark_sql(answered.rewritten(sql))


def _explained(made: Defined, chosen: Way, known: KnownTables) -> ExplainedSelect:
    considered = []
    for way in all_ways(made, known):
        own = (way.table, way.stored.lattice) == (chosen.table, chosen.stored.lattice)
        reason = "" if own else _against(way, known)
        considered.append(Considered(way.table, way.stored.lattice, way.rows, way.joined, way.cost, own, reason))
    return ExplainedSelect(
        tuple(made.node.groups.values()),
        chosen.table,
        known.snapshot.record.groups[chosen.stored.lattice].last,
        tuple(considered),
        tuple(unfit(made, [one.stored for one in known.ancestors.values()])),
    )


def _against(way: Way, known: KnownTables) -> str:
    for pairs in way.pairs:
        if not known.holds(way, pairs):
            by = ", ".join(column for column, _ in pairs.by)
            return f"{pairs.dimension.short} has rows without {by} that differ in what it is to determine"
    return "" if known.ancestors[way.stored.lattice].current else "it lags behind its facts"
