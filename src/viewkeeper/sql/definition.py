"""What stands around the SELECT of a view: its name and its properties.

    CREATE MATERIALIZED VIEW name [TBLPROPERTIES ('key' = 'value', ...)] AS SELECT ...

The list of properties is closed. Those with a fixed choice of values are checked here, once for all kinds of views.
"""

import difflib
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.durations import seconds
from viewkeeper.errors import DefinitionError, UnsupportedClause, UsageError
from viewkeeper.sql.names import refuse_reserved
from viewkeeper.sql.refresh_mode import refresh_of
from viewkeeper.sql.syntax import EXPECTED, parse_statement, position, spark_sql

RETENTION = "retention"
GLOBAL_TIMEOUT = "global_timeout"
"""how long a missing part of a global transaction is waited for"""
INTERVAL = "interval"
OF_ALGORITHMS = ("nested_updates", "period", INTERVAL, "grouped", "window", "share")
"""options of single algorithms"""
PROPERTIES = (
    "consistency",
    "algorithm",
    "storage",
    "refresh",
    "group",
    "minmax",
    "core",
    "refresh_policy",
    RETENTION,
    GLOBAL_TIMEOUT,
    *OF_ALGORITHMS,
)
REPLACED = {
    "nested_depth": (
        "the property nested_depth is replaced by nested_updates, the most transactions of one state",
        "write 'nested_updates' = '64', or leave it out",
    ),
}
"""properties that there were: the fact, and the remedy"""
_CHOICES = {
    "consistency": ("auto", "none", "convergent", "weak", "strong", "complete"),
    "minmax": ("node", "recompute"),
    "core": ("none", "stored"),
    "grouped": ("true", "false"),
    "share": ("false", "true"),
    "refresh_policy": ("auto", "incremental", "full"),
}


@dataclass(frozen=True)
class Definition:
    """A view before its query is understood. `properties` are those of TBLPROPERTIES, as they were written."""

    name: str
    sql: str
    properties: tuple[tuple[str, str], ...]
    query: exp.Expr


def read_definition(sql: str, name: str | None) -> Definition:
    """From a CREATE MATERIALIZED VIEW, or from a query alone, which is then called `name`."""
    statement = parse_statement(sql)
    if not isinstance(statement, exp.Create):
        return Definition(name or "v", sql.strip(), (), statement)
    items = statement.args["properties"].expressions if statement.args.get("properties") else []
    materialized = any(isinstance(item, exp.MaterializedProperty) for item in items)
    if statement.kind != "VIEW" or not materialized:
        raise UnsupportedClause(f"CREATE {statement.kind} does not define a maintained view", EXPECTED)
    if isinstance(statement.this, exp.Schema):
        raise UnsupportedClause(
            f"a column list after the name of a view is not supported{position(statement.this)}",
            "name the columns in SELECT: ... AS name",
        )
    if statement.args.get("replace") or statement.args.get("exists"):
        clause = "OR REPLACE" if statement.args.get("replace") else "IF NOT EXISTS"
        raise UnsupportedClause(f"{clause} is not supported for a view", "drop the view first, or choose another name")
    if statement.expression is None:
        raise DefinitionError("the view has no query", EXPECTED)
    return Definition(_name(statement.this), sql.strip(), _properties(items), statement.expression)


def name_in(sql: str) -> str:
    """The name of the view that a CREATE defines."""
    return read_definition(sql, None).name


def _name(table: exp.Table) -> str:
    if len(table.parts) > 1:
        raise DefinitionError(
            f"the name of a view has one part, and {spark_sql(table)} has {len(table.parts)}",
            f"write CREATE MATERIALIZED VIEW {table.name}; names with a dot are tables of sources",
        )
    refuse_reserved(table.name, "the view")
    return table.name


def _properties(items: list[exp.Expr]) -> tuple[tuple[str, str], ...]:
    result: dict[str, str] = {}
    for item in items:
        if isinstance(item, exp.MaterializedProperty):
            continue
        if type(item) is not exp.Property:
            raise UnsupportedClause(
                f"{spark_sql(item)} is not supported for a view",
                f"a view has TBLPROPERTIES: {', '.join(PROPERTIES)}",
            )
        key = spark_sql(item.this) if isinstance(item.this, exp.Dot) else item.name.lower()
        if key in REPLACED:
            raise DefinitionError(*REPLACED[key], code="unknown-property")
        if key not in PROPERTIES:
            matches = difflib.get_close_matches(key, PROPERTIES, n=1)
            hint = f"did you mean {matches[0]}?" if matches else f"the properties are {', '.join(PROPERTIES)}"
            raise DefinitionError(f"a view has no property {key}", hint, code="unknown-property")
        if key in result:
            raise DefinitionError(f"the property {key} is set twice", "keep one of the two", code="unknown-property")
        value = item.args["value"]
        result[key] = value.name if isinstance(value, exp.Literal) else spark_sql(value).lower()
        if key in _CHOICES and result[key] not in _CHOICES[key]:
            raise DefinitionError(
                f"there is no {key} {result[key]}",
                f"choose one of {', '.join(_CHOICES[key])}",
                code="unknown-property",
            )
    refresh_of(result.items())
    for key in (RETENTION, GLOBAL_TIMEOUT, INTERVAL):
        if key in result:
            _check_duration(key, result[key])
    return tuple(result.items())


def _check_duration(key: str, value: str) -> None:
    try:
        if seconds(value) < 1 and key == INTERVAL:
            raise UsageError("it is less than a second", "write '1 s' or more, or leave it out")
    except UsageError as error:
        raise DefinitionError(f"the {key} of a view cannot be {value!r}", error.hint, code="unknown-property") from None
