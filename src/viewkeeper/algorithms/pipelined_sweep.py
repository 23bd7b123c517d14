"""Pipelined SWEEP: several updates in flight, installed in delivery order.

Source     Agrawal et al. (1997), section 5.3: "pipeline the view construction for multiple updates"
Assumes    as sweep
Reaches    complete, for single updates and source-local transactions
Costs      n - 1 queries per update; the view lags by one sweep, not by the sum of all that wait

An answer for u shows every update of its source that was delivered before it. Those after u must go, whether they
still wait, are in flight or are already computed: "not yet installed" or "still queued" would miss some. So the queue
keeps an update until all older ones are installed.

PSWEEP (Zhang, Ding, Rundensteiner 1999) is another algorithm: it commits out of order, with negative counters. Of the
papers here the wrapper's cites it, and none spells it out.
"""

from collections import deque
from collections.abc import Callable

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Handle, Install, Join, Next, Process, Spawn
from viewkeeper.algorithms.sweep import view_change
from viewkeeper.algorithms.update_queue import Update, UpdateQueue
from viewkeeper.messages import ViewDelta

ViewChange = Callable[[JoinPlan, UpdateQueue, Update], Process]


def pipelined_sweep(plan: JoinPlan, queue: UpdateQueue, *, window: int = 64) -> Process:
    """Every update is swept as by sweep, up to `window` of them at a time."""
    yield from pipelined(plan, queue, view_change, window)


def pipelined(plan: JoinPlan, queue: UpdateQueue, change_of: ViewChange, window: int) -> Process:
    """Start to compute the change of each update as it comes, up to `window` of them; install in order."""
    in_flight: deque[tuple[Update, Handle]] = deque()
    while True:
        u = yield Next()
        in_flight.append((u, (yield Spawn(change_of(plan, queue, u)))))
        yield Spawn(_install_finished(queue, in_flight))
        while len(in_flight) >= window:
            yield Join(in_flight[0][1])


def _install_finished(queue: UpdateQueue, in_flight: deque[tuple[Update, Handle]]) -> Process:
    """Wait for the sweep that was started last, then install whatever is done at the head of the line."""
    yield Join(in_flight[-1][1])
    while in_flight and in_flight[0][1].done:
        u, finished = in_flight.popleft()
        yield Install(ViewDelta(finished.result, u.transactions))
        queue.forget(u.rank)
