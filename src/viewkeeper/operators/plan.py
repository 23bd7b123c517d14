"""The nodes of a query in topological order, and how a change of its relations goes through them.

Δ of the relations  ⟶  node after node  ⟶  Δ of the view, Δ of every stored table
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.operators.node import Engine, Node, State, StateTable, Z
from viewkeeper.operators.normal_form import in_normal_form
from viewkeeper.operators.registry import node_of
from viewkeeper.sql.tree import Query, Scan, in_order, inputs


@dataclass(frozen=True)
class Placed:
    """A node of a plan, and the places of the nodes that it reads."""

    node: Node
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class NodePlan:
    """How a query is maintained."""

    query: Query
    """in normal form"""

    @classmethod
    def of(cls, query: Query) -> "NodePlan":
        return cls(in_normal_form(query))

    @cached_property
    def nodes(self) -> tuple[Placed, ...]:
        order = list(in_order(self.query.root))
        place = {operator: number for number, operator in enumerate(order)}
        return tuple(
            Placed(node_of(operator, number), tuple(place[one] for one in inputs(operator)))
            for number, operator in enumerate(order)
        )

    @cached_property
    def tables(self) -> dict[str, tuple[StateTable, Node]]:
        """What is stored beside the view, with the nodes that need it."""
        return {table.name: (table, placed.node) for placed in self.nodes for table in placed.node.tables}

    @property
    def scans(self) -> Iterator[Scan]:
        for placed in self.nodes:
            if isinstance(operator := placed.node.operator, Scan):
                yield operator

    def follow(self, changed: Mapping[Scan, Z], state: State, engine: Engine) -> tuple[Z, dict[str, Z]]:
        """The change of the view, and those of the stored tables."""
        deltas: list[Z] = []
        changes: dict[str, Z] = {}
        for placed in self.nodes:
            operator = placed.node.operator
            given: Sequence[Z] = (
                [changed[operator]] if isinstance(operator, Scan) else [deltas[place] for place in placed.inputs]
            )
            followed = placed.node.follow(given, state, engine)
            deltas.append(followed.delta)
            changes |= followed.state
        return deltas[-1], changes
