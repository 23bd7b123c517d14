"""'storage' = 'auto': whether the sources are queried or something is stored, and which of the five, from a few facts.

outer join                                                      outerjoin
one table, views, an algorithm asked for, no equality           remote
databases, looked up by keys, few changes                       remote
else                                                            one of the five:
    rows of the view <= 1.2 * rows of its largest relation      matview, if rows are narrow
    rows are narrow                                             viewcache
    rows are wide                                               partial-operand
"""

from dataclasses import dataclass
from typing import Final

REMOTE: Final = "remote"
BUSY = 3600.0
"""Transactions an hour of a source from which on asking the others each time is too much: one a second."""
SMALL_FAN_OUT = 1.2
"""Rows of the view for each row of its largest relation, up to which whole joined rows take little more room."""
WIDE = 4.0
"""A row is wide that takes this many times the room of its ids and the columns that are compared."""
EXCLUDED: Final = frozenset({"outerjoin"})
"""Storages that `auto` never chooses for an inner join: by benchmarks/refreshment.py outerjoin is slower than matview,
which stores the same rows."""


@dataclass(frozen=True)
class RelationFacts:
    """One relation of a view."""

    name: str
    source: str
    kind: str
    """of its source: sqlite, postgres, files ..."""
    quick: bool
    """whether its source answers a question at once; else that takes a job"""
    scanned_by: tuple[str, ...]
    """columns by which it would be looked up, if there is a lookup that does not have its whole key"""
    row_bytes: int
    """what is needed of a row"""
    pointer_bytes: int
    """of that, ids and the columns that are compared"""
    rows: int | None = None
    """None: not known"""
    transactions_per_hour: float | None = None
    """of its source; None: not known"""


@dataclass(frozen=True)
class JoinFacts:
    """One view."""

    relations: tuple[RelationFacts, ...]
    outer: bool = False
    equalities: bool = True
    """whether each relation is joined by an equality, to look up partners by"""
    over_views: bool = False
    algorithm: str | None = None
    """if it asks for one"""
    rows: int | None = None
    """of all joined rows, before the columns are picked; None: not known"""

    @property
    def fan_out(self) -> float | None:
        """Rows of the view for each of its largest relation; None if that is not known."""
        known = [one.rows for one in self.relations if one.rows is not None]
        if self.rows is None or len(known) < len(self.relations):
            return None
        return self.rows / max(1, *known)


@dataclass(frozen=True)
class Decision:
    """A storage, and why."""

    storage: str
    reasons: tuple[str, ...]


def decide(facts: JoinFacts, excluded: frozenset[str] = EXCLUDED) -> Decision:
    """The storage of a view that leaves it to viewkeeper."""
    if facts.outer:
        return Decision("outerjoin", ("it is an outer join, and only what is stored for it can maintain it",))
    if (needless := _needless(facts)) is not None:
        return Decision(REMOTE, (needless,))
    against = tuple(_against_asking(facts))
    if not against:
        return Decision(REMOTE, _for_asking(facts))
    order, why = _among_the_five(facts)
    chosen = next((storage for storage in order if storage not in excluded), None)
    if chosen is None:
        return Decision(REMOTE, (*against, "but no storage is known to be much faster than recomputing the view"))
    if chosen != order[0]:
        why = (*why, f"{order[0]} would be for that, but is not known to be much faster than recomputing the view")
    return Decision(chosen, (*against, *why))


def _needless(facts: JoinFacts) -> str | None:
    """Why nothing should be stored in any case."""
    if facts.over_views:
        return "it reads views, and follows them without asking anybody"
    if len(facts.relations) == 1:
        return "it is over one table: its changes are enough, and no source is queried"
    if facts.algorithm is not None:
        return f"it asks for {facts.algorithm}, which queries the sources"
    if not facts.equalities:
        return "a relation is joined by no equality of columns, so partners could not be looked up in what is stored"
    return None


# --- to ask or not to ask ---


def _against_asking(facts: JoinFacts) -> list[str]:
    slow = {one.source: one for one in facts.relations if not one.quick}
    told = [f"source {name} is {_told_kind(one.kind)}: each question to it takes a job" for name, one in slow.items()]
    told += [
        f"{one.name} would be looked up by {', '.join(one.scanned_by)}, which is not its key: {one.source} might have "
        "to read all of it"
        for one in facts.relations
        if one.quick and one.scanned_by
    ]
    busy = {one.source: one.transactions_per_hour for one in facts.relations if (one.transactions_per_hour or 0) > BUSY}
    told += [
        f"source {name} has had some {rate:,.0f} transactions an hour, and each would bring questions to others"
        for name, rate in busy.items()
    ]
    return told


def _for_asking(facts: JoinFacts) -> tuple[str, ...]:
    rates = {one.source: one.transactions_per_hour for one in facts.relations}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    often = ", ".join(f"{name} has had some {rate:,.0f} transactions an hour" for name, rate in known.items())
    unknown = [name for name, rate in rates.items() if rate is None]
    if unknown:
        also = f"; how often {' and '.join(unknown)} " if often else f"how often {' and '.join(unknown)} "
        often += also + ("changes is not known yet" if len(unknown) == 1 else "change is not known yet")
    return "all sources are databases, and every relation is looked up by its key, which is quick", often


def _told_kind(kind: str) -> str:
    return "a Delta lake" if kind == "delta" else "a folder of files" if kind == "files" else kind


# --- which of the five ---


def _among_the_five(facts: JoinFacts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """From the best to the worst, and why."""
    whole = sum(one.row_bytes for one in facts.relations)
    pointers = sum(one.pointer_bytes for one in facts.relations)
    width = f"{whole / max(1, pointers):.1f} times the room of its ids and what is compared"
    if whole >= WIDE * pointers:
        told = f"rows are wide, {width}: pointers are stored, and partners are looked up among ids and what is compared"
        return ("partial-operand", "viewcache", "partial-join", "matview", "outerjoin"), (told,)
    narrow = f"rows are narrow, {width}"
    fan_out = facts.fan_out
    if fan_out is None:
        told = (
            f"{narrow}, so pointers into copies are small; the sizes are not known before the relations are read: if "
            f"the view has at most {SMALL_FAN_OUT:g} rows for each of its largest relation, it becomes a matview"
        )
        return ("viewcache", "partial-operand", "matview", "partial-join", "outerjoin"), (told,)
    rows = f"the view has {fan_out:.2g} rows for each of its largest relation"
    if fan_out <= SMALL_FAN_OUT:
        told = f"{rows}, and {narrow}: whole joined rows take little more room than pointers"
        return ("matview", "viewcache", "partial-operand", "partial-join", "outerjoin"), (told,)
    told = f"{rows}, so pointers are stored instead of joined rows; {narrow}, so partners are looked up in the copies"
    return ("viewcache", "partial-operand", "matview", "partial-join", "outerjoin"), (told,)
