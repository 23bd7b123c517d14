"""Which delivered transactions are parts of which global ones.

    whole(T)    every source of the view has delivered as many parts of T as the participants of T say

Section 5.4 of the Strobe paper: an id in each message, and a count, make it possible to collect all parts. A source
that takes part twice is listed twice among the participants. An id may be used again: a part belongs to the oldest
transaction with its id that has no part from its source yet, and without one it begins another.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from viewkeeper.messages import GlobalPart, Transaction


@dataclass(eq=False)
class GlobalTransaction:
    """One global transaction, as far as its parts are delivered."""

    id: str
    needed: Counter[str] = field(default_factory=Counter)
    arrived: Counter[str] = field(default_factory=Counter)
    members: list[Transaction] = field(default_factory=list)

    @property
    def missing(self) -> tuple[str, ...]:
        """The sources with parts to come, each as often as it has some."""
        return tuple((self.needed - self.arrived).elements())

    @property
    def is_whole(self) -> bool:
        return self.needed <= self.arrived

    def lacks(self, source: str) -> bool:
        return self.arrived[source] < max(self.needed[source], 1)


class GlobalParts:
    """Puts the parts of global transactions together.

    `sources` are those whose transactions are delivered: from others no part comes, and none is waited for.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._sources = frozenset(sources)
        self._open: dict[str, list[GlobalTransaction]] = {}

    def add(self, transaction: Transaction) -> list[GlobalTransaction]:
        """The global transactions that a delivered one has parts of."""
        found = (self._add(part, transaction) for part in transaction.parts for _ in range(part.count))
        return list(dict.fromkeys(found))

    def _add(self, part: GlobalPart, transaction: Transaction) -> GlobalTransaction:
        uses = self._open.setdefault(part.id, [])
        source = transaction.source
        use = next((one for one in uses if one.lacks(source)), None)
        if use is None:
            use = GlobalTransaction(part.id)
            uses.append(use)
        use.needed |= Counter(name for name in part.participants if name in self._sources)
        use.arrived[source] += 1
        if not use.members or use.members[-1] is not transaction:
            use.members.append(transaction)
        return use

    def close(self, one: GlobalTransaction) -> None:
        """It is done: its id may begin another."""
        uses = self._open[one.id]
        uses.remove(one)
        if not uses:
            del self._open[one.id]

    def incomplete(self) -> Iterator[GlobalTransaction]:
        """Those that parts are missing of."""
        return (one for uses in self._open.values() for one in uses if not one.is_whole)
