"""The DataFrame of a query over tables of sources.

Columns get the names and types that Spark gives them when it looks at the query as it was written, over empty tables of
the same columns.
"""

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from viewkeeper.algebra.pyspark_names import DataFrame, SparkSession
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.views.stored_views import stored_view
from viewkeeper.maintenance.summaries.answering import AnsweredQuery, AnsweredSelect, is_of_source, tables_of_sources
from viewkeeper.maintenance.summaries.stored_ancestors import KnownTables
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.summary.answering import Way
from viewkeeper.summary.propagate import TemporaryNames

RunSql = Callable[[str], DataFrame]


def run_answered(
    answered: AnsweredQuery, known: KnownTables, query: str, tables: list[exp.Table], spark: SparkSession, run: RunSql
) -> DataFrame:
    """The rows of a query, whose text names these tables; `run` is how Spark runs SQL."""
    with TemporaryNames(spark) as temporary:
        views = _Views(known.snapshot, temporary)
        empty = _Empty(known.relations, spark, temporary)
        original = run(_as_written(query, tables, views, empty, known.sources))
        stored: dict[tuple[str, str], str] = {}

        def name(way: Way, table: str) -> str:
            key = way.stored.lattice, table
            if key not in stored:
                stored[key] = temporary.name(known.frame(way, table))
            return stored[key]

        def statement(part: AnsweredSelect) -> str:
            alone = (
                original if part.select is answered.tree else run(_over_empty(part.select, views, empty, known.sources))
            )
            return part.answer.sql(name, [(field.name, field.dataType.simpleString()) for field in alone.schema])

        if answered.whole is not None:
            return run(statement(answered.whole))
        tree = answered.rewritten(statement)
        views.substitute(tree)
        return run(spark_sql(tree)).toDF(*original.columns)


class _Views:
    """The views of the warehouse, by names that only this query knows."""

    def __init__(self, snapshot: HeldCommit, temporary: TemporaryNames) -> None:
        self._snapshot, self._temporary = snapshot, temporary
        self._known = {name.casefold(): name for name in snapshot.views}
        self._named: dict[str, str] = {}

    def name(self, table: exp.Table) -> str | None:
        """The temporary name; None if it is no view."""
        view = None if table.db else self._known.get(table.name.casefold())
        if view is not None and view not in self._named:
            self._named[view] = self._temporary.name(stored_view(self._snapshot, view).bag())
        return self._named.get(view) if view is not None else None

    def substitute(self, tree: exp.Expr) -> None:
        """Name them so in a tree."""
        tables = [source for scope in traverse_scope(tree) for source in scope.sources.values()]
        for table in {id(one): one for one in tables if isinstance(one, exp.Table)}.values():
            if (name := self.name(table)) is not None:
                _rename(table, name)


class _Empty:
    """Empty tables with the columns of those at the sources."""

    def __init__(self, relations: Mapping[str, Relation], spark: SparkSession, temporary: TemporaryNames) -> None:
        self._relations = {name.lower(): relation for name, relation in relations.items()}
        self._spark, self._temporary = spark, temporary
        self._named: dict[str, str] = {}

    def name(self, table: exp.Table) -> str:
        full = ".".join(part.name for part in table.parts).lower()
        if full not in self._named:
            relation = self._relations[full]
            items = [
                f"CAST(NULL AS {type}) AS {quoted(name)}"
                for name, type in zip(relation.columns, relation.types, strict=True)
            ]
            self._named[full] = self._temporary.name(self._spark.sql(f"SELECT {', '.join(items)} LIMIT 0"))
        return self._named[full]


def _rename(table: exp.Table, name: str) -> None:
    # A column may be written as table.column, so the name lives on as an alias.
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    table.set("this", exp.to_identifier(name.strip("`"), quoted=True))
    table.set("db", None)
    table.set("catalog", None)


def _over_empty(select: exp.Select, views: _Views, empty: _Empty, sources: Mapping[str, object]) -> str:
    """A part of a query, over empty tables."""
    alone = select.copy()
    assert isinstance(alone, exp.Select)
    alone.set("with_", None)
    for table in tables_of_sources(alone, sources):
        _rename(table, empty.name(table))
    views.substitute(alone)
    for column in alone.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return spark_sql(alone)


def _as_written(
    query: str, tables: list[exp.Table], views: _Views, empty: _Empty, sources: Mapping[str, object]
) -> str:
    """The text of a query over empty tables: what it calls its columns depends on how they are written."""
    changes: dict[int, tuple[int, str]] = {}
    for table in tables:
        name = empty.name(table) if is_of_source(table, sources) else views.name(table)
        if name is not None:
            start, end = _span(table.parts)
            changes[start] = end, name + ("" if table.alias else f" AS {quoted(table.name)}")
    root = tables[0].root()
    for column in root.find_all(exp.Column):
        *qualifiers, _ = column.parts
        if len(qualifiers) > 1 and qualifiers[0].name.lower() in sources:
            start, end = _span(qualifiers)
            changes[start] = end, quoted(qualifiers[-1].name)
    for start, (end, text) in sorted(changes.items(), reverse=True):
        query = query[:start] + text + query[end:]
    return query


def _span(parts: list[exp.Expr]) -> tuple[int, int]:
    """Where a dotted name is in the text."""
    return int(parts[0].meta["start"]), int(parts[-1].meta["end"]) + 1
