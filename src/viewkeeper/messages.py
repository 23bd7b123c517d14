"""What travels between sources and warehouse, and what an algorithm hands over.

source ──▶ warehouse    Transaction, Answer      one FIFO per source
warehouse ──▶ source    Query
algorithm ──▶ views     ViewDelta                one state each
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from viewkeeper.algebra.joins import Hop, JoinPlan
from viewkeeper.algebra.zset import On, Row, ZSet
from viewkeeper.sql.view import Operand

Position = str
"""A place in one source's commit order: fixed width, so that positions sort as strings."""

Vector = Mapping[str, Position]
"""A position per source."""


MakeZSet = Callable[[tuple[str, ...], Iterable[tuple[Row, int]]], Any]
"""Makes a Z-set of columns and weighted rows."""


def position(number: int) -> Position:
    """The position of the number-th transaction of a source that simply counts; 0 is before the first."""
    return f"{number:020d}"


@dataclass(frozen=True)
class Change:
    """A row and how often it was inserted (positive count) or deleted (negative)."""

    relation: str
    row: Row
    count: int


@dataclass(frozen=True)
class GlobalPart:
    """A part of a global transaction: its id, and the sources that take part, each as often as it commits a part."""

    id: str
    participants: tuple[str, ...] = ()
    count: int = 1
    """how many parts with this id the transaction holds: more than one only if it is several merged ones"""


@dataclass(frozen=True)
class Transaction:
    """What one source committed at once, in the order in which it was done.

    Several parts are in one transaction where a capture could not tell its transactions apart: then the global
    transactions that they belong to are one unit.
    """

    source: str
    position: Position
    changes: tuple[Change, ...]
    parts: tuple[GlobalPart, ...] = ()
    merged: bool = False
    """whether it may be several transactions of the source, which its capture could not tell apart"""

    @cached_property
    def relations(self) -> frozenset[str]:
        """Those that it changes."""
        return frozenset([change.relation for change in self.changes])

    def delta(self, relation: str, columns: tuple[str, ...], make_zset: MakeZSet) -> Any:
        """What it changes of a relation, as a Z-set. Made once: it may be large, and several views read it."""
        made = self._deltas.get((relation, columns))
        if made is None or made[0] != make_zset:
            rows = ((change.row, change.count) for change in self.changes if change.relation == relation)
            made = self._deltas[relation, columns] = make_zset, make_zset(columns, rows)
        return made[1]

    @cached_property
    def _deltas(self) -> dict[tuple[str, tuple[str, ...]], tuple[MakeZSet, Any]]:
        return {}

    @property
    def global_ids(self) -> tuple[str, ...]:
        """The global transactions that it has parts of."""
        return tuple(part.id for part in self.parts)


Equalities = tuple[tuple[str, str], ...]
"""Pairs of columns, `alias.column` each, that are equal."""


@dataclass(frozen=True)
class Fetch:
    """What a source reads for a query: rows of its relations, joined there, that match the shipped keys.

        SELECT columns FROM operands WHERE equal AND (matched) IN keys          keys None: all of them

    The keys may also be the rows of another fetch, `among`, which the source reads itself. A source may give more rows
    than that, for its own equality may be wider (a collation that ignores case), but never fewer, and each as often as
    it is there: the query is evaluated exactly, over what comes back. Columns are named `alias.column`; keys hold no
    NULL and none twice.
    """

    operands: tuple[Operand, ...]
    columns: tuple[str, ...]
    equal: Equalities = ()
    matched: tuple[str, ...] = ()
    keys: tuple[Row, ...] | None = None
    among: "Fetch | None" = None

    @property
    def parts(self) -> "tuple[Fetch, ...]":
        """The fetch, and those whose rows are its keys."""
        return (self, *self.among.parts) if self.among else (self,)

    @property
    def reads(self) -> tuple[Operand, ...]:
        """Every operand that is read for it."""
        return tuple(operand for part in self.parts for operand in part.operands)

    @property
    def shipped(self) -> int:
        """The keys that go out with it."""
        return sum(len(part.keys or ()) for part in self.parts)


class Query(Protocol):
    """A question that one source answers from its own relations, atomically."""

    @property
    def source(self) -> str: ...

    def evaluate(self, contents: Mapping[str, Any]) -> Any:
        """The answer over the contents of the source's relations."""
        ...

    def size(self) -> int:
        """The rows that the question ships."""
        ...

    def fetches(self) -> tuple[Fetch, ...]:
        """What a database reads for it, all of it in one state."""
        ...

    def over(self, fetched: Sequence[Any]) -> Any:
        """The answer over what was fetched, a Z-set for each."""
        ...


@dataclass(frozen=True)
class HopQuery:
    """ΔV ⋈ R_j, asked of the source of R_j."""

    hop: Hop
    delta: ZSet

    @property
    def source(self) -> str:
        return self.hop.operand.source

    def evaluate(self, contents: Mapping[str, Any]) -> Any:
        return self.hop.join(self.delta, contents[self.hop.operand.relation.name])

    def size(self) -> int:
        return self.delta.size()

    def fetches(self) -> tuple[Fetch, ...]:
        return (Fetch((self.hop.operand,), self.hop.needs, (), *keys_for(self.hop.on, self.delta)),)

    def over(self, fetched: Sequence[Any]) -> Any:
        return self.hop.join_named(self.delta, fetched[0])


def keys_for(on: On, delta: ZSet) -> tuple[tuple[str, ...], tuple[Row, ...] | None]:
    """The columns to match, and the values that a delta joins with: its distinct ones, and NULL joins with nothing."""
    if not on:
        return (), None
    values = delta.values(tuple(left for left, _ in on))
    return tuple(right for _, right in on), tuple(key for key in values if None not in key)


def values_of(rows: ZSet, columns: tuple[str, ...]) -> tuple[Row, ...]:
    """The distinct values of some columns; NULL joins with nothing."""
    return keys_for(tuple((column, column) for column in columns), rows)[1] or ()


@dataclass(frozen=True)
class Term:
    """± V with some operands bound to deltas: one summand of an ECA query."""

    sign: int
    bound: Mapping[int, ZSet] = field(default_factory=dict)


@dataclass(frozen=True)
class TermsQuery:
    """A sum of terms over one source that holds every relation of the view."""

    source: str
    plan: JoinPlan
    terms: tuple[Term, ...]

    def evaluate(self, contents: Mapping[str, Any]) -> Any:
        total: Any = None
        for term in self.terms:
            value = self.plan.evaluate(contents, term.bound)
            value = value if term.sign > 0 else -value
            total = value if total is None else total + value
        return total

    def size(self) -> int:
        return sum(delta.size() for term in self.terms for delta in term.bound.values())

    def fetches(self) -> tuple[Fetch, ...]:
        return tuple(self._fetch(term) for term in self.terms)

    def over(self, fetched: Sequence[Any]) -> Any:
        total: Any = None
        for term, rows in zip(self.terms, fetched, strict=True):
            value = self.plan.within(self._free(term), rows)
            for hop in self.plan.path(self._free(term)):
                value = hop.join(value, term.bound[hop.operand.index])
            value = self.plan.finish(value if term.sign > 0 else -value)
            total = value if total is None else total + value
        return total

    def _free(self, term: Term) -> frozenset[int]:
        return frozenset(operand.index for operand in self.plan.operands if operand.index not in term.bound)

    def _fetch(self, term: Term) -> Fetch:
        """The operands that are not bound, joined; matched with one that is, if an equality connects them."""
        free = self._free(term)
        equal = self.plan.equalities(free)
        for index, delta in term.bound.items():
            names = dict(zip(delta.columns, self.plan.operands[index].columns, strict=True))
            on = [
                (own, theirs) if own in names.values() else (theirs, own)
                for own, theirs in self.plan.equalities(free | {index})
                if (own, theirs) not in equal
            ]
            if on:
                named = delta.rename(tuple(names.values()))
                return Fetch(*self.plan.joined(free), equal, *keys_for(tuple(on), named))
        return Fetch(*self.plan.joined(free), equal)


@dataclass(frozen=True)
class Answer:
    """The rows of an answer, and how many transactions had been delivered when it came: it reflects exactly those
    of its source among them."""

    rows: Any
    seq: int


@dataclass(frozen=True)
class ViewDelta:
    """One new state: the change of the view, and the transactions that it newly reflects."""

    delta: Any
    transactions: tuple[Transaction, ...]
