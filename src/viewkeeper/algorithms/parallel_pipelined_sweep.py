"""Parallel and pipelined SWEEP: several updates in flight, the sides of each at once, installed in delivery order.

Source     Agrawal et al. (1997), section 5.3: both of its optimizations
Assumes    as sweep
Reaches    complete, for single updates and source-local transactions
Costs      n - 1 queries per update; the view lags by the longest side of one sweep

    ΔV_u = ΔR_i ⋈ left ⋈ right          for every u in flight; installed in delivery order

The two do not get in each other's way. What interferes at hop j depends on u, on the answer and on what was delivered,
and neither on the other sides of u nor on other sweeps. An id tells the rows of one ΔR_i apart: two sweeps are never
merged, so they may use the same ids.
"""

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algorithms.effects import Process
from viewkeeper.algorithms.parallel_sweep import parallel_view_change
from viewkeeper.algorithms.pipelined_sweep import pipelined
from viewkeeper.algorithms.update_queue import UpdateQueue


def parallel_pipelined_sweep(plan: JoinPlan, queue: UpdateQueue, *, window: int = 64) -> Process:
    """Every update is swept as by parallel-sweep, up to `window` of them at a time."""
    yield from pipelined(plan, queue, parallel_view_change, window)
