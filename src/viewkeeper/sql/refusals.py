"""What a view cannot contain: for each clause its name, the reason and a way out.

The lists of what is allowed are closed. A clause that a later version of the parser learns is refused until somebody
decides what it means for maintenance.
"""

from sqlglot import exp

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.aggregate_calls import GROUPING, call_name, is_call
from viewkeeper.sql.join_refusals import refuse_join
from viewkeeper.sql.outside_sql import refuse_outside_sql
from viewkeeper.sql.syntax import EXPECTED, refusal, spark_sql

_AGGREGATE = "a summary table aggregates, and this must be the join alone: leave the aggregate out"
_ORDER = "a view is a bag of rows; put the order into the query that reads it"
_NESTED = "write a JOIN b ON ... JOIN c ON ..., reordering them if need be, or make the inner join a view of its own"
_PARENTHESES = "leave them out, reordering the joins if need be, or make the join inside them a view of its own"
_SUBQUERY = "write its tables in FROM and its conditions in WHERE"

# Clauses of SELECT, by sqlglot's name for them: as SQL names them, why not, and what instead.
_CLAUSES: dict[str, tuple[str, str, str]] = {
    "with_": ("WITH", "a view is one SELECT over tables of sources", _SUBQUERY),
    "kind": ("SELECT AS", "the rows of a view are plain columns", "list the columns"),
    "distinct": ("DISTINCT", "it is an aggregate: a row disappears only with its last duplicate", _AGGREGATE),
    "into": ("INTO", "a view has its own name", "write CREATE MATERIALIZED VIEW name AS SELECT ..."),
    "laterals": ("LATERAL VIEW", "a table function has no changes to propagate", "unnest the column at its source"),
    "pivots": ("PIVOT", "it is an aggregate in disguise", "write one SUM(CASE WHEN ... THEN ... END) per column"),
    "group": ("GROUP BY", "it is an aggregate", _AGGREGATE),
    "having": ("HAVING", "it is a condition on an aggregate", _AGGREGATE),
    "qualify": ("QUALIFY", "it is a condition on a window function", "compute the window when reading the view"),
    "windows": ("WINDOW", "one change can move every row of a window", "compute the window when reading the view"),
    "distribute": ("DISTRIBUTE BY", "it says where rows are, not which", _ORDER),
    "sort": ("SORT BY", "a maintained view has no order", _ORDER),
    "cluster": ("CLUSTER BY", "a maintained view has no order", _ORDER),
    "order": ("ORDER BY", "a maintained view has no order", _ORDER),
    "limit": ("LIMIT", "which rows are first changes with every update", "put the limit into the query that reads it"),
    "offset": ("OFFSET", "which rows are first changes with every update", "put it into the query that reads the view"),
    "locks": ("FOR UPDATE", "a view only reads", "leave it out"),
    "sample": ("TABLESAMPLE", "every refresh would choose other rows", "select rows with a condition in WHERE"),
    "connect": ("CONNECT BY", "recursive queries cannot be maintained as a join", "join a fixed number of levels"),
}
_ALLOWED_IN_SELECT = frozenset({"expressions", "from_", "joins", "where"})
_ALLOWED_IN_SUMMARY = _ALLOWED_IN_SELECT | {"distinct", "group", "having"}

_TABLE_CLAUSES: dict[str, tuple[str, str, str]] = {
    "sample": _CLAUSES["sample"],
    "pivots": _CLAUSES["pivots"],
    "version": ("VERSION or TIMESTAMP AS OF", "a view follows the present of its sources", "leave it out"),
    "when": ("AS OF", "a view follows the present of its sources", "leave it out"),
    "joins": ("a join inside a join", "ON must follow the table that it joins", _NESTED),
    "laterals": _CLAUSES["laterals"],
}
_ALLOWED_IN_TABLE = frozenset({"this", "db", "catalog", "alias"})

# Functions whose value depends on more than their arguments.
_NONDETERMINISTIC: tuple[type[exp.Expr], ...] = (
    exp.CurrentCatalog,
    exp.CurrentDatabase,
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentRole,
    exp.CurrentSchema,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentTimestampLTZ,
    exp.CurrentTimezone,
    exp.CurrentUser,
    exp.CurrentVersion,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Normal,
    exp.Rand,
    exp.Randn,
    exp.Randstr,
    exp.SessionUser,
    exp.Shuffle,
    exp.Uniform,
    exp.UtcDate,
    exp.UtcTime,
    exp.UtcTimestamp,
    exp.Uuid,
    exp.Version,
    exp.Zipf,
)
_NONDETERMINISTIC_NAMES = frozenset(
    {
        "getdate",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "monotonically_increasing_id",
        "nextval",
        "now",
        "spark_partition_id",
        "sysdate",
        "user",
        "version",
    }
)
# Spark's deterministic functions that sqlglot passes through without knowing them.
_DETERMINISTIC_NAMES = frozenset(
    {
        "arrays_overlap",
        "bin",
        "bit_get",
        "bround",
        "crc32",
        "date_part",
        "expm1",
        "format_number",
        "hash",
        "hypot",
        "isnotnull",
        "isnull",
        "log1p",
        "make_date",
        "make_timestamp",
        "make_timestamp_ntz",
        "octet_length",
        "pmod",
        "positive",
        "timestamp_micros",
        "timestamp_millis",
        "timestamp_seconds",
        "to_timestamp_ntz",
        "try_to_date",
        "weekday",
        "xxhash64",
        "zip_with",
    }
)
# DATE 'today' is a function in disguise.
_MOVING_DATES = frozenset({"now", "today", "tomorrow", "yesterday"})


def refuse_unsupported(query: exp.Expr, *, aggregates: bool = False, outer: bool = False) -> exp.Select:
    """The SELECT of a view, once nothing in it is outside what can be maintained.

    With `aggregates` it may be one of a summary table; its calls are then looked at in `aggregate_refusals.py`. With
    `outer` its joins may be outer joins.
    """
    if isinstance(query, exp.SetOperation):
        name = type(query).__name__.upper()
        raise refusal(name, "a view is one SELECT", "define one view per SELECT and combine them when reading", query)
    if isinstance(query, exp.Subquery):
        raise refusal("SELECT in parentheses", "a view is one SELECT", "leave the parentheses out", query)
    if not isinstance(query, exp.Select):
        raise DefinitionError(f"{_beginning(query)} is not a SELECT", EXPECTED)
    query.set("hint", None)  # a hint says how to join, never what
    _refuse_clauses(query, _ALLOWED_IN_SUMMARY if aggregates else _ALLOWED_IN_SELECT)
    for join in query.args.get("joins") or ():
        refuse_join(join, aggregates=aggregates, outer=outer)
    _refuse_tables(query)
    for node in query.walk():
        if node is not query:
            refuse_node(node, aggregates=aggregates)
    return query


def _refuse_clauses(select: exp.Select, allowed: frozenset[str]) -> None:
    for key, value in select.args.items():
        if value and key not in allowed:
            clause, reason, hint = _CLAUSES.get(key, (key.strip("_").upper(), "it has no meaning here", "leave it out"))
            raise refusal(clause, reason, hint, value if isinstance(value, exp.Expr) else select)
    if select.args.get("from_") is None:
        raise refusal("SELECT without FROM", "a view reads at least one table", "add FROM source.table", select)


def _refuse_tables(select: exp.Select) -> None:
    for table in (select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())):
        _refuse_table(table)


def _refuse_table(table: exp.Expr) -> None:
    if isinstance(table, exp.Subquery):
        if isinstance(table.this, exp.Table):
            raise refusal("FROM with parentheses", "joins are read from left to right", _PARENTHESES, table)
        raise refusal("a subquery in FROM", "a view reads tables of sources", _SUBQUERY, table)
    if not isinstance(table, exp.Table):
        raise refusal(
            f"{type(table).__name__.upper()} in FROM",
            "it has no changes to propagate",
            "put the rows into a table",
            table,
        )
    if isinstance(table.this, exp.Func):
        name = table.this.name if isinstance(table.this, exp.Anonymous) else table.this.sql_name().lower()
        raise refusal(
            f"the table function {name}", "it has no changes to propagate", "put its rows into a table", table
        )
    for key, value in table.args.items():
        if value and key not in _ALLOWED_IN_TABLE:
            fallback = (key.upper(), "it has no meaning here", "leave it out")
            clause, reason, hint = _TABLE_CLAUSES.get(key, fallback)
            raise refusal(clause, reason, hint, table)
    alias = table.args.get("alias")
    if alias is not None and alias.columns:
        raise refusal("a column list after an alias", "columns keep their names", "rename them in SELECT: AS", alias)
    if alias is not None and not isinstance(alias.this, exp.Identifier):
        raise refusal(*_TABLE_CLAUSES["version"], table)


def refuse_node(node: exp.Expr, *, aggregates: bool = False) -> None:
    """UnsupportedClause if a part of an expression is none that a view may have."""
    refuse_outside_sql(node)
    if isinstance(node, exp.Query):
        name = _subquery_name(node)
        instead = _SUBQUERY if name == "a subquery" else f"{_SUBQUERY}, where at most one row of them matches"
        raise refusal(name, "its rows can change without any row of this table", instead, node)
    if isinstance(node, (exp.Window, exp.RowNumber)):
        _, reason, hint = _CLAUSES["windows"]
        raise refusal(f"a window function ({spark_sql(node)})", reason, hint, node)
    if is_call(node) or isinstance(node, GROUPING):
        if not aggregates:
            raise refusal(f"the aggregate {call_name(node)}", "the view keeps rows, not groups", _AGGREGATE, node)
        return
    if isinstance(node, exp.Filter) and not is_call(node.this):
        raise refusal(
            f"FILTER after {spark_sql(node.this)}", "that is no aggregate", "put the condition into WHERE", node
        )
    if isinstance(node, exp.UDTF):
        name = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()
        raise refusal(f"{name} in SELECT", "it makes several rows of one", "unnest the column at its source", node)
    if isinstance(node, _NONDETERMINISTIC):
        assert isinstance(node, exp.Func)
        raise _nondeterministic(f"the function {node.sql_name()}", node)
    if isinstance(node, exp.Cast) and node.this.is_string and node.this.name.strip().lower() in _MOVING_DATES:
        raise _nondeterministic(f"the date '{node.this.name}'", node)
    if isinstance(node, exp.Anonymous):
        _refuse_function(node)
    if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
        raise refusal(f"the parameter {spark_sql(node)}", "a view is fixed", "write the value itself", node)


def _refuse_function(node: exp.Anonymous) -> None:
    name = node.name.lower()
    if name in _NONDETERMINISTIC_NAMES:
        raise _nondeterministic(f"the function {name}", node)
    if name not in _DETERMINISTIC_NAMES:
        raise refusal(
            f"the function {name}",
            "it is not known whether it gives the same value for the same row every time",
            "use a built-in function, or compute the value at the source",
            node,
        )


def _nondeterministic(name: str, node: exp.Expr) -> UnsupportedClause:
    return refusal(
        name,
        "its value changes without any change at a source",
        "compare with a literal, or apply the function when reading the view",
        node,
    )


def _subquery_name(node: exp.Expr) -> str:
    parent = node.parent.parent if isinstance(node.parent, exp.Subquery) else node.parent
    if isinstance(parent, exp.Exists) or isinstance(node.parent, exp.Exists):
        return "EXISTS (SELECT ...)"
    if isinstance(parent, exp.In) or isinstance(node.parent, exp.In):
        return "IN (SELECT ...)"
    return "a subquery"


def _beginning(node: exp.Expr) -> str:
    text = spark_sql(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
