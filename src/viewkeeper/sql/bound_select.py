"""A SELECT over a join with its names bound: every column is one of an operand, and has a type.

The text may write `id`, `o.id` or `shop.orders.id`, may join by USING, and may say `*`. All that is gone here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from viewkeeper.errors import DefinitionError, SyntaxProblem
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.names import check_columns, refuse_reserved, spelling
from viewkeeper.sql.syntax import ViewDialect, position, spark_sql
from viewkeeper.sql.type_families import Family, parse_type, sql_type
from viewkeeper.sql.using import columns_of_using, own_name, resolve_using
from viewkeeper.sql.view import Operand


@dataclass(frozen=True)
class Item:
    """One output column: its name, and its tree with the columns qualified and typed."""

    name: str
    node: exp.Expr


@dataclass(frozen=True)
class BoundSelect:
    """`on` has the conjuncts of ON and USING, each join's own; `extra` are the trees that were bound with the items."""

    operands: tuple[Operand, ...]
    on: tuple[tuple[Expression, ...], ...]
    where: tuple[Expression, ...]
    crossings: tuple[tuple[int, int], ...]
    items: tuple[Item, ...]
    extra: tuple[exp.Expr, ...]

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """The conjuncts of ON, USING and WHERE, each once: for inner joins it does not matter where one stands."""
        return tuple(dict.fromkeys([*chain.from_iterable(self.on), *self.where]))


def bind_select(select: exp.Select, operands: tuple[Operand, ...], extra: Sequence[exp.Expr] = ()) -> BoundSelect:
    """Bind SELECT ... FROM ... WHERE, and `extra` expressions over the same tables."""
    written = {item.alias.lower(): item.alias for item in select.expressions if isinstance(item, exp.Alias)}
    listed = [item.unnest() if isinstance(item.unnest(), exp.Column) else item for item in select.expressions]
    select.set(
        "expressions",
        [*listed, *(exp.alias_(node, f"_vk_extra_{index}") for index, node in enumerate(extra))],
    )
    check_columns(select, operands)
    crossings = tuple(
        (index, index + 1) for index, join in enumerate(select.args.get("joins") or ()) if join.kind == "CROSS"
    )
    tree = _qualified(select, operands)
    items = len(tree.expressions) - len(extra)
    return BoundSelect(
        operands,
        tuple(_conditions(join.args.get("on")) for join in tree.args.get("joins") or ()),
        _conditions(where.this if (where := tree.args.get("where")) else None),
        crossings,
        _items(tree.expressions[:items], written),
        tuple(item.unalias() for item in tree.expressions[items:]),
    )


def refuse_unnamed(select: exp.Select) -> None:
    """Refuses an output column that is computed and not named."""
    if not select.expressions:
        raise SyntaxProblem("SELECT lists no columns", "name the columns of the view, or write SELECT *")
    for item in select.expressions:
        if not (isinstance(item, exp.Alias) or isinstance(item.unnest(), exp.Column) or item.is_star):
            raise DefinitionError(
                f"the output column {spark_sql(item)} has no name{position(item)}",
                f"add AS name: {spark_sql(item)} AS name",
            )


def as_condition(node: exp.Expr, *, written: exp.Expr | None = None) -> Expression:
    """The expression of a tree that must be true or false; `written` is what the user wrote, if that is another."""
    condition = Expression.from_node(node)
    if condition.type not in ("BOOLEAN", ""):
        shown = written if written is not None else node
        raise DefinitionError(
            f"the condition {spark_sql(shown)} is {condition.type}, not BOOLEAN{position(shown)}",
            "compare it with something, for example <> 0",
        )
    return condition


class _Columns(MappingSchema):
    """Columns by their names in lower case. sqlglot would read a name as SQL: the column ``a`` would be a."""

    def _normalize_name(self, name: str | exp.Identifier, *_: object, **__: object) -> str:
        return (name if isinstance(name, str) else name.name).lower()


def _qualified(select: exp.Select, operands: tuple[Operand, ...]) -> exp.Select:
    """The tree with every column qualified, typed and spelled as its relation declares it, and without * and USING."""
    using = columns_of_using(select)
    schema = _Columns(
        {
            f"r{operand.index}": {
                column.lower(): parse_type(type) or exp.DataType.build("unknown")
                for column, type in zip(operand.relation.columns, operand.relation.types, strict=True)
                if column not in operand.relation.gone
            }
            for operand in operands
        },
        dialect=ViewDialect,
    )
    try:
        # Without the expansion of aliases WHERE means the columns of the tables, as in Spark.
        tree = qualify(select, schema=schema, dialect=ViewDialect, expand_alias_refs=False)
    except OptimizeError as error:
        raise DefinitionError(f"the names cannot be resolved: {error}", "qualify every column with an alias") from error
    assert isinstance(tree, exp.Select)
    resolve_using(tree, operands, using)
    annotate_types(tree, schema=schema, dialect=ViewDialect)
    spelled = spelling(operands)
    for column in tree.find_all(exp.Column):
        identifier = exp.to_identifier(spelled[column.table, column.name], quoted=True)
        identifier.meta.update(column.this.meta)  # where it is in the text
        column.set("this", identifier)
    return tree


def _conditions(clause: exp.Expr | None) -> tuple[Expression, ...]:
    """The conjuncts of ON or WHERE, each once."""
    nodes = _conjuncts(clause) if clause is not None else []
    for node in nodes:
        _refuse_text_as_number(node)
    return tuple(dict.fromkeys(map(as_condition, nodes)))


def _refuse_text_as_number(node: exp.Expr) -> None:
    """A number and a text are compared as numbers: the first text that is none would stop the view."""
    sides = [side.unnest() for side in (node.left, node.right)] if isinstance(node, exp.EQ) else []
    if not sides or not all(isinstance(side, exp.Column) for side in sides):
        return
    types = [sql_type(side.type) for side in sides]
    if any(one.numeric for one in types) and any(one.family is Family.STRING for one in types):
        names = [f"{side.table}.{side.name}" for side in sides if isinstance(side, exp.Column)]
        number, text = names if types[0].numeric else reversed(names)
        raise DefinitionError(
            f"{number} is a number and {text} a text{position(node)}",
            f"compare them as texts: CAST({number} AS STRING) = {text}; or compare other columns",
        )


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [part for operand in node.flatten() for part in _conjuncts(operand)]
    return [] if isinstance(node, exp.Boolean) and node.this else [node]


def _items(nodes: list[exp.Expr], written: dict[str, str]) -> tuple[Item, ...]:
    items: dict[str, Item] = {}
    for item in nodes:
        node = item.unalias()
        name = item.alias_or_name
        name = written.get(name) or own_name(node) or name
        refuse_reserved(name, "the output column")
        if name.lower() in items:
            raise DefinitionError(
                f"two output columns are called {name}{position(item)}",
                f"add AS name to one of them: ... AS {name}2",
            )
        items[name.lower()] = Item(name, node)
    return tuple(items.values())
