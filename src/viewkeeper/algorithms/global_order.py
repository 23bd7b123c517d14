"""The place of a global transaction among everything else.

    x:  a  T.x  b          T takes the place of its last part; b waits behind T.x.
    y:  c  d  T.y          Letting b pass would show x with b and without T, which no serial schedule has.

Parts whose orders cross (x: T, U and y: U, T) would wait for each other. No serial schedule of the sources holds them
apart, so they become one unit, together with what lies between them.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from viewkeeper.messages import Transaction

Unit = tuple[Transaction, ...]


class GlobalOrder:
    """Turns deliveries into units: whole global transactions, in an order that every source agrees with.

    `sources` are those of the view: a participant that has nothing to do with it does not report, and nobody waits.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._sources = frozenset(sources)
        self._held: dict[str, deque[Transaction]] = {source: deque() for source in self._sources}
        self._parts: dict[str, list[Transaction]] = {}
        self._arrival: dict[int, int] = {}
        self._arrived = 0

    def arrive(self, transaction: Transaction) -> list[Unit]:
        """What can be taken now that this transaction is here, in order."""
        held = self._held.setdefault(transaction.source, deque())
        if transaction.global_id is None and not held:
            return [(transaction,)]
        self._arrived += 1
        self._arrival[id(transaction)] = self._arrived
        held.append(transaction)
        if transaction.global_id is not None:
            self._parts.setdefault(transaction.global_id, []).append(transaction)
            if self._complete(transaction):
                return list(self._release())
        return []

    def _release(self) -> Iterator[Unit]:
        """A transaction became whole: take what is first everywhere, and cycles of those that wait for each other."""
        while unit := self._first_everywhere() or self._cycle():
            for member in unit:
                self._held[member.source].remove(member)
                del self._arrival[id(member)]
                self._parts.pop(member.global_id or "", None)
            yield unit

    def _first_everywhere(self) -> Unit | None:
        """Of the units that stand first at each of their sources, the one that was complete first."""
        heads = {id(queue[0]) for queue in self._held.values() if queue}
        firsts = [self._unit(queue[0]) for queue in self._held.values() if queue and self._complete(queue[0])]
        ready = [unit for unit in firsts if all(id(part) in heads for part in unit)]
        return min(ready, key=self._last_arrival, default=None)

    def _cycle(self) -> Unit | None:
        """The fewest transactions that wait for nothing but each other, if they are whole."""
        closures = [self._behind(queue[0]) for queue in self._held.values() if queue]
        whole = [closure for closure in closures if all(map(self._complete, closure))]
        return min(whole, key=lambda closure: (len(closure), self._last_arrival(closure)), default=None)

    def _behind(self, transaction: Transaction) -> Unit:
        """The transaction, its other parts, and everything that stands before one of them, in order of arrival."""
        found: dict[int, Transaction] = {}
        frontier = [transaction]
        while frontier:
            member = frontier.pop()
            if id(member) not in found:
                found[id(member)] = member
                frontier += self._unit(member)
                for earlier in self._held[member.source]:
                    if earlier is member:
                        break
                    frontier.append(earlier)
        return tuple(sorted(found.values(), key=lambda member: self._arrival[id(member)]))

    def _unit(self, transaction: Transaction) -> Unit:
        if transaction.global_id is None:
            return (transaction,)
        return tuple(self._parts[transaction.global_id])

    def _complete(self, transaction: Transaction) -> bool:
        missing = self._sources.intersection(transaction.participants) - {
            part.source for part in self._unit(transaction)
        }
        return transaction.global_id is None or not missing

    def _last_arrival(self, unit: Unit) -> int:
        return max(self._arrival[id(member)] for member in unit)
