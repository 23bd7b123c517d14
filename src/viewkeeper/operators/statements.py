"""One operator over named tables, as a SELECT that each engine runs: the rule of a node exists once.

Rows of the tables have the columns of the tree (c1, c2, ...), each as often as it is there.
"""

from collections.abc import Sequence

from viewkeeper.sql.tree import Aggregate, AtMostOne, Generate, Limit, Operator, Order, Recompute, Window


def statement(operator: Operator, tables: Sequence[str]) -> str:
    """The rows of an operator over the rows of its inputs."""
    match operator:
        case Aggregate():
            calls = [f"{one.sql} AS {one.column.name}" for one in operator.calls]
            keys = [f"{one.sql} AS {one.column.name}" for one in operator.keys]
            grouped = f" GROUP BY {', '.join(one.sql for one in operator.keys)}" if operator.keys else ""
            return f"SELECT {', '.join([*keys, *calls])} FROM {tables[0]}{grouped}"
        case Window():
            functions = [f"{one.sql} AS {one.column.name}" for one in operator.functions]
            return f"SELECT {', '.join([one.name for one in operator.input.columns] + functions)} FROM {tables[0]}"
        case Limit():
            listed = ", ".join(one.name for one in operator.columns)
            limit = "" if operator.count is None else f" LIMIT {operator.count}"
            offset = f" OFFSET {operator.offset}" if operator.offset else ""
            return f"SELECT {listed} FROM {tables[0]} ORDER BY {total_order(operator)}{limit}{offset}"
        case Generate():
            outer = "OUTER " if operator.outer else ""
            listed = ", ".join(one.name for one in operator.columns)
            made = ", ".join(one.name for one in operator.made)
            return f"SELECT {listed} FROM {tables[0]} LATERAL VIEW {outer}{operator.generator} made AS {made}"
        case AtMostOne():
            return f"SELECT {', '.join(one.name for one in operator.columns)} FROM {tables[0]}"
        case Recompute():
            return operator.sql
        case _:
            raise AssertionError(f"{type(operator).__name__} is evaluated by its own rule")


def total_order(limit: Limit) -> str:
    """The order of a LIMIT; all columns break ties, so that the same rows always come first."""
    first = [written(one) for one in limit.order]
    return ", ".join([*first, *(f"{one.name} ASC NULLS FIRST" for one in limit.columns)])


def written(order: Order) -> str:
    direction = "DESC" if order.descending else "ASC"
    return f"{order.sql} {direction} NULLS {'FIRST' if order.nulls_first else 'LAST'}"
