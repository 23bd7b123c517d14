"""MatOutView (section 3.2 of the paper): the full outer join, which has every row of both sides in it.

    outer k      V of J_k = left ⟗ right: (l, r) for a pair, (l, -) for a row of L0, (-, r) for one of R0

An outer join view is some of these rows: of a LEFT JOIN those with a left row, of a RIGHT JOIN those with a right row.
"""

from collections.abc import Mapping

from sqlglot import exp

from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.outer_join import JoinKind
from viewkeeper.sql.type_families import parse_type
from viewkeeper.storage.change_sets import absent, present
from viewkeeper.storage.join_tree import Columns, JoinTree, TwoWayJoin
from viewkeeper.storage.parts import Parts, PartsLayout, refresh_parts
from viewkeeper.storage.storage import changed_keys
from viewkeeper.storage.tables import Changes, Structure, Tables, Z, computed_once, disjoint_sum


class MatOutView:
    """A view stored as outer joins."""

    def __init__(self, tree: JoinTree) -> None:
        self.tree = tree
        self.layouts = [
            PartsLayout(join, join.left.columns, join.right.columns, join.left.columns + join.right.columns)
            for join in tree.joins
        ]
        self.structures = tuple(
            Structure(
                f"outer {layout.join.number}",
                layout.joined,
                layout.join.ids,
                (layout.join.left_on, layout.join.right_on),
            )
            for layout in self.layouts
        )
        self.read_from = f"outer {tree.last.number}"
        self._types = {
            f"{leaf.operand.alias}.{column}": type
            for leaf in tree.leaves
            for column, type in zip(leaf.operand.relation.columns, leaf.operand.relation.types, strict=True)
        } | {leaf.ids[0]: "BIGINT" for leaf in tree.leaves if leaf.numbered}

    def refresh(self, tables: Tables[Z], leaves: Mapping[int, Z]) -> Changes[Z]:
        changes: Changes[Z] = {}
        left = leaves[0]
        for layout in self.layouts:
            join = layout.join
            left, right = left.keep(layout.left), leaves[join.number]
            parts = refresh_parts(layout, self._stored_parts(join, tables, left, right), left, right)
            left_alone, right_alone = self._padded(layout, parts.left), self._padded(layout, parts.right)
            changes[f"outer {join.number}"] = disjoint_sum(parts.joined, left_alone, right_alone)
            left = parts.joined
            if join.kind in (JoinKind.LEFT, JoinKind.FULL):
                left = left + left_alone
            if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
                left = left + right_alone
            left = computed_once(left)
        return changes

    def of_view(self, tables: Tables[Z], leaves: Mapping[int, Z], changes: Changes[Z]) -> Z:
        return changes[self.read_from].select(self.shown).project(self.tree.output)

    @property
    def shown(self) -> tuple[Expression, ...]:
        """What makes a stored row one of the view."""
        return (*rows_of_kind(self.tree.last), *self.tree.where)

    def rows_of_leaf(self, tables: Tables[Z], leaf: int, columns: Columns, keys: Z) -> Z:
        layout = self.layouts[max(leaf, 1) - 1]
        side = layout.join.right if leaf else layout.join.left
        stored = tables.matching(f"outer {layout.join.number}", columns, keys)
        # With NULLs throughout, a row and the absence of one look alike but for the id.
        return stored.keep(side.columns).distinct().select((present(side.ids),))

    def _stored_parts(self, join: TwoWayJoin, tables: Tables[Z], left: Z, right: Z) -> Parts[Z]:
        keys = changed_keys(join, left, right)
        by_left = tables.matching(f"outer {join.number}", join.left_on, keys)
        by_right = tables.matching(f"outer {join.number}", join.right_on, keys)
        return Parts(
            by_left.select((present(join.right.ids),)),
            by_left.select((absent(join.right.ids),)).keep(join.left.columns),
            by_right.select((absent(join.left.ids),)).keep(join.right.columns),
        )

    def _padded(self, layout: PartsLayout, alone: Z) -> Z:
        """Rows of one side, with NULLs for the other."""
        return alone.project(tuple((column, self._column(column, alone.columns)) for column in layout.joined))

    def _column(self, column: str, there: Columns) -> Expression:
        if column in there:
            return Expression.column(column, self._types[column])
        type = parse_type(self._types[column])
        null = exp.Cast(this=exp.Null(), to=type)
        null.type = type
        return Expression.from_node(null)


def rows_of_kind(join: TwoWayJoin) -> tuple[Expression, ...]:
    """The rows of the full outer join that are rows of a join of this kind."""
    sides = {
        JoinKind.INNER: (join.left.ids, join.right.ids),
        JoinKind.LEFT: (join.left.ids,),
        JoinKind.RIGHT: (join.right.ids,),
        JoinKind.FULL: (),
    }
    return tuple(present(ids) for ids in sides[join.kind])
