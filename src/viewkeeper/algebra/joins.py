"""From a view to the joins that compute it, one operand at a time.

    hop(S, j)      ΔV over the operands S   ⟶   ΔV ⋈ R_j over S ∪ {j}

The papers sweep a chain; here the view joins along a graph. From any start the order goes outwards, always to an
operand that is connected to what is already joined. A condition is applied by the hop that brings in its last
operand, which also closes cycles. After each hop only the columns that a later condition or the output needs are
carried, so what a partial result looks like depends on its operands alone and not on the way there: two of them can
be added.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from viewkeeper.algebra.zset import On, Row, ZSet
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.view import Operand, View

Z = TypeVar("Z", bound=ZSet)

TAG = "_vk."
"""Columns with this prefix ride along through every hop: tags of updates, ids of tuples."""


@dataclass(frozen=True)
class Hop:
    """ΔV ⋈ R_j: what a query asks of the source of R_j, and what compensation computes at the warehouse."""

    operand: Operand
    on: On
    where: tuple[Expression, ...]
    keep: tuple[str, ...]
    covered: frozenset[int] = field(default=frozenset(), compare=False)
    """the operands that ΔV is over"""

    def join(self, delta: Z, relation: Z, extra: tuple[Expression, ...] = ()) -> Z:
        """`delta` ⋈ `relation`, the relation given under its own column names (and tags of its own, if any)."""
        tags = tuple(column for column in relation.columns if column.startswith(TAG))
        return self.join_named(delta, relation.rename(tags + self.operand.columns), extra)

    def join_named(self, delta: Z, rows: Z, extra: tuple[Expression, ...] = ()) -> Z:
        """The same with the relation named as in the view; of its columns only `needs` have to be there."""
        riding = tuple(column for column in delta.columns if column.startswith(TAG))
        return delta.join(rows, self.on, self.where + extra, riding + self.keep)

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The columns of the operand that the join uses or keeps."""
        used = {right for _, right in self.on}.union(self.keep, *(condition.columns for condition in self.where))
        return tuple(column for column in self.operand.columns if column in used)


class JoinPlan:
    """All hops of one view; they are made when first needed, and kept."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.fan_out: Callable[[Hop], float] | None = None
        """how many rows a hop is expected to bring for each that it is given"""
        self._hops: dict[tuple[frozenset[int], int], Hop] = {}
        self._mentions = [(view.mentions(condition), condition) for condition in view.conditions]
        self._output = tuple((column.name, column.expression) for column in view.output)
        self._needed_by_output = frozenset[str]().union(*(expression.columns for _, expression in self._output))

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.view.operands

    @cached_property
    def neighbours(self) -> dict[int, frozenset[int]]:
        """The join graph: two operands are connected by a condition over both, or by an explicit CROSS JOIN."""
        edges = [mentioned for mentioned, _ in self._mentions] + [frozenset(pair) for pair in self.view.crossings]
        return {
            operand.index: frozenset[int]().union(*(edge for edge in edges if operand.index in edge)) - {operand.index}
            for operand in self.operands
        }

    def carried(self, covered: frozenset[int]) -> tuple[str, ...]:
        """The columns of the covered operands that the output or a condition still to come needs."""
        needed = self._needed_by_output.union(
            *(condition.columns for mentioned, condition in self._mentions if not mentioned <= covered)
        )
        return tuple(c for operand in self.operands if operand.index in covered for c in operand.columns if c in needed)

    def start(self, operand: int, delta: Z) -> Z:
        """σ(ΔR_i) over the carried columns: where a sweep begins."""
        own = tuple(condition for mentioned, condition in self._mentions if mentioned <= {operand})
        tags = tuple(column for column in delta.columns if column.startswith(TAG))
        named = delta.rename(tags + self.operands[operand].columns)
        return named.select(own).keep(tags + self.carried(frozenset({operand})))

    def hop(self, covered: frozenset[int], operand: int) -> Hop:
        """The step from the covered operands to one more."""
        made = self._hops.get((covered, operand))
        if made is None:
            made = self._hops[covered, operand] = self._make_hop(covered, operand)
        return made

    def _make_hop(self, covered: frozenset[int], operand: int) -> Hop:
        mine = set(self.operands[operand].columns)
        on: list[tuple[str, str]] = []
        where: list[Expression] = []
        for mentioned, condition in self._mentions:
            # With nothing covered yet, conditions over no operand at all (WHERE 1 = 0) are due too.
            if not mentioned <= covered | {operand} or (operand not in mentioned and covered):
                continue
            if (pair := condition.equality) and len(mentioned) == 2:
                left, right = pair
                on.append((right, left) if left in mine else (left, right))
            else:
                where.append(condition)
        return Hop(self.operands[operand], tuple(on), tuple(where), self.carried(covered | {operand}), covered)

    def path(
        self, start: frozenset[int], within: frozenset[int] | None = None, prefer: frozenset[int] = frozenset()
    ) -> tuple[Hop, ...]:
        """The hops outwards from `start` until `within` (by default every operand) is covered; what is connected and
        preferred comes first."""
        covered, hops = start, []
        remaining = (frozenset(range(len(self.operands))) if within is None else within) - start
        while remaining:
            connected = [j for j in sorted(remaining) if self.neighbours[j] & covered]
            connected = [j for j in connected if j in prefer] or connected
            operand = self._next(covered, connected) if connected else min(remaining)
            hops.append(self.hop(covered, operand))
            covered, remaining = covered | {operand}, remaining - {operand}
        return tuple(hops)

    def beyond(self, hop: Hop) -> tuple[Hop, ...]:
        """The hops that follow a hop on the way to the whole view."""
        return self.path(hop.covered | {hop.operand.index})

    def _next(self, covered: frozenset[int], connected: list[int]) -> int:
        """Whom to join next: where least comes back, if that is known.

        Else to the left first and then to the right along a chain, as SWEEP does: the nearest operand below, or above.
        """
        if self.fan_out is not None and len(connected) > 1:
            expected = self.fan_out
            return min(connected, key=lambda j: (expected(self.hop(covered, j)), j))
        below = [j for j in connected if covered and j < min(covered)]
        return below[-1] if below else connected[0]

    def finish(self, delta: Z) -> Z:
        """π output: from the carried columns of all operands to the columns of the view, tags riding along."""
        tags = tuple((column, Expression.column(column)) for column in delta.columns if column.startswith(TAG))
        return delta.project(tags + self._output)

    def no_change(self, make_zset: Callable[[tuple[str, ...], Iterable[tuple[Row, int]]], Z]) -> Z:
        """ΔV = ∅."""
        return make_zset(self.view.columns, ())

    def components(self, without: int) -> tuple[frozenset[int], ...]:
        """What the join graph falls into when one operand is taken out: left and right of it, on a chain."""
        remaining = set(range(len(self.operands))) - {without}
        found = []
        while remaining:
            component, frontier = set[int](), {min(remaining)}
            while frontier:
                component |= frontier
                frontier = {k for j in frontier for k in self.neighbours[j]} - component - {without}
            found.append(frozenset(component))
            remaining -= component
        return tuple(found)

    def equalities(self, within: frozenset[int]) -> On:
        """The pairs of columns that the view wants equal, among these operands."""
        pairs = (condition.equality for mentioned, condition in self._mentions if mentioned <= within)
        return tuple(pair for pair in pairs if pair)

    def joined(self, within: frozenset[int]) -> tuple[tuple[Operand, ...], tuple[str, ...]]:
        """These operands, and the columns of them that a condition or the output uses."""
        used = self._needed_by_output.union(*(condition.columns for _, condition in self._mentions))
        operands = tuple(operand for operand in self.operands if operand.index in within)
        return operands, tuple(column for operand in operands for column in operand.columns if column in used)

    def within(self, covered: frozenset[int], rows: Z) -> Z:
        """The partial result over the covered operands, from their joined rows: σ of what they must satisfy."""
        own = tuple(condition for mentioned, condition in self._mentions if mentioned <= covered)
        return rows.select(own).keep(self.carried(covered))

    def evaluate(self, contents: Mapping[str, Z], bound: Mapping[int, Z] | None = None) -> Z:
        """V over the contents of its relations; V⟨ΔR_i⟩ has operand i bound to other rows."""

        def operand_rows(operand: Operand) -> Z:
            return bound[operand.index] if bound and operand.index in bound else contents[operand.relation.name]

        first = self.operands[0]
        delta = self.start(first.index, operand_rows(first))
        for hop in self.path(frozenset({first.index})):
            delta = hop.join(delta, operand_rows(hop.operand))
        return self.finish(delta)
