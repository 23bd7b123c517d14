"""The place of a global transaction among everything else.

    x:  a  T.x  b          T takes the place of its last part; b waits until T is whole.
    y:  c  d  T.y          Letting b pass would show x with b and without T, which no serial schedule has.

Parts whose orders cross (x: T, U and y: U, T) would wait for each other. No serial schedule of the sources holds them
apart, so they become one unit, together with what lies between them. So do global transactions of which a merged
capture holds parts: it cannot be taken in pieces.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from viewkeeper.algorithms.global_parts import GlobalParts, GlobalTransaction
from viewkeeper.messages import Transaction

Unit = tuple[Transaction, ...]


class GlobalOrder:
    """Turns deliveries into units: whole global transactions, in an order that every source agrees with.

    `sources` are those whose transactions are delivered: a participant that is none of them is not waited for.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._parts = GlobalParts(sources)
        self._held: dict[str, deque[Transaction]] = {}
        self._globals: dict[int, list[GlobalTransaction]] = {}
        """by the identity of a held transaction, what it has parts of"""
        self._arrival: dict[int, int] = {}
        self._arrived = 0

    def arrive(self, transaction: Transaction) -> list[Unit]:
        """What can be taken now that this transaction is here, in order."""
        held = self._held.setdefault(transaction.source, deque())
        if not transaction.parts and not held:
            return [(transaction,)]
        self._arrived += 1
        self._arrival[id(transaction)] = self._arrived
        held.append(transaction)
        self._globals[id(transaction)] = parts_of = self._parts.add(transaction)
        return list(self._release()) if any(one.is_whole for one in parts_of) else []

    def _release(self) -> Iterator[Unit]:
        """A transaction became whole: take what is first everywhere, and cycles of those that wait for each other."""
        while unit := self._first_everywhere() or self._cycle():
            done: dict[GlobalTransaction, None] = {}
            for member in unit:
                self._held[member.source].remove(member)
                del self._arrival[id(member)]
                done |= dict.fromkeys(self._globals.pop(id(member)))
            for one in done:
                self._parts.close(one)
            yield unit

    def _first_everywhere(self) -> Unit | None:
        """Of the units that stand first at each of their sources, the one that was complete first."""
        heads = {id(queue[0]) for queue in self._held.values() if queue}
        firsts = [self._unit(queue[0]) for queue in self._held.values() if queue]
        ready = [unit for unit in firsts if all(id(part) in heads and self._is_whole(part) for part in unit)]
        return min(ready, key=self._last_arrival, default=None)

    def _cycle(self) -> Unit | None:
        """The fewest transactions that wait for nothing but each other, if they are whole."""
        closures = [self._with_all_before(queue[0]) for queue in self._held.values() if queue]
        whole = [closure for closure in closures if all(map(self._is_whole, closure))]
        return min(whole, key=lambda closure: (len(closure), self._last_arrival(closure)), default=None)

    def _with_all_before(self, transaction: Transaction) -> Unit:
        """The transaction, what it is one unit with, and everything before one of these, in order of arrival."""
        found: dict[int, Transaction] = {}
        frontier = [transaction]
        while frontier:
            member = frontier.pop()
            if id(member) not in found:
                found[id(member)] = member
                frontier += self._together(member)
                for earlier in self._held[member.source]:
                    if earlier is member:
                        break
                    frontier.append(earlier)
        return tuple(sorted(found.values(), key=lambda member: self._arrival[id(member)]))

    def _unit(self, transaction: Transaction) -> Unit:
        """The transaction, and whatever it shares global transactions with, directly or not."""
        found = {id(transaction): transaction}
        frontier = [transaction]
        while frontier:
            for member in self._together(frontier.pop()):
                if id(member) not in found:
                    found[id(member)] = member
                    frontier.append(member)
        return tuple(found.values())

    def _together(self, transaction: Transaction) -> Iterator[Transaction]:
        return (member for one in self._globals[id(transaction)] for member in one.members)

    def _is_whole(self, transaction: Transaction) -> bool:
        return all(one.is_whole for one in self._globals[id(transaction)])

    def _last_arrival(self, unit: Unit) -> int:
        return max(self._arrival[id(member)] for member in unit)
