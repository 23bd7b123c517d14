"""One view at work: its algorithm, and the multi-relation wrapper at every source with several of its relations.

    source ─ ΔR ─▶ wrapper ─ ΔIS ─▶ driver ─ ViewDelta ─▶ group
                      ▲                 │
                      └──── queries ────┘                each goes to the channel of its source

What an algorithm stores may be more than the view shows: keyed ones add the keys of the operands.

A ΔIS takes a while, and other sources go on meanwhile. Everything still reaches the driver in the order in which it
came from the sources, each message in the place that it took when it came: all views of a group follow one schedule.
What came since the driver last ran reaches it at once, so that an algorithm which takes batches gets them.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from viewkeeper.algorithms.driver import Driver, Ticket
from viewkeeper.algorithms.registry import Transactions, algorithm, key_information, prepare
from viewkeeper.algorithms.update_queue import MakeZSet, net
from viewkeeper.errors import ProtocolError
from viewkeeper.mediator.statistics import FanOut
from viewkeeper.messages import HopQuery, Query, Transaction, ViewDelta
from viewkeeper.sources.multi_relation import MultiRelationWrapper
from viewkeeper.sql.decompose import Decomposition, decompose
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import OutputColumn, View

Message = Transaction | tuple[Ticket, Any]
Ask = Callable[[Query, Callable[[Any], None]], None]


@dataclass(frozen=True)
class Maintenance:
    """How a view is maintained."""

    view: View
    algorithm: str
    transactions: Transactions = Transactions.LOCAL
    options: Mapping[str, int | bool] | None = None
    stored_for: str | None = None
    """the algorithm whose hidden columns the stored view has, if that is another one"""

    @property
    def layout(self) -> str:
        """The algorithm whose hidden columns the stored view has."""
        return self.stored_for or self.algorithm

    @cached_property
    def parts(self) -> Decomposition | None:
        """The view over local views, if a source has several of its relations that are joined there."""
        chosen = algorithm(self.layout)
        if not chosen.over_wrapper or len(self.view.operands) == len(self.view.sources):
            return None
        parts = decompose(self.view, keys=chosen.needs_keys)
        together = any(len(local.operands) > 1 for views in parts.local_views.values() for local in views)
        return parts if together else None

    @property
    def stored(self) -> View:
        """The view as it is stored: with hidden keys, if its algorithm works on them."""
        parts = self.parts
        return _typed(algorithm(self.layout).stored_view(parts.assembly if parts else self.view))

    @property
    def maintained(self) -> View:
        """The view as its algorithm is given it: one that works on keys adds them itself."""
        parts = self.parts
        given = parts.assembly if parts else self.view
        return given if algorithm(self.algorithm).needs_keys else algorithm(self.layout).stored_view(given)


def _typed(view: View) -> View:
    """Hidden columns with the types of the keys that they are."""
    types = {
        column: type
        for operand in view.operands
        for column, type in zip(operand.columns, operand.relation.types, strict=True)
    }

    def typed(output: OutputColumn) -> OutputColumn:
        expression = output.expression
        if not expression.type and (column := expression.is_column):
            expression = replace(expression, type=types[column])
        return OutputColumn(output.name, expression)

    return replace(view, output=tuple(typed(output) for output in view.output))


class MaintainedView:
    """A view's algorithm at work."""

    def __init__(
        self,
        how: Maintenance,
        *,
        make_zset: MakeZSet,
        ask: Ask,
        install: Callable[[tuple[ViewDelta, ...]], None],
        read_view: Callable[[], Any],
        sources: Iterable[str],
        view_answers: bool = True,
    ) -> None:
        """`view_answers`: what the view answers by its keys is not asked."""
        self.how = how
        self.name = how.view.name
        self.relations: Mapping[str, Relation] = how.view.relations
        self._behind_answers = 0
        """transactions since the last state of the group that came when answers had come already"""
        self._answers = 0
        self._ends_by_itself = algorithm(how.algorithm).needs_pause
        self._ask = ask
        self._make_zset = make_zset
        self._inbox = _Inbox()
        parts = how.parts
        plan, queue, process = prepare(
            how.algorithm,
            how.maintained,
            how.transactions,
            wrapped=parts is not None,
            options=how.options,
            make_zset=make_zset,
            sources=tuple(sources),
        )
        self._fan_out = FanOut()
        plan.fan_out = self._fan_out.expected
        self._wrappers = {
            source: MultiRelationWrapper(
                source, views, ask=self._ask_database(source), emit=self._complete, make_zset=make_zset
            )
            for source, views in (parts.local_views if parts else {}).items()
        }
        self.driver = Driver(
            process,
            queue,
            send=self._send,
            install=install,
            read_view=read_view,
            key_information=key_information(how.algorithm, plan, how.transactions, make_zset) if view_answers else None,
        )

    @property
    def waited(self) -> int:
        """How long there has been no state of the group, in transactions that came after answers. Where the algorithm
        ends by itself it must have had as many answers too: many transactions may come between two of them."""
        return min(self._behind_answers, self._answers) if self._ends_by_itself else self._behind_answers

    def new_state(self) -> None:
        """The group has come to a new state."""
        self._behind_answers = self._answers = 0

    def force(self) -> None:
        """Its interval has passed since the oldest transaction came that is part of no state."""
        self.driver.force()

    @property
    def interval(self) -> int:
        """The seconds after which a transaction is to be part of a state; 0: whenever that is."""
        return int((self.how.options or {}).get("interval", 0))

    def learn(self, query: Query, keys: int, rows: int) -> None:
        """So many keys went out with a query, and so many rows came back."""
        hop = getattr(query, "hop", None)
        if hop is not None:
            self._fan_out.learn(hop, keys, rows)

    def deliver(self, transaction: Transaction) -> None:
        """A transaction of a source arrives; the algorithm takes it with the next `work`."""
        if relies_on_single(self.how):
            refuse_several(transaction, self.how)
        self._inbox.take_place(_place_of(transaction))
        wrapper = self._wrappers.get(transaction.source)
        if wrapper is not None:
            wrapper.base_transaction(transaction)
        else:
            self._complete(transaction)

    def _send(self, ticket: Ticket, query: Query) -> None:
        wrapper = self._wrappers.get(query.source)
        if wrapper is not None:
            assert isinstance(query, HopQuery), "over the wrapper, algorithms ask hop by hop"
            wrapper.maintenance_query(ticket, query)
        else:
            self._ask(query, lambda rows: self._answered(ticket, rows))

    def _answered(self, ticket: Ticket, rows: Any) -> None:
        self._inbox.take_place(ticket)
        self._complete((ticket, rows))

    def _ask_database(self, source: str) -> Callable[[tuple[str, Ticket], Query], None]:
        def ask(asked_by: tuple[str, Ticket], query: Query) -> None:
            def answered(rows: Any) -> None:
                local_view, ticket = asked_by
                if not local_view:
                    self._inbox.take_place(ticket)
                self._wrappers[source].base_answer(asked_by, rows)

            self._ask(query, answered)

        return ask

    def _complete(self, message: Message) -> None:
        """A message that may have waited for its ΔIS is there."""
        self._inbox.fill(_place_of(message) if isinstance(message, Transaction) else message[0], message)

    def work(self) -> None:
        """The algorithm goes on with what has arrived, transactions without an answer between them at once."""
        transactions: list[Transaction] = []
        for arrived in self._inbox.complete():
            if isinstance(arrived, Transaction):
                self._behind_answers += self._answers > 0
                transactions.append(arrived)
            else:
                self._answers += 1
                if transactions:
                    self.driver.deliver(*transactions)
                    transactions = []
                self.driver.answer(*arrived)
        if transactions:
            self.driver.deliver(*transactions)


def relies_on_single(how: Maintenance) -> bool:
    """Whether its level holds only because its sources have declared that their transactions are single updates."""
    levels = algorithm(how.algorithm).levels
    return how.transactions is Transactions.SINGLE and levels[Transactions.LOCAL] < levels[Transactions.SINGLE]


def refuse_several(transaction: Transaction, how: Maintenance) -> None:
    """ProtocolError if it is more than one insertion, deletion or modification of what the view reads.

    What a capture could not tell apart is no transaction of the source: it is taken as one state, which is right.
    """
    changes = net(change for change in transaction.changes if change.relation in how.view.relations)
    updates = max(sum(change.count < 0 for change in changes), sum(change.count > 0 for change in changes))
    if not transaction.merged and max(updates, len({change.relation for change in changes})) > 1:
        # The reason is all that is stored of a halt, so the remedy is in it.
        raise ProtocolError(
            f"{transaction.source} is declared to commit single updates, and its transaction at {transaction.position} "
            f"has several, which {how.algorithm} would show one by one; declare its transactions local and use "
            f"{_WITH_TRANSACTIONS[how.algorithm]}, or reload the view",
        )


_WITH_TRANSACTIONS = {"strobe": "t-strobe", "c-strobe": "c-t-strobe"}
"""for each algorithm that relies on single updates, the one that does not"""


class _Inbox:
    """Messages in the order in which they came; each leaves when it is complete and first."""

    def __init__(self) -> None:
        self._places: deque[Hashable] = deque()
        self._filled: dict[Hashable, Message] = {}

    def take_place(self, place: Hashable) -> None:
        self._places.append(place)

    def fill(self, place: Hashable, message: Message) -> None:
        self._filled[place] = message

    def complete(self) -> Iterator[Message]:
        while self._places and self._places[0] in self._filled:
            yield self._filled.pop(self._places.popleft())


def _place_of(transaction: Transaction) -> Hashable:
    return (transaction.source, transaction.position)
