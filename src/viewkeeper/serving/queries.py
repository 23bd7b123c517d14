"""SQL over the views of one snapshot, by their names.

The text goes to Spark as it was written, save that each name of a view is replaced by the name of a temporary view of
its own: the user's catalog and other queries never see them. A query that names tables of sources is answered from
summaries: `summaries/answering.py`.
"""

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from viewkeeper.algebra.pyspark_names import DataFrame, Py4JError, PySparkException, SparkSession
from viewkeeper.clock import unique_id
from viewkeeper.errors import SyntaxProblem, UnknownName, UnsupportedClause, UsageError, did_you_mean, first_line
from viewkeeper.lake.log.columns import columns_of
from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.views.stored_views import stored_view
from viewkeeper.maintenance.summaries.answering import answered_query
from viewkeeper.maintenance.summaries.stored_ancestors import KnownTables
from viewkeeper.serving.answered_queries import run_answered
from viewkeeper.serving.linear_queries import linear_form
from viewkeeper.sql.outside_sql import refuse_outside_sql

_FILE_FORMATS = frozenset({"avro", "binaryfile", "csv", "delta", "json", "orc", "parquet", "text", "xml"})


def run_query(snapshot: HeldCommit, query: str) -> DataFrame:
    """The DataFrame of a query."""
    tree = _parsed(query)
    tables = _tables(tree)
    known = KnownTables(snapshot)
    if (answered := answered_query(query, tables, known)) is not None:
        spark = snapshot.files.spark()
        return run_answered(answered, known, query, tables, spark, lambda text: _spark_sql(spark, text, snapshot))
    _refuse_files(tables)
    spark = snapshot.files.spark()
    names = {name.casefold(): name for name in snapshot.views}
    used = [table for table in tables if not table.db and table.name.casefold() in names]
    views = {table.name.casefold(): names[table.name.casefold()] for table in used}
    stored = {view: stored_view(snapshot, view) for view in set(views.values())}
    bags = {view: one.bag() for view, one in stored.items()}
    temporary = {view: f"_vk_{unique_id()}" for view in stored}
    try:
        for view, name in temporary.items():
            bags[view].createTempView(name)
        answer = _spark_sql(spark, _substituted(query, used, views, temporary), snapshot)
        linear = linear_form(tree, columns_of(next(iter(bags.values())).schema)) if len(used) == 1 else None
        if linear is None:
            return answer
        (view,) = stored
        stored[view].signed().createTempView(signed := f"_vk_{unique_id()}")
        temporary["signed rows"] = signed
        return _spark_sql(spark, linear(signed, answer.schema), snapshot)
    finally:
        for name in temporary.values():
            spark.catalog.dropTempView(name)


def _parsed(query: str) -> exp.Expr:
    try:
        statements = [statement for statement in sqlglot.parse(query, dialect="spark") if statement is not None]
    except sqlglot.ParseError as error:
        raise SyntaxProblem(f"the query is not SQL: {str(error).splitlines()[0]}", "correct the query") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise UsageError("only one SELECT can be run", "views are changed by their sources, never by a statement")
    for node in statements[0].walk():
        refuse_outside_sql(node)
    return statements[0]


def _tables(tree: exp.Expr) -> list[exp.Table]:
    """The names in the query that are tables, and not common table expressions."""
    return [
        source
        for scope in traverse_scope(tree)
        for source in {id(found): found for found in scope.sources.values()}.values()
        if isinstance(source, exp.Table)
    ]


def _refuse_files(tables: list[exp.Table]) -> None:
    """Spark would read any file for FROM parquet.`/any/file`; sessions of ours do not, and no other does it for us."""
    for table in tables:
        if table.db and (table.db.casefold() in _FILE_FORMATS or "/" in table.name):
            raise UnsupportedClause(
                f"a query reads views, and {table.db}.`{table.name}` is a file", "read it with Spark itself"
            )


def _substituted(query: str, used: list[exp.Table], views: dict[str, str], temporary: dict[str, str]) -> str:
    text = query
    for table in sorted({id(t): t for t in used}.values(), key=lambda t: -int(t.this.meta["start"])):
        start, end = int(table.this.meta["start"]), int(table.this.meta["end"]) + 1
        # A column may be written as view.column, so the name lives on as an alias.
        alias = "" if table.alias else f" AS {quoted(table.name)}"
        text = text[:start] + quoted(temporary[views[table.name.casefold()]]) + alias + text[end:]
    return text


def _spark_sql(spark: SparkSession, text: str, snapshot: HeldCommit) -> DataFrame:
    try:
        return spark.sql(text)
    except PySparkException as error:
        condition = error.getCondition() or ""
        known = ", ".join(snapshot.views) or "none yet"
        asked = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        meant = did_you_mean(asked, snapshot.views)
        hint = f"{meant}views of this warehouse: {known}" if "TABLE_OR_VIEW" in condition else "correct the query"
        raise UnknownName(f"Spark cannot run the query: {first_line(error)}", hint) from error
    except Py4JError as error:
        raise UnknownName(f"Spark cannot run the query: {first_line(error)}", "correct the query") from error
