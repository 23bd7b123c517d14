"""The multi-relation wrapper: a source with several relations looks like one relation per local view.

Source     Ding, Zhang, Rundensteiner: Enhancing Existing Incremental View Maintenance Algorithms Using the
           Multi-Relation Encapsulation Wrapper (1999), figure 7
Assumes    a FIFO between the database of the source and the wrapper: ΔR and local answers
Keeps      the contract of a source, for the local views: one FIFO of ΔIS and answers, in which each answer reflects
           exactly the ΔIS before it
Costs      one message per maintenance query, and one per ΔR for its ΔIS, however many relations the source has

    ΔIS = R_1 ⋈ ... ⋈ ΔR_i ⋈ ... ⋈ R_m at the source          computed by SWEEP over the source's own relations

SWEEP goes hop by hop; `local_queries.py` fetches what all of its hops will join in one message.

The order of what leaves is the order in which the ΔR and the answers to maintenance queries (LMQR) reached the
wrapper: each takes a place in the outbox when it comes, and leaves when it is complete and first. So an answer leaves
behind the ΔIS of every ΔR that it shows, and before all others. Where figure 7 differs it is fixed: relation j is
asked, not i; every waiting ΔR_j is compensated; a transaction over several relations is one ΔIS, with no answer
inside it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.batched_sweep import batched_sweep
from viewkeeper.algorithms.driver import Driver, Ticket
from viewkeeper.algorithms.sweep import sweep
from viewkeeper.algorithms.update_queue import MakeZSet, UpdateQueue
from viewkeeper.messages import Change, HopQuery, Position, Query, Transaction, ViewDelta
from viewkeeper.sources.local_queries import LocalizedQuery, LocalSweep, Reached
from viewkeeper.sql.view import View

BATCH = 4_096
"""Updates that are swept together, at most, in the wrapper and by the mediator; the simulator has the same."""


@dataclass
class _Outgoing:
    """A place in the outbox: an answer, or the ΔIS of a transaction with the local views it still waits for."""

    message: Any
    missing: set[str] = field(default_factory=set)
    changes: list[Change] = field(default_factory=list)


class MultiRelationWrapper:
    """The wrapper of one source; `ask` reaches its database, `emit` the mediator."""

    def __init__(
        self,
        source: str,
        local_views: tuple[View, ...],
        *,
        ask: Callable[[tuple[str, Ticket], Query], None],
        emit: Callable[[Transaction | tuple[Ticket, Any]], None],
        make_zset: MakeZSet = MemoryZSet,
        batch: int = BATCH,
    ) -> None:
        self.source = source
        self._ask = ask
        self._emit = emit
        self._make_zset = make_zset
        self._batch = batch
        self._outbox: deque[_Outgoing] = deque()
        self._places: dict[Position, _Outgoing] = {}
        self._reached: Reached | None = None
        self._due: deque[tuple[str, Ticket, Any]] = deque()
        self._plans = {f"{source}.{view.name}": JoinPlan(view) for view in local_views}
        self._processors = {name: self._update_processor(name, plan) for name, plan in self._plans.items()}

    def _update_processor(self, name: str, plan: JoinPlan) -> Driver:
        """SWEEP over the relations of one local view; it installs exactly one ΔIS per transaction, in order.

        So does batched SWEEP, with fewer messages to the database when transactions come faster than answers.
        """
        queue = UpdateQueue(plan.view, make_zset=self._make_zset)
        return Driver(
            sweep(plan, queue) if self._batch == 1 else batched_sweep(plan, queue, batch=self._batch),
            queue,
            send=lambda ticket, query: self._local_query(name, ticket, query),
            install=lambda deltas: self._computed(name, deltas),
            read_view=lambda: None,
        )

    def base_transaction(self, transaction: Transaction) -> None:
        """ΔR arrives from the database."""
        place = _Outgoing(transaction, set(self._processors))
        self._outbox.append(place)
        self._places[transaction.position] = place
        for processor in self._processors.values():
            processor.deliver(transaction)
        self._flush()

    def maintenance_query(self, ticket: Ticket, query: HopQuery) -> None:
        """MQ arrives from the mediator: localize it and pass it on."""
        self._ask(("", ticket), LocalizedQuery(query, self._plans[query.hop.operand.relation.name]))

    def _local_query(self, name: str, ticket: Ticket, query: Query) -> None:
        """A hop of a processor: what it joins may have come with the last answer, else the database is asked."""
        assert isinstance(query, HopQuery), "SWEEP asks hop by hop"
        known = None if self._reached is None else self._reached.answer(query)
        if known is not None:
            self._due.append((name, ticket, known))
        else:
            self._ask((name, ticket), LocalSweep(query, self._plans[name]))

    def base_answer(self, asked_by: tuple[str, Ticket], answer: Any) -> None:
        """An answer arrives from the database: to an update processor, or to a maintenance query."""
        name, ticket = asked_by
        if name:
            # What is known beyond the first hop holds here in the stream, and no longer when something else arrives.
            self._reached = answer
            self._due.append((name, ticket, answer.rows))
            while self._due:
                processor, due, rows = self._due.popleft()
                self._processors[processor].answer(due, rows)
            self._reached = None
        else:
            self._outbox.append(_Outgoing((ticket, answer)))
        self._flush()

    def _computed(self, name: str, deltas: tuple[ViewDelta, ...]) -> None:
        for delta in deltas:
            (transaction,) = delta.transactions
            place = self._places[transaction.position]
            place.missing.discard(name)
            # Deletions first: a local row that is replaced keeps its key.
            weights = sorted(delta.delta.weights(), key=lambda entry: entry[1])
            place.changes += [Change(name, row, weight) for row, weight in weights]

    def _flush(self) -> None:
        """Order assignment: whatever is complete and first may leave."""
        while self._outbox and not self._outbox[0].missing:
            out = self._outbox.popleft()
            if isinstance(out.message, Transaction):
                part = out.message
                del self._places[part.position]
                self._emit(replace(part, changes=tuple(out.changes)))
            else:
                self._emit(out.message)
