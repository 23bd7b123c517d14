"""Runs an algorithm: feeds it updates and answers, carries out its effects.

The driver does no I/O itself. Whoever owns it delivers what arrives, in order, and gives it three functions: to send a
query, to install states, to read the view. The simulator, the multi-relation wrapper and the live mediator all use it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from viewkeeper.algorithms.effects import Handle, Install, Join, Next, NextBatch, NextOrForced, Process, ReadView, Spawn
from viewkeeper.algorithms.key_information import KeyInformation
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.errors import ProtocolError
from viewkeeper.messages import Answer, Query, Transaction, ViewDelta

Ticket = int


class Driver:
    """One algorithm at work over one queue."""

    def __init__(
        self,
        algorithm: Process,
        queue: UpdateQueue,
        *,
        send: Callable[[Ticket, Query], None],
        install: Callable[[tuple[ViewDelta, ...]], None],
        read_view: Callable[[], Any],
        key_information: KeyInformation | None = None,
    ) -> None:
        """With `key_information`, queries are not sent that the view answers."""
        self.queue = queue
        self._key_information = key_information
        self._send = send
        self._install = install
        self._read_view = read_view
        self._tickets = 0
        self._asking: dict[Ticket, Process] = {}
        self._hungry: deque[tuple[Process, Next | NextBatch]] = deque()
        self._joining: dict[Handle, list[_Joining]] = {}
        self._handles: dict[Process, Handle] = {}
        self._failure: Exception | None = None
        self._known: deque[tuple[Process, Answer]] = deque()
        """answers that no source is queried for"""
        self._ready: deque[tuple[Process, Any]] = deque([(algorithm, None)])
        self._run()

    def deliver(self, *transactions: Transaction) -> None:
        """Transactions arrive at the warehouse, in this order; the algorithm goes on when all of them wait."""
        self._refuse_if_failed()
        for transaction in transactions:
            self.queue.append(transaction)
            if self._key_information is not None:
                self._key_information.delivered(transaction)
        self._run()

    def answer(self, ticket: Ticket, rows: Any) -> None:
        """The answer to a query arrives at the warehouse."""
        self._refuse_if_failed()
        process = self._asking.pop(ticket, None)
        if process is None:
            raise ProtocolError(f"an answer came for query {ticket}, which is not out", "a source answered twice")
        self._ready.append((process, Answer(rows, self.queue.delivered)))
        self._run()

    def force(self) -> None:
        """Time has passed: an algorithm that waits for updates, and need not, makes a state of what it has taken."""
        self._refuse_if_failed()
        for waiting in [waiting for waiting in self._hungry if isinstance(waiting[1], NextOrForced)]:
            self._hungry.remove(waiting)
            self._ready.append((waiting[0], None))
        self._run()

    def _refuse_if_failed(self) -> None:
        if self._failure is not None:
            raise ProtocolError(
                f"{self.queue.view.name} is no longer maintained, since: {self._failure}",
                "fix the cause and start again",
            ) from self._failure

    def _run(self) -> None:
        """Resume processes until each of them waits for something from outside."""
        while True:
            while self._ready:
                self._step(*self._ready.popleft())
            if self._hungry and self.queue.waiting:
                process, effect = self._hungry.popleft()
                self._ready.append((process, self._take(effect)))
            elif self._known:
                # After all that was delivered has been taken, as an answer comes from a source.
                self._ready.append(self._known.popleft())
            else:
                return

    def _step(self, process: Process, value: Any) -> None:
        try:
            effect = process.send(value)
        except StopIteration as end:
            self._ended(process, end.value)
            return
        except Exception as failure:
            # The generator is finished: going on would leave the view behind without a word.
            self._failure = failure
            raise
        match effect:
            case Next() | NextBatch():
                self._hungry.append((process, effect))
            case Spawn(process=child):
                handle = self._handles[child] = Handle()
                # The child goes first, so that its query is out before its parent looks at the next update.
                self._ready.appendleft((process, handle))
                self._ready.appendleft((child, None))
            case Join():
                self._join(_Joining(process, effect))
            case ReadView():
                self._ready.appendleft((process, self._read_view()))
            case Install(deltas=deltas):
                self._install(deltas)
                if self._key_information is not None:
                    self._key_information.installed(deltas)
                self._ready.appendleft((process, None))
            case _:
                self._ask(process, effect)

    def _ask(self, process: Process, query: Query) -> None:
        known = self._key_information and self._key_information.answer(query, self._read_view)
        if known is not None:
            self._known.append((process, Answer(known, self.queue.delivered)))
            return
        self._tickets += 1
        self._asking[self._tickets] = process
        self._send(self._tickets, query)

    def _take(self, effect: Next | NextBatch) -> Any:
        if isinstance(effect, Next):
            return self.queue.take()
        return [self.queue.take() for _ in range(min(effect.limit, len(self.queue.waiting)))]

    def _ended(self, process: Process, result: Any) -> None:
        handle = self._handles.pop(process, None)
        if handle is not None:
            handle.done, handle.result = True, result
            for waiting in self._joining.pop(handle, ()):
                self._join(waiting)

    def _join(self, waiting: "_Joining") -> None:
        """Wait for the next process that has not ended, or go on: thousands may wait, each is looked at in its turn."""
        running = next((handle for handle in waiting.handles if not handle.done), None)
        if running is not None:
            self._joining.setdefault(running, []).append(waiting)
        else:
            self._ready.append((waiting.process, [handle.result for handle in waiting.join.handles]))


class _Joining:
    """A process that waits for others, and those that it has not seen end."""

    def __init__(self, process: Process, join: Join) -> None:
        self.process = process
        self.join = join
        self.handles = iter(join.handles)
