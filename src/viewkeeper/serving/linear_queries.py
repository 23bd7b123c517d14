"""Queries that are linear in the weights: answered from signed rows, with nothing added up before.

    COUNT(*) = Σ w        COUNT(e) = Σ w [e is not NULL]        SUM(e) = Σ e·w, NULL if COUNT(e) = 0

Pending deltas then cost next to nothing: no row of the base is compared with them. A query qualifies if it is one
SELECT over one view, its aggregates are COUNT and SUM of exact numbers, and all else in it is grouped by. A group whose
count is 0 is not there. Sums of DOUBLE do not qualify: what is added and subtracted again leaves a rounding error.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeeper.lake.log.columns import WEIGHT, Columns
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.sql.type_families import BIGINT, MAX_PRECISION, Family, parse_type, sql_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Rewritten = Callable[[str, "StructType"], str]
"""From the name of the signed rows and the schema of the answer to the SQL to run."""

# What a condition, a grouping or an argument may be made of: deterministic, and it cannot fail on a row.
_HARMLESS = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Paren,
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
)


def linear_form(tree: exp.Expr, columns: Columns) -> Rewritten | None:
    """How to answer a query over one view with these columns from signed rows; None if it is not linear in them."""
    if not isinstance(tree, exp.Select) or not _plain(tree):
        return None
    keys, conditions = _keys(tree), _conditions(tree)
    if keys is None or not all(_harmless(part) for part in [*keys, *conditions]):
        return None
    written = {key.sql("spark") for key in keys}
    types = {name.casefold(): type for name, type in columns}
    items: list[str] = []
    aggregates = 0
    for item in tree.expressions:
        value = item.unalias()
        if value.sql("spark") in written:
            items.append(value.sql("spark"))
            continue
        weighted = _weighted(value, types)
        if weighted is None:
            return None
        aggregates += 1
        items.append(weighted)
    return _writer(tree, items, keys, conditions) if aggregates else None


def _keys(tree: exp.Select) -> list[exp.Expr] | None:
    """What the query groups by; None for ROLLUP, for ALL, and for numbers of columns."""
    group = tree.args.get("group")
    if group is None:
        return []
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    keys = list(group.expressions)
    return None if any(isinstance(key, exp.Literal) for key in keys) else keys


def _conditions(tree: exp.Select) -> list[exp.Expr]:
    where = tree.args.get("where")
    return [where.this] if where else []


def _plain(tree: exp.Select) -> bool:
    """SELECT ... FROM one view [WHERE] [GROUP BY], and nothing else."""
    allowed = {"expressions", "from_", "from", "where", "group", "kind", "operation_modifiers", "hint"}
    if any(value for name, value in tree.args.items() if name not in allowed):
        return False
    source = tree.find(exp.From)
    return (
        source is not None
        and isinstance(source.this, exp.Table)
        and not source.this.args.get("joins")
        and not source.this.args.get("sample")
        and not source.this.args.get("pivots")
        and not tree.args.get("kind")
    )


def _harmless(tree: exp.Expr) -> bool:
    return all(isinstance(part, _HARMLESS) for part in tree.walk())


def _weighted(value: exp.Expr, types: dict[str, str]) -> str | None:
    """The aggregate over signed rows; None if it is not a linear one."""
    weight = quoted(WEIGHT)
    if isinstance(value, exp.Count):
        counted = value.this
        if value.expressions or isinstance(counted, exp.Distinct):
            return None
        if counted is None or isinstance(counted, exp.Star | exp.Literal):
            return f"COALESCE(SUM({weight}), 0)"
        if _harmless(counted):
            return f"COALESCE(SUM(IF(({counted.sql('spark')}) IS NULL, 0, {weight})), 0)"
        return None
    if isinstance(value, exp.Sum) and isinstance(value.this, exp.Column) and _exact(types, value.this):
        column = value.this.sql("spark")
        count = f"SUM(IF({column} IS NULL, 0, {weight}))"
        return f"IF({count} = 0, NULL, SUM({column} * {weight}))"
    return None


def _exact(types: dict[str, str], column: exp.Column) -> bool:
    """Whether column times weight loses nothing: integers, and decimals that leave room for the digits of a BIGINT."""
    known = sql_type(parse_type(types.get(column.name.casefold(), "")))
    if known.family is Family.DECIMAL:
        return known.precision + BIGINT.precision < MAX_PRECISION
    return known.family is Family.INTEGER


def _writer(tree: exp.Select, items: list[str], keys: list[exp.Expr], conditions: list[exp.Expr]) -> Rewritten:
    source = tree.find(exp.From)
    assert source is not None
    alias = quoted(source.this.alias or source.this.name)

    def written(signed: str, schema: "StructType") -> str:
        columns = ", ".join(
            f"CAST({sql} AS {field.dataType.simpleString()}) AS {quoted(field.name)}"
            for sql, field in zip(items, schema, strict=True)
        )
        text = f"SELECT {columns} FROM {quoted(signed)} AS {alias}"
        if conditions:
            text += f" WHERE {conditions[0].sql('spark')}"
        if keys:
            by = ", ".join(key.sql("spark") for key in keys)
            text += f" GROUP BY {by} HAVING SUM({quoted(WEIGHT)}) <> 0"
        return text

    return written
