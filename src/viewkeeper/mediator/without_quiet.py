"""What takes over from an algorithm that waits for quiet, where there is none.

eca, strobe, t-strobe and g-strobe install when no query is out: never, under a stream without a pause. A view that
waits too long starts again from the last commit of its group, maintained by an algorithm that need not wait:

    with keys           periodic-c-strobe, as section 6 of the Strobe paper has it: a state after at most k updates
    without, or where   batched-sweep: it needs no keys, and keeps transactions that span sources whole
    transactions span

Neither promises less, and what is stored stays as it is, hidden columns included. The next run begins with the view's
own algorithm again.
"""

from dataclasses import replace

from viewkeeper.algorithms.registry import Transactions, algorithm
from viewkeeper.mediator.maintained import BATCH, Maintenance

MOST_BEHIND_ANSWERS = 1_000
"""Transactions that may come behind answers before a view that waits for quiet has waited too long. A backlog does not
count: it comes before the first answer, and is installed when the last has come."""
PERIOD = 256


def without_quiet(how: Maintenance) -> Maintenance | None:
    """How a view is maintained without waiting for quiet; None if it does not wait for it."""
    chosen = algorithm(how.algorithm)
    if not chosen.needs_quiet:
        return None
    if chosen.needs_keys and how.transactions is not Transactions.GLOBAL:
        successor, options = "periodic-c-strobe", {"period": PERIOD}
    else:
        successor, options = "batched-sweep", {"batch": BATCH}
    return replace(how, algorithm=successor, options=options, stored_for=how.algorithm)
