"""The condition of a join: keys, which can be looked up, and what else must be true.

l = r      a key, if one side is of the left input and the other of the right
l <=> r    a key for which NULL equals NULL
l = r OR (l = r) IS NULL    alone: the key of a NOT IN
"""

from viewkeeper.sql.catalyst.expressions import Renderer
from viewkeeper.sql.catalyst.plan_columns import conjuncts, references
from viewkeeper.sql.catalyst.plan_json import Node

Keys = tuple[tuple[str, str], ...]


def join_condition(
    condition: Node | None, left: set[int], right: set[int], renderer: Renderer, kind: str
) -> tuple[Keys, tuple[bool, ...], str | None, bool]:
    """Keys, whether NULL equals NULL for each, the rest, and whether a comparison that is NULL counts as a match."""
    parts = conjuncts(condition)
    if kind == "anti" and len(parts) == 1 and (equal := _not_in(parts[0], renderer)) is not None:
        sides = _sides(equal, left, right)
        if sides is not None:
            return ((renderer.text(sides[0]), renderer.text(sides[1])),), (False,), None, True
    keys: list[tuple[str, str]] = []
    null_safe: list[bool] = []
    rest: list[str] = []
    for part in parts:
        sides = _sides(part, left, right) if part.name in ("EqualTo", "EqualNullSafe") else None
        if sides is None:
            rest.append(renderer.text(part))
        else:
            keys.append((renderer.text(sides[0]), renderer.text(sides[1])))
            null_safe.append(part.name == "EqualNullSafe")
    return tuple(keys), tuple(null_safe), all_of(rest), False


def all_of(texts: list[str]) -> str | None:
    """The conditions as one."""
    if not texts:
        return None
    whole = texts[0]
    for text in texts[1:]:
        whole = f"({whole} AND {text})"
    return whole


def _sides(equal: Node, left: set[int], right: set[int]) -> tuple[Node, Node] | None:
    first, second = equal.children
    if _has_subquery(equal):
        return None
    one, other = references(first), references(second)
    if not one or not other:
        return None
    if one <= left and other <= right:
        return first, second
    if one <= right and other <= left:
        return second, first
    return None


def _not_in(part: Node, renderer: Renderer) -> Node | None:
    """The equality in  l = r OR (l = r) IS NULL."""
    if part.name != "Or":
        return None
    equal, null = part.children
    if equal.name == "EqualTo" and null.name == "IsNull" and renderer.text(null.children[0]) == renderer.text(equal):
        return equal
    return None


def _has_subquery(node: Node) -> bool:
    return any(one.name == "ScalarSubquery" for one in node.walk())
