"""The stream of a source: a slot is followed, transactions are kept for readings, acknowledgements go back.

    each second     a look at the catalog, and a fresh snapshot

The look finds what the stream does not tell: a dropped table, one taken out of the publication, one that was altered
and not changed since. The snapshot lets go of transactions that every reading shows from now on.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.clock import monotonic
from viewkeeper.errors import PositionLost
from viewkeeper.messages import Position, Transaction
from viewkeeper.sources.base import Batch, Disruption
from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.postgres.assembly import Assembler
from viewkeeper.sources.postgres.bell import Bell
from viewkeeper.sources.postgres.catalog import Table, Tables
from viewkeeper.sources.postgres.connections import Connections
from viewkeeper.sources.postgres.memo import confirmed_place
from viewkeeper.sources.postgres.replication_link import ReplicationLink
from viewkeeper.sources.postgres.snapshots import Retained, Streamed, position_of
from viewkeeper.sources.postgres.watch import alterations, look, nudge

_MOST = 1000
"""Events in one batch, about."""
_LOOK_EVERY = 1.0
_TELL_EVERY = 0.25
"""Seconds between two batches without events, if nobody waits for one."""
_PAUSE = 0.2
_PAUSE_IF_AWAITED = 0.005


@dataclass
class Wishes:
    """What other threads ask of the running stream: set it, then ring."""

    reach: int = 0
    """the place that a reading waits for"""
    stored: int = 0
    """the place up to which everything is stored durably"""
    bell: Bell = field(default_factory=Bell)


@dataclass(frozen=True)
class _Pending:
    """A disruption that is told when the stream has come to `place`; `oid` of a table that is lost from then on."""

    place: int
    relation: str
    found: Alteration
    oid: int | None = None


class Stream:
    """One run through a slot. `stale` are tables that were altered while nobody followed, and how."""

    def __init__(
        self,
        source: str,
        connections: Connections,
        tables: Tables,
        slot: str,
        retained: Retained,
        wishes: Wishes,
        stale: Mapping[int, Sequence[Alteration]],
    ) -> None:
        self._source, self._connections, self._tables, self._slot = source, connections, tables, slot
        self._retained, self._wishes = retained, wishes
        self._assembler = Assembler(source, tables, self._altered)
        self._known: set[tuple[int, Alteration]] = set()
        """what is told of tables, or will be"""
        self._pending = [
            _Pending(0, tables.captured[oid].relation.name, one) for oid, several in stale.items() for one in several
        ]

    def batches(self, after: int, stop: threading.Event, passed: Callable[[Position], None]) -> Iterator[Batch]:
        """Everything behind `after`, as it comes."""
        upto, begun = after, False
        self._look()
        looked = told = monotonic()
        link = ReplicationLink(self._connections, self._source, self._slot)
        try:
            self._refuse_gap(after)
            while not stop.is_set():
                awaited = self._wishes.reach > upto or not begun
                if awaited:
                    link.ask()
                place, events = self._received(link, _PAUSE_IF_AWAITED if awaited else _PAUSE, after)
                if place > upto:
                    events += self._due(place)
                now = monotonic()
                advanced = place > upto or (place == upto and not begun)
                if events or (advanced and (awaited or now - told > _TELL_EVERY)):
                    upto, told, begun = max(upto, place), now, True
                    passed(position_of(upto))
                    yield Batch(events, position_of(upto))
                if monotonic() - looked > _LOOK_EVERY:
                    self._look()
                    looked = monotonic()
                self._confirm(link, upto)
            self._confirm(link, upto)
        finally:
            link.close()

    def _refuse_gap(self, after: int) -> None:
        """PositionLost if the slot goes on behind a later place than `after`.

        A place is confirmed once it is stored, so the warehouse that did it is never before it. Only whoever follows
        the slot moves it: it is looked at when it is ours.
        """
        with self._connections.plain() as connection:
            confirmed = confirmed_place(connection, self._slot)
        if after and confirmed > after:
            raise PositionLost(
                f"{self._source} has let go of the changes from {position_of(after)} to {position_of(confirmed)}: the "
                "warehouse was put back from an older copy, or another copy of it has followed the same slot",
                "reload the views over this source and audit them; let one copy of a warehouse alone do the work",
            )

    def _received(self, link: ReplicationLink, pause: float, after: int) -> tuple[int, list[Transaction | Disruption]]:
        """What has come, and the place up to which that is everything. What lies before `after` was told before."""
        events: list[Transaction | Disruption] = []
        streamed: list[Streamed] = []
        place = 0
        for payload in link.receive(pause, self._wishes.bell):
            completed = self._assembler.feed(payload)
            if completed is None:
                continue
            place = max(place, completed.end)
            if completed.streamed is not None:
                streamed.append(completed.streamed)
            if completed.end > after:
                events += completed.events()
            if len(streamed) >= _MOST:
                break
        self._retained.add(streamed)
        return max(place, link.sent), events

    # --- what the stream itself does not tell ---

    def _look(self) -> None:
        with self._connections.plain() as connection:
            seen = look(connection, self._tables.captured.values(), self._slot)
            for oid, several in seen.altered.items():
                name = self._tables.captured[oid].relation.name
                for one in [one for one in several if (oid, one) not in self._known]:
                    self._known.add((oid, one))
                    self._pending.append(_Pending(seen.place, name, one, oid if one.columns is None else None))
            if self._pending:
                # They are told at a new place, which may not come for long at an idle server.
                nudge(connection)
        self._retained.observe(seen.snapshot)

    def _altered(self, table: Table) -> list[Alteration]:
        """Asked when the stream announces a table anew: it does so after every ALTER TABLE."""
        if table.oid not in self._tables.captured:
            return []
        with self._connections.plain() as connection:
            found = alterations(connection, [table], self._slot).get(table.oid, [])
        self._known.update((table.oid, one) for one in found)
        return found

    def _due(self, upto: int) -> list[Transaction | Disruption]:
        """Disruptions whose place has come: behind everything that was committed before them."""
        due = [pending for pending in self._pending if pending.place <= upto]
        self._pending = [pending for pending in self._pending if pending.place > upto]
        for pending in due:
            if pending.oid is not None:
                self._assembler.lose(pending.oid)
        return [Disruption.of(pending.relation, position_of(upto), pending.found) for pending in due]

    def _confirm(self, link: ReplicationLink, upto: int) -> None:
        """What is stored elsewhere, and what every reading shows, the slot may forget."""
        stored = min(self._wishes.stored, upto)
        if stored > link.flushed:
            first = self._retained.first_start()
            link.confirm(stored if first is None else min(stored, first))
