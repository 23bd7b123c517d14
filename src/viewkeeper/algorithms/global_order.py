"""The place of a global transaction among everything else.

    x:  a  T.x  b          T takes the place of its last part; b waits behind T.x.
    y:  c  d  T.y          Letting b pass would show x with b and without T, which no serial schedule has.

Parts whose orders cross (x: T, U and y: U, T) would wait for each other. No serial schedule of the sources holds them
apart, so they become one unit, together with what lies between them.
"""

from collections.abc import Iterable

from viewkeeper.messages import Transaction

Unit = tuple[Transaction, ...]


class GlobalOrder:
    """Turns deliveries into units: whole global transactions, in an order that every source agrees with.

    `sources` are those of the view: a participant that has nothing to do with it does not report, and nobody waits.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._sources = frozenset(sources)
        self._held: dict[str, list[Transaction]] = {}
        self._arrived: list[Transaction] = []

    def arrive(self, transaction: Transaction) -> list[Unit]:
        """What can be taken now that this transaction is here, in order."""
        if transaction.global_id is None and not self._arrived:
            return [(transaction,)]
        self._held.setdefault(transaction.source, []).append(transaction)
        self._arrived.append(transaction)
        units: list[Unit] = []
        for waiting in list(self._arrived):
            if waiting in self._arrived:
                units += self._release(waiting)
        return units

    def _release(self, transaction: Transaction) -> list[Unit]:
        """The transaction with all it waits for, or nothing if some part has not arrived."""
        needed = self._behind(transaction)
        if not all(self._complete(member) for member in needed):
            return []
        units: list[Unit] = []
        while needed:
            # Whatever needs the fewest others stands first; members of a cycle need the same ones, and go together.
            unit = min((self._behind(member) for member in needed), key=lambda group: (len(group), group[-1].position))
            units.append(tuple(unit))
            needed = [member for member in needed if member not in unit]
            self._remove(unit)
        return units

    def _behind(self, transaction: Transaction) -> list[Transaction]:
        """The transaction, its other parts, and everything that stands before one of them, in order of arrival."""
        found: set[int] = set()
        frontier = [transaction]
        while frontier:
            member = frontier.pop()
            if id(member) in found:
                continue
            found.add(id(member))
            queue = self._held[member.source]
            frontier += queue[: queue.index(member)]
            frontier += self._parts(member)
        return [member for member in self._arrived if id(member) in found]

    def _parts(self, transaction: Transaction) -> list[Transaction]:
        if transaction.global_id is None:
            return [transaction]
        return [member for member in self._arrived if member.global_id == transaction.global_id]

    def _complete(self, transaction: Transaction) -> bool:
        if transaction.global_id is None:
            return True
        return {part.source for part in self._parts(transaction)} >= self._sources.intersection(
            transaction.participants
        )

    def _remove(self, unit: Iterable[Transaction]) -> None:
        for member in unit:
            self._held[member.source].remove(member)
            self._arrived.remove(member)
