"""A self-maintained view, explained: what is stored for it, what a change looks up there, how it is read."""

from collections.abc import Callable, Iterator

from viewkeeper.explaining.storage_explanation import (
    ChangeCost,
    Lookup,
    Reading,
    RefreshEngines,
    RowIdentity,
    SelfMaintained,
    StoredStructure,
)
from viewkeeper.explaining.storages import storing_join
from viewkeeper.explaining.summary_explanation import Explanation
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.tables.cached_reads import KEPT_FROM
from viewkeeper.maintenance.self_maintained.following import FEW, MOST_CHANGES, evaluable
from viewkeeper.maintenance.self_maintained.lookups import MOST_SCANNED
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.choosing import PROPERTY, storage_for
from viewkeeper.planner.self_maintained.kept_view import KeptView, kept_view
from viewkeeper.planner.view_plan import StoredJoin
from viewkeeper.sql.outer_join import JoinKind
from viewkeeper.storage.join_tree import Columns, JoinTree, Leaf
from viewkeeper.storage.tables import Structure

KIND = "self-maintained"
_SIGNS = {JoinKind.INNER: "⋈", JoinKind.LEFT: "⟕", JoinKind.RIGHT: "⟖", JoinKind.FULL: "⟗"}
_IN_PARTS = ("matview", "outerjoin", "partial-join")
"""storages that look up rows of a join beside those that join with nothing; the others keep pairs of ids"""


def explain_stored(overview: Overview, definition: Definition) -> Explanation:
    """A view that is there."""
    kept = kept_view(definition, overview.relations)
    halt = overview.halts.get(kept.name)
    reasons = kept.reasons or storage_for(kept.view, overview.sources.definitions(), {}).reasons
    return _explained(
        overview,
        kept,
        reasons,
        rows=overview.rows(kept.table_of(kept.storage.read_from)),
        state=overview.record.groups[kept.group].last,
        halted=halt.reason if halt is not None else None,
    )


def explain_supposed(overview: Overview, plan: StoredJoin) -> Explanation:
    """A view as it would be; its sizes are not known."""
    return _explained(overview, plan.kept, plan.reasons, rows=None, state=None, halted=None)


def _explained(
    overview: Overview,
    kept: KeptView,
    reasons: tuple[str, ...],
    *,
    rows: int | None,
    state: int | None,
    halted: str | None,
) -> Explanation:
    stored = _self_maintained(overview, kept)
    return Explanation(
        kept.name,
        KIND,
        state is not None,
        kept.view.sql,
        kept.group,
        kept.storage_name,
        str(kept.level),
        "continuous",
        kept.sources,
        tuple(kept.view.relations),
        rows,
        state,
        halted,
        storage_asked=dict(kept.view.properties).get(PROPERTY),
        storage=kept.storage_name,
        storage_reasons=reasons,
        self_maintained=stored,
        in_words=storing_join(overview, kept, stored, created=state is not None, halted=halted),
    )


def _self_maintained(overview: Overview, kept: KeptView) -> SelfMaintained:
    words = HeldInWords(kept)
    structures = tuple(
        StoredStructure(
            table, words.holds(structure), structure.columns, overview.rows(table), overview.bytes(table), structure.by
        )
        for table, structure in kept.tables.items()
    )
    leaves = kept.storage.tree.leaves
    copies = tuple(table for table, structure in kept.tables.items() if structure.name.startswith("copy "))
    return SelfMaintained(
        structures,
        tuple(ChangeCost(words.leaf(leaf), (), tuple(lookups(kept, n))) for n, leaf in enumerate(leaves)),
        tuple(RowIdentity(words.leaf(leaf), leaf.ids, leaf.numbered) for leaf in leaves),
        Reading(kept.table_of(kept.storage.read_from), copies, KEPT_FROM if copies else None),
        RefreshEngines(FEW, MOST_CHANGES, MOST_SCANNED, not evaluable(kept, shown=False)),
    )


class HeldInWords:
    """What the structures of one view hold, in plain words."""

    def __init__(self, kept: KeptView) -> None:
        self._tree, self._storage = kept.storage.tree, kept.storage_name

    def leaf(self, leaf: Leaf) -> str:
        """A relation, with its alias if it occurs twice."""
        name = leaf.operand.relation.name
        once = sum(other.operand.relation.name == name for other in self._tree.leaves) == 1
        return name if once else f"{name} {leaf.operand.alias}"

    def joined(self, number: int, last: str | None = None) -> str:
        """The join of all operands up to a number; `last` is another sign for the last one."""
        told = self.leaf(self._tree.leaves[0])
        for join in self._tree.joins[:number]:
            sign = last if last is not None and join.number == number else _SIGNS[join.kind]
            told += f" {sign} {self.leaf(self._tree.leaves[join.number])}"
        return told

    def holds(self, structure: Structure) -> str:
        kind, _, place = structure.name.partition(" ")
        number = int(place)
        told: dict[str, Callable[[], str]] = {
            "joined": lambda: self._joined(number),
            "left": lambda: self._left(number),
            "right": lambda: self._without_partner(self.leaf(self._tree.leaves[number])),
            "outer": lambda: f"the full outer join {self.joined(number, '⟗')}, whole rows",
            "pairs": lambda: f"pairs of row ids: what each row of {self.joined(number)} is made of",
            "operand": lambda: f"ids and compared columns of every row of {self.leaf(self._tree.leaves[number])}",
            "copy": lambda: f"a copy of the columns of {self.leaf(self._tree.leaves[number])} that the view needs",
        }
        return told[kind]()

    def _joined(self, number: int) -> str:
        if self._storage == "matview":
            return f"the join {self.joined(number)}, whole rows"
        return f"pairs of row ids of {self.joined(number)}, with the compared columns"

    def _left(self, number: int) -> str:
        before = self.leaf(self._tree.leaves[0]) if number == 1 else self.joined(number - 1)
        if self._storage == "partial-operand":
            return f"ids and compared columns of every row of {before}"
        return self._without_partner(before)

    def _without_partner(self, side: str) -> str:
        rows = f"rows of {side} without a partner"
        return rows if self._storage == "matview" else f"ids and compared columns of {rows}"


def lookups(kept: KeptView, leaf: int) -> Iterator[Lookup]:
    """From a change of an operand to one of the view: the join that it is in, then each later one."""
    tree = kept.storage.tree
    if tree.leaves[leaf].numbered:
        yield from _numbers(kept, leaf)
    for join in tree.joins[max(leaf, 1) - 1 :]:
        if kept.storage_name in _IN_PARTS:
            yield from _in_parts(kept, join.number)
            continue
        from_right = leaf == join.number
        changed = join.right if from_right else join.left
        yield Lookup(kept.table_of(f"pairs {join.number}"), changed.ids, "the pairs that go with a deleted row")
        table, by = _partners(kept, join.number, of_right=from_right)
        yield Lookup(table, by, "the partners of an inserted row")


def _numbers(kept: KeptView, leaf: int) -> Iterator[Lookup]:
    given, number = kept.storage.tree.leaves[leaf].given, max(leaf, 1)
    side = "right" if leaf else "left"
    whole = {"matview": (f"joined {number}", f"{side} {number}"), "outerjoin": (f"outer {number}",)}
    for name in whole.get(kept.storage_name, (f"copy {leaf}",)):
        yield Lookup(kept.table_of(name), given, "the number of a deleted row")


def _in_parts(kept: KeptView, number: int) -> Iterator[Lookup]:
    finds = {"joined": "the rows that join", "left": "left rows without a partner", "right": "right rows without one"}
    for structure in kept.storage.structures:
        kind, _, place = structure.name.partition(" ")
        if int(place) == number and kind in (*finds, "outer"):
            for by in structure.by:
                yield Lookup(kept.table_of(structure.name), by, finds.get(kind, "rows with a partner or without"))


def _partners(kept: KeptView, number: int, *, of_right: bool) -> tuple[str, Columns]:
    """Where the partners of one side of a join are looked up: of a right row in the left side, and the other way."""
    tree, dense = kept.storage.tree, kept.storage_name == "partial-operand"
    join = tree.joins[number - 1]
    if not of_right:
        return kept.table_of(f"operand {number}" if dense else f"copy {number}"), join.right_on
    if dense:
        return kept.table_of("operand 0" if number == 1 else f"left {number}"), join.left_on
    first = _leaf_of(tree, join.left_on[0])
    return kept.table_of(f"copy {first}"), tuple(c for c in join.left_on if c in tree.leaves[first].columns)


def _leaf_of(tree: JoinTree, column: str) -> int:
    """A later join finds its left rows through the operand that the first compared column belongs to."""
    return next(number for number, leaf in enumerate(tree.leaves) if column in leaf.columns)
