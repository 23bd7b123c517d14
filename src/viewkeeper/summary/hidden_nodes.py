"""The hidden nodes that a summary needs above it.

    extremes    MIN(e), MAX(e), COUNT(DISTINCT e)    a node that groups by e too: a deleted extreme is answered from it
    root        fact ⋈ dimensions                    a node over the fact alone that groups by the foreign keys

With a root a change of a dimension needs no fact: γ(root ⋈ Δstores) is what it does to a table. None is made where a
table that is there already serves, or where the core is stored.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from viewkeeper.sql.expressions import Expression
from viewkeeper.summary.defined import Defined
from viewkeeper.summary.derivation import derive
from viewkeeper.summary.measures import OF_ALL_VALUES
from viewkeeper.summary.node import Extreme, Node
from viewkeeper.summary.roots import root_of

HIDDEN = "_vk_node_"


TABLE = -1
"""the part of a root that is the table itself"""


@dataclass(frozen=True)
class Part:
    """What a hidden node is to the table that it was made for: the node of an extreme, by number, or its root."""

    extreme: int | None = None
    root_of: tuple[int, ...] = ()
    """the table (-1) and its extremes that the root was made for"""
    whole: bool = False
    """whether it is the table itself, which was dropped and which others rest on"""


@dataclass(frozen=True)
class WithHidden:
    """A table with its extremes attached to nodes, and the hidden nodes that are not there yet."""

    node: Node
    hidden: tuple[tuple[Node, Part], ...]


def with_hidden(
    defined: Defined,
    others: Iterable[Node],
    *,
    core_readable: bool,
    recompute: bool,
    taken: Collection[str] = (),
) -> WithHidden:
    """What a table needs beside the nodes that are stored already; names that are `taken` are those of other tables, as
    of what an earlier table of this name has left to others."""
    node, others = defined.node, [other for other in others if other.stored]
    made: dict[int, Node] = {}
    attached = []
    for number, (column, function, value) in enumerate(defined.extremes):
        recomputed = recompute and function not in OF_ALL_VALUES
        same = next((n for n, one in made.items() if one.stored != recomputed and value in one.groups), None)
        there = made[same] if same is not None else None if recomputed else _grouping_by(node, value, others)
        if there is None:
            there = extreme_node(defined, number, stored=not recomputed)
            there = made[number] = there if recomputed else replace(there, name=_free(there.name, taken))
        attached.append(Extreme(column, function, value, there.name, recomputed))
    whole = replace(node, extremes=tuple(attached))
    hidden = [(one, Part(number)) for number, one in made.items()]
    rootless = {n: one for n, one in {TABLE: whole, **made}.items() if one.dimensions and not _has_root(one, others)}
    if rootless and not core_readable:
        root = root_of(_free(f"{HIDDEN}{node.name}_root", taken), list(rootless.values()))
        hidden.insert(0, (root, Part(root_of=tuple(rootless))))
    return WithHidden(whole, tuple(hidden))


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_again{number}"
    return free


def remade(defined: Defined, part: Part) -> Node:
    """A hidden node again, from the table that it was made for."""
    if part.whole:
        return replace(defined.node, hidden=True)
    if part.extreme is not None:
        return extreme_node(defined, part.extreme)
    parts = [defined.node if n == TABLE else extreme_node(defined, n) for n in part.root_of]
    return root_of(f"{HIDDEN}{defined.node.name}_root", parts)


def _grouping_by(node: Node, value: Expression, others: Iterable[Node]) -> Node | None:
    """A node with the same rows, grouped by the same and the value."""
    wanted = frozenset(node.groups) | {value}
    for other in others:
        same = other.fact == node.fact and other.paths == node.paths and other.where == node.where
        if same and other.same_groups(wanted) and other.name != node.name:
            return other
    return None


def extreme_node(defined: Defined, number: int, *, stored: bool = True) -> Node:
    """The node behind an extreme: the groups of the table, and the value."""
    node, value = defined.node, defined.extremes[number][2]
    return Node(
        f"{HIDDEN}{node.name}_{number}",
        node.fact,
        node.dimensions,
        node.where,
        {**node.groups, value: "_vk_value"},
        {},
        hidden=True,
        stored=stored,
    )


def _has_root(node: Node, others: Iterable[Node]) -> bool:
    return any(derive(node, other) is not None for other in others if other.stored and other.name != node.name)
