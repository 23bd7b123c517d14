"""The first content of summary tables, computed on the driver: the refresh of empty tables by the whole fact.

    v  =  refresh ( ∅, sd_v over all facts as insertions )

So small warehouses need no Spark to begin with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from viewkeeper.lake.log.columns import Columns, arrow_schema, arrow_type
from viewkeeper.maintenance.summaries.round import delta_with_extremes
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.type_families import Family, type_named
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.derivation import Derivation
from viewkeeper.summary.node import Node, shape_of
from viewkeeper.summary.propagate_arrow import ArrowInputs, propagate_arrow
from viewkeeper.summary.refresh import refresh
from viewkeeper.summary.statements import stored_types


def column_types(node: Node) -> dict[str, str] | None:
    """The types of all columns of a node's table; None if one is not known before Spark is asked."""
    types = stored_types(node)
    return types if all(is_known(type) for type in types.values()) else None


def is_known(type: str) -> bool:
    return type_named(type).family not in (Family.UNKNOWN, Family.NULL, Family.OTHER)


def first_rows(
    edges: Sequence[Derivation],
    inputs: ArrowInputs,
    given: Mapping[str, pa.Table],
    nodes: Mapping[str, Node],
    columns: Mapping[str, Columns],
) -> dict[str, pa.Table]:
    """The rows of the tables at the lower ends of edges. `given` has the linear part of tables that are there already,
    `columns` those of all."""

    def type_of(expression: Expression, node: str, column: str) -> pa.DataType:
        return arrow_type(dict(columns[node])[column])

    deltas = {**given, **propagate_arrow(edges, inputs, type_of, given)}
    made = [edge.below for edge in edges if edge.below.stored]
    behind = [nodes[extreme.node] for node in made for extreme in node.extremes if extreme.node in given]
    # Of tables that are there only the groups count: their own extremes need nodes that nobody has asked for.
    tables = {node.name: node for node in made} | {node.name: replace(node, extremes=()) for node in behind}
    empty = {name: _empty(node, columns[name]) for name, node in tables.items()}
    refreshed = refresh(
        [shape_of(node, nodes) for node in tables.values()],
        empty,
        {name: delta_with_extremes(node, deltas, nodes) for name, node in tables.items()},
    )
    return {node.name: refreshed[node.name].after for node in made}


def _empty(node: Node, columns: Columns) -> ArrowContent:
    """A table of the node without rows."""
    names = stored_types(node)
    return ArrowContent(arrow_schema(tuple(one for one in columns if one[0] in names), signed=False).empty_table())
