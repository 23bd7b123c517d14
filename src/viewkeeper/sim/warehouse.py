"""The simulated warehouse: a driver with its algorithm, the stored view, and every state that it has had."""

from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algorithms.driver import Driver, Ticket
from viewkeeper.algorithms.effects import Process
from viewkeeper.algorithms.key_information import KeyInformation
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.checker.history import State
from viewkeeper.messages import Query, Transaction, ViewDelta, position
from viewkeeper.sim.outcome import Messages
from viewkeeper.sim.trace import Observer


class SimulatedWarehouse:
    """Keeps MV in memory and remembers its states."""

    def __init__(
        self,
        plan: JoinPlan,
        queue: UpdateQueue,
        algorithm: Process,
        initial: MemoryZSet,
        columns: tuple[str, ...],
        sources: tuple[str, ...],
        *,
        send: Any,
        observer: Observer,
        interval: int = 0,
        key_information: KeyInformation | None = None,
    ) -> None:
        self._columns = columns
        self._observer = observer
        self._send = send
        self._interval = interval
        self._clock = 0
        self._since: dict[tuple[str, str], int] = {}
        """when each transaction came that is part of no state yet; time is the number of messages that have come"""
        self.plan = plan
        self.mv = initial
        self.vector = dict.fromkeys(sources, position(0))
        self.messages = Messages()
        self.states = [self._state()]
        self.driver = Driver(
            algorithm,
            queue,
            send=self._ask,
            install=self._install,
            read_view=lambda: self.mv,
            key_information=key_information,
        )

    def receive(self, transaction: Transaction) -> None:
        self._since[transaction.source, transaction.position] = self._clock
        self.driver.deliver(transaction)
        self._pass_time()

    def receive_answer(self, ticket: Ticket, query: Query, rows: MemoryZSet) -> None:
        self.messages.answers += 1
        self.messages.rows += rows.size()
        self.driver.answer(ticket, rows)
        self._pass_time()

    def _pass_time(self) -> None:
        self._clock += 1
        oldest = next(iter(self._since.values()), self._clock)
        if self._interval and self._clock - oldest >= self._interval:
            self.driver.force()

    @property
    def view(self) -> MemoryZSet:
        """The logical view: without what is stored hidden."""
        return self.mv.keep(self._columns)

    def _ask(self, ticket: Ticket, query: Query) -> None:
        self.messages.queries += 1
        self.messages.rows += query.size()
        self._send(ticket, query)

    def _install(self, deltas: tuple[ViewDelta, ...]) -> None:
        for delta in deltas:
            self.mv = self.mv + delta.delta
            for transaction in delta.transactions:
                self.vector[transaction.source] = max(self.vector[transaction.source], transaction.position)
                self._since.pop((transaction.source, transaction.position), None)
            self.states.append(self._state())
            self._observer.installed(delta, len(self.states) - 1, self.states[-1].rows)

    def _state(self) -> State:
        return State(self.view, dict(self.vector))
