"""What Spark's JSON leaves out of expressions, from the plan itself: whether a cast or a sum fails or gives NULL, the
character that escapes in LIKE, the bytes of a binary literal.
"""

import re
from typing import Any

from viewkeeper.sql.catalyst.analysis import elements
from viewkeeper.sql.catalyst.plan_json import is_nodes

LOSSY = re.compile(r"try_|escape|(?<![\w'\"])x\s*['\"]", re.IGNORECASE)
"""texts of queries that may have such expressions; all others are in ANSI mode and have none"""

UNKNOWN = "unknown"
_FIELDS = ("evalMode", "evalContext", "escapeChar")


def complete(plan: Any, nodes: list[dict[str, Any]]) -> None:
    """Fills in the fields that are lost, for all expressions of a plan."""
    for found, node in zip(_preorder(plan), nodes, strict=True):
        written: list[list[dict[str, Any]]] = []
        for value in node.values():
            _trees(value, written)
        expressions = elements(found.expressions()) if written else []
        if len(expressions) != len(written):  # a node with expressions that are no fields of it
            for tree in written:
                _unknown(tree)
            continue
        for expression, tree in zip(expressions, written, strict=True):
            _complete_expression(expression, tree)


def _complete_expression(expression: Any, tree: list[dict[str, Any]]) -> None:
    for found, node in zip(_preorder(expression), tree, strict=True):
        if "evalMode" in node:
            node["evalMode"] = str(found.evalMode().toString())
        if "evalContext" in node:
            node["evalContext"] = str(found.evalContext().evalMode().toString())
        if "escapeChar" in node:
            node["escapeChar"] = str(found.escapeChar())
        if node.get("dataType") == "binary" and "value" in node:
            node["value"] = str(found.sql())
        # What a function was before it was replaced is written out too, and has no place in the tree.
        for value in node.values():
            if is_nodes(value):
                _unknown(value)


def _unknown(tree: list[dict[str, Any]]) -> None:
    for node in tree:
        for field in _FIELDS:
            if field in node:
                node[field] = UNKNOWN
        for value in node.values():
            if is_nodes(value):
                _unknown(value)


def _trees(value: Any, found: list[list[dict[str, Any]]]) -> None:
    if is_nodes(value):
        found.append(value)
    elif isinstance(value, list):
        for one in value:
            _trees(one, found)


def _preorder(node: Any) -> list[Any]:
    return [node, *(one for child in elements(node.children()) for one in _preorder(child))]
