"""The queries of the multi-relation wrapper to the database of its source.

    LMQ    MQ ⋈ V_x                               a maintenance query, with the local view spelled out
    LQ     ΔR_i ⋈ R_j ⋈ R_k ⋈ ...                 a whole sweep over the source's own relations, in one message

SWEEP joins one relation at a time, because it corrects every answer before it goes on: asked hop by hop it would send a
message for each. So LQ brings, in one state of the source, the rows of each relation that the next hops will join:

    rows of R_j with a key of ΔR_i,   rows of R_k with a key of these,   ...            by semijoins at the source

From that the next hops are answered here, at the same place in the stream as the first. One hop alone may want more:
compensation brings back a row of R_j that was deleted meanwhile, and no row of R_k was read for it. Then the source is
queried again, from there on. So a sweep over m relations takes one message, and m - 1 at the very most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from viewkeeper.algebra.joins import Hop, JoinPlan
from viewkeeper.algebra.zset import On, Row
from viewkeeper.messages import Fetch, HopQuery, keys_for
from viewkeeper.sources.memory import fetched
from viewkeeper.sql.type_families import Family, parse_type, sql_type

MOST_KEYS = 20_000
"""A hop with more keys is a bulk, and goes alone."""

ALIKE = (Family.INTEGER, Family.STRING)
"""Families whose values every source compares between columns as it compares them with keys."""


@dataclass(frozen=True)
class LocalizedQuery:
    """LMQ: a maintenance query with the local view spelled out, answered in one transaction of the source."""

    query: HopQuery
    local: JoinPlan

    @property
    def source(self) -> str:
        return self.query.source

    @property
    def hop(self) -> Hop:
        return self.query.hop

    def evaluate(self, contents: Mapping[str, Any]) -> Any:
        return self.query.evaluate({self.query.hop.operand.relation.name: self.local.evaluate(contents)})

    def size(self) -> int:
        return self.query.size()

    def fetches(self) -> tuple[Fetch, ...]:
        everything = frozenset(range(len(self.local.operands)))
        # In the assembly a column of the local view is named after the view; at the source, after its operand.
        at_source = dict(zip(self.query.hop.operand.columns, self._columns, strict=True))
        matched, keys = keys_for(self.query.hop.on, self.query.delta)
        operands, columns = self.local.joined(everything)
        equal = self.local.equalities(everything)
        return (Fetch(operands, columns, equal, tuple(at_source[column] for column in matched), keys),)

    def over(self, fetched: Sequence[Any]) -> Any:
        rows = self.local.within(frozenset(range(len(self.local.operands))), fetched[0])
        return self.query.hop.join(self.query.delta, self.local.finish(rows))

    @property
    def _columns(self) -> list[str]:
        """Every output of a local view is a column."""
        return [output.expression.is_column or "" for output in self.local.view.output]


@dataclass(frozen=True)
class Link:
    """How a hop beyond the first finds its rows: by the columns of one operand that is joined before it."""

    hop: Hop
    on: On
    parent: int | None
    """the operand that it follows; None if ΔV itself has the columns"""


@dataclass(frozen=True)
class Known:
    """The rows of one relation that have these keys, all of them."""

    link: Link
    rows: Any
    keys: frozenset[Row]

    def answer(self, query: HopQuery) -> Any | None:
        """The answer to a hop; None if it asks for more than is known."""
        if self.link.hop is not query.hop:
            return None
        _, wanted = keys_for(self.link.on, query.delta)
        return query.over([self.rows]) if self.keys.issuperset(wanted or ()) else None


@dataclass(frozen=True)
class Reached:
    """The answer to a LocalSweep: that of its first hop, and what is known of the relations beyond."""

    rows: Any
    known: Mapping[int, Known]
    """by operand"""

    def answer(self, query: HopQuery) -> Any | None:
        """The answer to a later hop, in the same state of the source; None if it must be requested."""
        known = self.known.get(query.hop.operand.index)
        return None if known is None else known.answer(query)


@dataclass(frozen=True)
class LocalSweep:
    """LQ: a hop over the source's own relations, with the rows that the hops beyond it will join."""

    query: HopQuery
    plan: JoinPlan

    @property
    def source(self) -> str:
        return self.query.source

    def size(self) -> int:
        return self.query.size()

    @cached_property
    def links(self) -> tuple[Link, ...]:
        return links_beyond(self.plan, self.query.hop)

    @cached_property
    def _fetches(self) -> dict[int, Fetch]:
        """By operand, each after that whose rows are its keys."""
        (first,) = self.query.fetches()
        made = {self.query.hop.operand.index: first}
        if not first.keys or len(first.keys) > MOST_KEYS:
            return made
        for link in self.links:
            operand, (lefts, rights) = link.hop.operand, zip(*link.on, strict=True)
            fetch = Fetch((operand,), link.hop.needs, (), rights)
            if link.parent is None:
                made[operand.index] = replace(fetch, keys=keys_for(link.on, self.query.delta)[1])
            else:
                made[operand.index] = replace(fetch, among=replace(made[link.parent], columns=lefts))
        return made

    def fetches(self) -> tuple[Fetch, ...]:
        return tuple(self._fetches.values())

    def over(self, found: Sequence[Any]) -> Reached:
        """The answer over what was fetched; None stands for what was not."""
        rows = dict(zip(self._fetches, found, strict=True))
        keys = {self.query.hop.operand.index: frozenset(self.query.fetches()[0].keys or ())}
        known = {}
        for link in self.links:
            operand = link.hop.operand.index
            if rows.get(operand) is None or (link.parent is not None and link.parent not in keys):
                continue
            if link.parent is None:
                keys[operand] = frozenset(self._fetches[operand].keys or ())
            else:
                # A source may give rows with other keys, and need not have read anything for those.
                lefts = tuple(left for left, _ in link.on)
                matched = self._fetches[link.parent].matched
                keys[operand] = _values(rows[link.parent], lefts, matched, keys[link.parent])
            known[operand] = Known(link, rows[operand], keys[operand])
        return Reached(self.query.over(found[:1]), known)

    def evaluate(self, contents: Mapping[str, Any]) -> Reached:
        return self.over([fetched(fetch, contents) for fetch in self.fetches()])


def links_beyond(plan: JoinPlan, hop: Hop) -> tuple[Link, ...]:
    """The hops beyond one whose rows can be read together with it: one relation has all columns that they join by."""
    owner = {column: operand.index for operand in plan.operands for column in operand.columns}
    family = {
        column: sql_type(parse_type(type)).family
        for operand in plan.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=True)
    }
    links: list[Link] = []
    read = {hop.operand.index}
    for later in plan.beyond(hop):
        parents = {None if owner[left] in hop.covered else owner[left] for left, _ in later.on}
        alike = all(family[left] is family[right] and family[left] in ALIKE for left, right in later.on)
        # By some of its columns a join may meet far more rows than by all: such a hop goes alone, with all of its keys.
        if len(parents) == 1 and alike and parents <= {None, *read}:
            (parent,) = parents
            links.append(Link(later, later.on, parent))
            read.add(later.operand.index)
    return tuple(links)


def together(plan: JoinPlan, start: int) -> tuple[bool, ...]:
    """For each hop from a relation to the whole local view, whether it goes with the message of an earlier one."""
    read = frozenset[int]()
    found = []
    for hop in plan.path(frozenset({start})):
        found.append(hop.operand.index in read)
        if not found[-1]:
            # A cross product has no keys, and goes alone.
            read = frozenset(link.hop.operand.index for link in links_beyond(plan, hop)) if hop.on else frozenset()
    return tuple(found)


def _values(rows: Any, columns: tuple[str, ...], matched: tuple[str, ...], keys: frozenset[Row]) -> frozenset[Row]:
    """The values in some columns of the rows that have one of the keys."""
    at, by = ([rows.columns.index(column) for column in names] for names in (columns, matched))
    return frozenset(
        tuple([row[place] for place in at]) for row, _ in rows.weights() if tuple([row[place] for place in by]) in keys
    )
