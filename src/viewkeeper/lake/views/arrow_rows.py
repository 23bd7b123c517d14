"""Stored rows as readers see them, without Spark: conditions, formulas, and the padding of a family.

shown  =  π expressions ( σ having ( stored ))         family  =  ⊎ π padded ( shown of each member )
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.errors import ExpressionError
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import STATE, WEIGHT, Columns, arrow_type
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.formulas import Formula, formula, stored_column

VOID = "VOID"
"""Spark's type of a column that is nothing but NULL"""


def shown_rows(rows: ArrowZSet, view: Definition, tables: Sequence[Definition]) -> ArrowZSet:
    """What readers see of the rows of a view, which may carry their state."""
    kept = tuple(name for name in rows.columns if name == STATE)
    if view.having is None and view.expressions is None:
        return rows.keep((*view.shown.names, *kept))
    types = {name: type for table in tables for name, type in table.columns}
    rows = _as_stored(rows)
    if view.having is not None:
        rows = rows.select((formula(view.having, types),))
    told = view.expressions or tuple((name, _quoted(name), type) for name, type in view.shown.columns)
    return _projected(rows, told, types, kept)


def padded_rows(rows: ArrowZSet, view: Definition, family: Columns) -> ArrowZSet:
    """Shown rows of a member as rows of its family."""
    kept = tuple(name for name in rows.columns if name == STATE)
    told = [(name, sql, type) for (name, type), (_, sql) in zip(family, view.padded, strict=True)]
    return _projected(_as_stored(rows), told, dict(view.shown.columns), kept)


def family_columns(members: Sequence[Definition]) -> Columns:
    """The columns of a family: the first member decides on names and types; where it has nothing but NULL, the first
    that has something else."""
    columns = []
    for place, (name, _) in enumerate(members[0].padded):
        made = [formula(member.padded[place][1], dict(member.shown.columns)) for member in members]
        types = [one.type for one in made if not _is_null(one)]
        if types and not types[0]:
            raise ExpressionError(f"the type of {name} is not known without Spark", "CAST it in the definition")
        columns.append((name, types[0] if types else VOID))
    return tuple(columns)


def refuse_what_spark_alone_evaluates(view: Definition, tables: Sequence[Definition]) -> None:
    """ExpressionError if a column or the condition of a view cannot be evaluated here."""
    types = {name: type for table in tables for name, type in table.columns}
    shown = [sql for _, sql, _ in view.expressions or ()]
    for sql in [*shown, *([view.having] if view.having else []), *(sql for _, sql in view.padded)]:
        made = formula(sql, {**types, **dict(view.shown.columns)})
        try:
            made.compile(tuple(sorted(made.columns)))
        except ExpressionError as error:
            raise ExpressionError(
                f"view {view.name} is computed when it is read, and Spark alone can: {error.detail}",
                "read it with Warehouse.read; or 'viewkeeper publish' a copy of it and read that",
            ) from error


def _projected(
    rows: ArrowZSet, told: Sequence[tuple[str, str, str]], types: Mapping[str, str], kept: Sequence[str]
) -> ArrowZSet:
    output: list[tuple[str, Expression]] = [(name, formula(sql, types)) for name, sql, _ in told]
    output += [(name, Expression.column(stored_column(name), "BIGINT")) for name in kept]
    made = rows.project(tuple(output))
    columns = [
        made.table[place].cast(pa.null() if type == VOID else arrow_type(type))
        for place, (_, _, type) in enumerate(told)
    ]
    columns += [made.table[place] for place in range(len(told), made.table.num_columns)]
    table = pa.table(columns, names=[*made.columns, WEIGHT])
    return ArrowZSet(made.columns, table, consolidated=False, positive=made.positive)


def _as_stored(rows: ArrowZSet) -> ArrowZSet:
    return rows.rename(tuple(stored_column(name) for name in rows.columns))


def _is_null(made: Formula) -> bool:
    return made.sql == "NULL"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
