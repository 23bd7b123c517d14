"""The multi-relation wrapper: a source with several relations looks like one relation per local view.

Source     Ding, Zhang, Rundensteiner: Enhancing Existing Incremental View Maintenance Algorithms Using the
           Multi-Relation Encapsulation Wrapper (1999), figure 7
Assumes    a FIFO between the database of the source and the wrapper: ΔR and local answers
Keeps      the contract of a source, for the local views: one FIFO of ΔIS and answers, in which each answer reflects
           exactly the ΔIS before it
Costs      one message per maintenance query, however many relations the source has

    ΔIS = R_1 ⋈ ... ⋈ ΔR_i ⋈ ... ⋈ R_m at the source          computed by SWEEP over the source's own relations

The order of what leaves is the order in which the ΔR and the answers to maintenance queries (LMQR) reached the
wrapper: each takes a place in the outbox when it comes, and leaves when it is complete and first. So an answer leaves
behind the ΔIS of every ΔR that it shows, and before all others. Where figure 7 differs it is mended: relation j is
asked, not i; every waiting ΔR_j is compensated; a transaction over several relations is one ΔIS, with no answer
inside it.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from viewkeeper.algebra.joins import Hop, JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.batched_sweep import batched_sweep
from viewkeeper.algorithms.driver import Driver, Ticket
from viewkeeper.algorithms.sweep import sweep
from viewkeeper.algorithms.update_queue import MakeZSet, UpdateQueue
from viewkeeper.messages import Change, Fetch, HopQuery, Position, Query, Transaction, ViewDelta, keys_for
from viewkeeper.sql.view import View

BATCH = 4_096
"""Updates that are swept together, at most, in the wrapper and by the mediator; the simulator has the same."""


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
        self._plans = {f"{source}.{view.name}": JoinPlan(view) for view in local_views}
        self._processors = {name: self._update_processor(name, plan) for name, plan in self._plans.items()}

    def _update_processor(self, name: str, plan: JoinPlan) -> Driver:
        """SWEEP over the relations of one local view; it installs exactly one ΔIS per transaction, in order.

        So does batched SWEEP, with fewer questions to the database when transactions come faster than answers.
        """
        queue = UpdateQueue(plan.view, make_zset=self._make_zset)
        return Driver(
            sweep(plan, queue) if self._batch == 1 else batched_sweep(plan, queue, batch=self._batch),
            queue,
            send=lambda ticket, query: self._ask((name, ticket), query),
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

    def base_answer(self, asked_by: tuple[str, Ticket], rows: Any) -> None:
        """An answer arrives from the database: to an update processor, or to a maintenance query."""
        name, ticket = asked_by
        if name:
            self._processors[name].answer(ticket, rows)
        else:
            self._outbox.append(_Outgoing((ticket, rows)))
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
