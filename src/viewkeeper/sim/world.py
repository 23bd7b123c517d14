"""The simulated world: sources that commit and answer, channels that deliver, a warehouse in the middle.

    source ── transactions, answers ──▶ warehouse          one FIFO per source (two of them when answers may overtake)
    warehouse ── queries ──▶ source                        one FIFO per source

With the multi-relation wrapper each source has an inner pair of channels too, between its database and its wrapper.
What can happen next is a list of events; whoever drives the world picks one. An event is atomic.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from viewkeeper.algorithms.driver import Ticket
from viewkeeper.messages import HopQuery, Query, Transaction
from viewkeeper.sim.joint_queries import JointQueries
from viewkeeper.sim.random_updates import Part, Script
from viewkeeper.sim.trace import Observer
from viewkeeper.sim.warehouse import SimulatedWarehouse
from viewkeeper.sources.memory import MemorySource
from viewkeeper.sources.multi_relation import BATCH, MultiRelationWrapper
from viewkeeper.sources.sequencer import Sequencer
from viewkeeper.sql.view import View


class Happening(StrEnum):
    """The kinds of events."""

    COMMIT = "commit"
    """a source commits its next transaction (a global one: all its participants do)"""
    ANSWER = "answer"
    """a source takes the next query from its channel and answers it (with a wrapper: passes it to its database)"""
    DELIVER = "deliver"
    """the next message of a source reaches the warehouse"""
    DELIVER_ANSWER = "deliver-answer"
    """the same for answers alone, when they have a channel of their own"""
    WRAPPER_RECEIVES = "wrapper"
    """the next message of a database reaches its wrapper"""
    DATABASE_ANSWERS = "database"
    """a database answers the next query of its wrapper"""
    CAPTURE = "capture"
    """with the live mediator: the capture of a source delivers what was committed, into the stream"""
    STEP = "step"
    """with the live mediator: the group does what there is to do"""
    RESTART = "restart"
    """with the live mediator: the warehouse stops working, and begins again from what is stored"""


class Event(NamedTuple):
    happening: Happening
    source: str


@dataclass(frozen=True)
class _Reply:
    """An answer on its way."""

    ticket: Ticket
    query: Query
    rows: Any


class World:
    """Everything around the algorithm. `perform` lets one event happen."""

    def __init__(
        self,
        sources: Mapping[str, MemorySource],
        script: Script,
        *,
        local_views: Mapping[str, tuple[View, ...]] | None = None,
        out_of_order: bool = False,
        whole_transactions: bool = False,
        parts_together: bool = True,
        wrapper_batch: int = BATCH,
        joint_queries: bool = False,
        observer: Observer,
    ) -> None:
        self._sources = sources
        self._script = script
        self._parts_together = parts_together
        self._observer = observer
        self._queries: dict[str, deque[tuple[Ticket, Query]]] = {name: deque() for name in sources}
        self._to_warehouse: dict[str, deque[Any]] = {name: deque() for name in sources}
        self._answers = {name: deque[Any]() for name in sources} if out_of_order else self._to_warehouse
        self._out_of_order = out_of_order
        self._sequencer = Sequencer() if whole_transactions else None
        self._sent = dict.fromkeys(sources, 0)
        self._from_database: dict[str, deque[Any]] = {name: deque() for name in sources}
        self._to_database: dict[str, deque[Any]] = {name: deque() for name in sources}
        self._asked: dict[Ticket, Query] = {}
        self.committed: dict[tuple[str, str], Transaction] = {}
        self.deliveries: list[Transaction] = []
        self.local_queries = 0
        self.warehouse: SimulatedWarehouse
        self._wrappers = {
            name: (JointQueries if joint_queries else MultiRelationWrapper)(
                name, views, ask=self._asking_database(name), emit=self._emitting(name), batch=wrapper_batch
            )
            for name, views in (local_views or {}).items()
        }

    def _asking_database(self, source: str) -> Any:
        return lambda asked_by, query: self._to_database[source].append((asked_by, query))

    def _emitting(self, source: str) -> Any:
        def emit(message: Any) -> None:
            if isinstance(message, Transaction):
                self._to_warehouse[source].append(message)
            else:
                ticket, rows = message
                self._to_warehouse[source].append(_Reply(ticket, self._asked[ticket], rows))

        return emit

    def send(self, ticket: Ticket, query: Query) -> None:
        """The warehouse sends a query."""
        self._asked[ticket] = query
        self._queries[query.source].append((ticket, query))
        self._observer.asked(ticket, query)

    # --- events ---

    def enabled(self) -> list[Event]:
        """What can happen next, in a fixed order."""
        events = []
        for name in self._sources:
            if self._script[name] and self._can_commit(self._script[name][0]):
                events.append(Event(Happening.COMMIT, name))
            if self._queries[name]:
                events.append(Event(Happening.ANSWER, name))
            if self._to_warehouse[name]:
                events.append(Event(Happening.DELIVER, name))
            if self._out_of_order and self._answers[name]:
                events.append(Event(Happening.DELIVER_ANSWER, name))
            if self._from_database[name]:
                events.append(Event(Happening.WRAPPER_RECEIVES, name))
            if self._to_database[name]:
                events.append(Event(Happening.DATABASE_ANSWERS, name))
        return events

    def perform(self, event: Event) -> None:
        """Let one event happen."""
        source = event.source
        match event.happening:
            case Happening.COMMIT:
                self._commit(self._script[source][0])
            case Happening.ANSWER:
                self._take_query(source)
            case Happening.DELIVER:
                self._receive(self._to_warehouse[source].popleft())
            case Happening.DELIVER_ANSWER:
                self._receive(self._answers[source].popleft())
            case Happening.WRAPPER_RECEIVES:
                self._wrapper_receives(source)
            case Happening.DATABASE_ANSWERS:
                asked_by, query = self._to_database[source].popleft()
                self.local_queries += bool(asked_by[0])
                rows = self._sources[source].answer(query)
                self._from_database[source].append((asked_by, rows))
                self._observer.answered(source, query, rows)

    def _can_commit(self, part: Part) -> bool:
        """A global transaction commits everywhere at once: it waits until it is next at every participant."""
        if part.global_id is None or not self._parts_together:
            return True
        heads = [self._script[participant] for participant in part.participants]
        return all(head and head[0].global_id == part.global_id for head in heads)

    def _commit(self, part: Part) -> None:
        together = part.global_id is not None and self._parts_together
        sources = part.participants if together else (part.source,)
        transactions = []
        for source in sources:
            own = self._script[source].popleft()
            transaction = self._sources[source].commit(own.changes, own.global_parts)
            self.committed[source, transaction.position] = transaction
            transactions.append(transaction)
            self._observer.committed(transaction)
        if self._sequencer is not None:
            # The committing site reports the whole transaction; each part carries its number at its own source.
            bundle = [(t.source, self._number(t.source), t) for t in transactions]
            self._to_warehouse[part.source].append(bundle)
        else:
            for transaction in transactions:
                inner = transaction.source in self._wrappers
                (self._from_database if inner else self._to_warehouse)[transaction.source].append(transaction)

    def _number(self, source: str) -> int:
        self._sent[source] += 1
        return self._sent[source]

    def _take_query(self, source: str) -> None:
        ticket, query = self._queries[source].popleft()
        if source in self._wrappers:
            assert isinstance(query, HopQuery), "over the wrapper, algorithms ask hop by hop"
            self._wrappers[source].maintenance_query(ticket, query)
            return
        reply = _Reply(ticket, query, self._sources[source].answer(query))
        self._observer.answered(source, query, reply.rows)
        numbered = self._sequencer is not None
        self._answers[source].append([(source, self._number(source), reply)] if numbered else reply)

    def _wrapper_receives(self, source: str) -> None:
        message = self._from_database[source].popleft()
        if isinstance(message, Transaction):
            self._wrappers[source].base_transaction(message)
        else:
            self._wrappers[source].base_answer(*message)

    def _receive(self, message: Any) -> None:
        for arrived in self._in_order(message):
            if isinstance(arrived, Transaction):
                self.deliveries.append(self.committed[arrived.source, arrived.position])
                self._observer.delivered(arrived)
                self.warehouse.receive(arrived)
            else:
                del self._asked[arrived.ticket]
                self._observer.answer_delivered(arrived.ticket, arrived.query, arrived.rows)
                self.warehouse.receive_answer(arrived.ticket, arrived.query, arrived.rows)
            self._observer.settled(self.warehouse.driver.queue)

    def _in_order(self, message: Any) -> Iterable[Any]:
        if self._sequencer is None:
            yield message
            return
        for source, number, part in message:
            yield from self._sequencer.receive(source, number, part)
