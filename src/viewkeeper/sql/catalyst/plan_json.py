"""Plans and expressions as Spark's `toJSON` writes them: nodes in preorder, each with the number of its children."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a logical plan or of an expression."""

    name: str
    """the class, without its package"""
    java_class: str
    fields: dict[str, Any]
    children: tuple["Node", ...]

    def expression(self, field: str) -> "Node":
        """A field that is an expression: a child by its number, or written out."""
        value = self.fields[field]
        return self.children[value] if isinstance(value, int) else nested(value)

    def expressions(self, field: str) -> tuple["Node", ...]:
        """A field that is a list of expressions."""
        return tuple(self.children[one] if isinstance(one, int) else nested(one) for one in self.fields[field])

    def optional(self, field: str) -> "Node | None":
        """A field that may have no expression."""
        value = self.fields.get(field)
        return None if value is None else self.expression(field)

    def walk(self) -> Iterator["Node"]:
        """This node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


def parsed(text: str) -> Node:
    """The tree of a plan that Spark wrote."""
    return nested(json.loads(text))


def fields_of(schema: str) -> list[dict[str, Any]]:
    """The fields of a schema that Spark wrote."""
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return fields


def nested(nodes: list[dict[str, Any]]) -> Node:
    """The tree of nodes in preorder."""
    node, end = _tree(nodes, 0)
    assert end == len(nodes), "Spark's JSON has nodes that belong to none"
    return node


def is_nodes(value: Any) -> bool:
    """Whether a field's value is a tree of its own."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "class" in value[0]


def _tree(nodes: list[dict[str, Any]], place: int) -> tuple[Node, int]:
    at = nodes[place]
    place += 1
    children = []
    for _ in range(at["num-children"]):
        child, place = _tree(nodes, place)
        children.append(child)
    fields = {name: value for name, value in at.items() if name not in ("class", "num-children")}
    name = at["class"].rstrip("$").rpartition(".")[2].rpartition("$")[2]
    return Node(name, at["class"], fields, tuple(children)), place


def expr_id(value: dict[str, Any]) -> int:
    """The number by which Spark knows a column."""
    return int(value["id"])
