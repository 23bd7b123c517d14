"""The operator tree of a query: data, whoever made it.

    Query  =  names and types of the result  ←  Operator  ←  ...  ←  Scan of a relation

Every column of a tree has a name of its own (c1, c2, ...): what passes through an operator keeps its name, and a
relation that is read twice gives two sets of columns. So an expression is Spark SQL over such names, with nothing left
to resolve: casts are written out, and every operator inside it stands in parentheses.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of the tree, with its type as Spark writes it: `decimal(15,2)`."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Computed:
    """`sql` AS column."""

    column: Column
    sql: str


@dataclass(frozen=True)
class Order:
    """One expression of an ORDER BY."""

    sql: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Scan:
    """A source table or a view: some of its columns, under the names of the tree."""

    relation: str
    fields: tuple[str, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Project:
    """Linear: each row becomes one row."""

    input: "Operator"
    expressions: tuple[Computed, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(one.column for one in self.expressions)


@dataclass(frozen=True)
class Filter:
    """Linear: the rows for which the condition is true."""

    input: "Operator"
    condition: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Generate:
    """Linear: each row, with every row that the generator (explode, inline, ...) makes of it."""

    input: "Operator"
    generator: str
    outer: bool
    made: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *self.made)


@dataclass(frozen=True)
class Repeat:
    """Linear: each row as many times as `times` says, at least 0 times. INTERSECT ALL and EXCEPT ALL need it."""

    input: "Operator"
    times: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Union:
    """UNION ALL: the inputs' columns by their places."""

    inputs: tuple["Operator", ...]
    columns: tuple[Column, ...]


JOINS = ("inner", "left", "full", "semi", "anti", "single")
"""A right join is a left join with its sides changed; single is a left join for which two matches are an error."""


@dataclass(frozen=True)
class Join:
    """left ⋈ right on  ∧ keys  ∧ condition; a key is an expression of the left and one of the right."""

    kind: str
    left: "Operator"
    right: "Operator"
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    """for each key: whether NULL equals NULL (<=>)"""
    condition: str | None = None
    """what else must be true, over the columns of both"""
    null_aware: bool = False
    """NOT IN: an anti join with one key, where a comparison that is NULL counts as a match"""

    @property
    def columns(self) -> tuple[Column, ...]:
        if self.kind in ("semi", "anti"):
            return self.left.columns
        left = tuple(_nullable(one) for one in self.left.columns) if self.kind == "full" else self.left.columns
        right = self.right.columns if self.kind == "inner" else tuple(_nullable(one) for one in self.right.columns)
        return (*left, *right)


@dataclass(frozen=True)
class Call:
    """An aggregate function AS column: `function`(DISTINCT arguments) WITHIN GROUP (ORDER BY order) FILTER (filter)."""

    column: Column
    function: str
    """as Spark names it: sum, count, avg, min, ..."""
    arguments: tuple[str, ...]
    """count(*) is count of the literal 1"""
    distinct: bool = False
    filter: str | None = None
    order: tuple[Order, ...] = ()
    sql: str = ""
    """the whole call"""


@dataclass(frozen=True)
class Aggregate:
    """GROUP BY keys; without keys there is always one row. DISTINCT is one without calls."""

    input: "Operator"
    keys: tuple[Computed, ...]
    calls: tuple[Call, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*(one.column for one in self.keys), *(one.column for one in self.calls))


@dataclass(frozen=True)
class Window:
    """The input's rows, each with window functions of its partition."""

    input: "Operator"
    partition: tuple[str, ...]
    functions: tuple[Computed, ...]
    """each with its whole OVER clause"""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(one.column for one in self.functions))


@dataclass(frozen=True)
class Limit:
    """The first `count` rows (None: all) after `offset` of them, in this order; all columns break ties."""

    input: "Operator"
    order: tuple[Order, ...]
    count: int | None
    offset: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class AtMostOne:
    """The input, which must not have two rows: an uncorrelated scalar subquery."""

    input: "Operator"

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Recompute:
    """A query that has no rule: Spark computes it from whole relations."""

    sql: str
    """over the relations under `names`, with the columns `fields` of their Scans"""
    inputs: tuple[Scan, ...]
    names: tuple[str, ...]
    """of the inputs in the text: identifiers that need no quotes"""
    columns: tuple[Column, ...]
    """of the result, by their places"""
    why: str


Operator = (
    Scan | Project | Filter | Generate | Repeat | Union | Join | Aggregate | Window | Limit | AtMostOne | Recompute
)


@dataclass(frozen=True)
class Query:
    """What a view shows: columns of the tree under the names of the user, and the order in which they are read."""

    root: Operator
    names: tuple[str, ...]
    """of the root's columns"""
    order: tuple[Order, ...] = ()
    spark: str = ""
    """the version of Spark that read it"""


def inputs(operator: Operator) -> tuple[Operator, ...]:
    """The operators that this one reads."""
    match operator:
        case Scan():
            return ()
        case Join():
            return (operator.left, operator.right)
        case Union() | Recompute():
            return operator.inputs
        case _:
            return (operator.input,)


def in_order(operator: Operator) -> Iterator[Operator]:
    """Every operator of a tree once, each after those that it reads; equal ones are one."""
    seen: set[Operator] = set()

    def visit(one: Operator) -> Iterator[Operator]:
        if one not in seen:
            seen.add(one)
            for below in inputs(one):
                yield from visit(below)
            yield one

    yield from visit(operator)


def _nullable(column: Column) -> Column:
    return Column(column.name, column.type)
