"""The form of an aggregate view: a select-project-join core and an aggregate over it.

    V = π output ( σ having ( γ groups; aggregates ( core ) ) )

A family is what CUBE, ROLLUP and GROUPING SETS define: one such table per grouping set, all over the same join. The
family itself is the union of its members, each padded with NULL where it does not group.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from sqlglot import exp

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.view import OutputColumn, View

# The flat names of what the aggregate makes, in output and HAVING: `g.0` is the first group, `a.0` the first aggregate.
GROUP, AGGREGATE = "g", "a"


class Function(StrEnum):
    """The aggregate functions that are maintained."""

    COUNT_ALL = "count(*)"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    VAR_SAMP = "var_samp"
    VAR_POP = "var_pop"
    STDDEV_SAMP = "stddev_samp"
    STDDEV_POP = "stddev_pop"
    COUNT_DISTINCT = "count(distinct)"


@dataclass(frozen=True)
class Aggregate:
    """One call: `argument` is over the flat columns of the core's operands, and None for COUNT(*).

    `type` is Spark's type of the result.
    """

    function: Function
    argument: Expression | None
    type: str

    @property
    def name(self) -> str:
        """As a reader would write it: SUM(qty)."""
        if self.argument is None:
            return "COUNT(*)"
        argument = readable(self.argument)
        if self.function is Function.COUNT_DISTINCT:
            return f"COUNT(DISTINCT {argument})"
        return f"{self.function.value.upper()}({argument})"


@dataclass(frozen=True)
class SummaryView:
    """A summary table: its columns are expressions over the groups `g.0`, `g.1`, ... and the aggregates `a.0`, ...

    The core has one output column per group (`g0`, `g1`, ...), then one per distinct argument of an aggregate (`a0`,
    ...). Without groups there is one row. `family` is the name of the family that it is a member of.
    """

    name: str
    sql: str
    core: View
    groups: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    output: tuple[OutputColumn, ...]
    having: Expression | None
    properties: tuple[tuple[str, str], ...] = field(default=())
    family: str | None = None
    repeated_sets: bool = False
    """whether its family asks for some grouping set twice"""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.output)


@dataclass(frozen=True)
class Member:
    """One grouping set, with groups and output restricted to what it groups by.

    `padded` makes rows of the family from its rows: for each column of the family the name and Spark SQL over the
    member's own columns. That is a quoted column, CAST(NULL AS type), or the number that GROUPING has here.
    """

    view: SummaryView
    padded: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """The tables of a CUBE, a ROLLUP or GROUPING SETS, the finest first; a set that is asked for twice is one."""

    name: str
    sql: str
    members: tuple[Member, ...]
    properties: tuple[tuple[str, str], ...] = field(default=())

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.members[0].padded)


def group_column(index: int) -> str:
    """The flat name of a group in output and HAVING."""
    return f"{GROUP}.{index}"


def aggregate_column(index: int) -> str:
    """The flat name of an aggregate in output and HAVING."""
    return f"{AGGREGATE}.{index}"


def readable(expression: Expression) -> str:
    """An expression without the aliases and the quotes."""
    return spark_sql(
        expression.node.transform(lambda node: exp.column(node.this.name) if isinstance(node, exp.Column) else node)
    )
