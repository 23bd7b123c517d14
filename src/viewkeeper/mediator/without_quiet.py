"""What takes over from an algorithm that waits for quiet, where there is none.

eca, strobe, t-strobe and g-strobe install when no query is out: never, under a stream without a pause. nested-sweep
installs when what interferes pauses, or when its round holds as many transactions as it may: one at a time, that takes
n - 1 queries for each. And views of one group whose states each hold many transactions may go on without ever holding
the same ones. When no state of the group has come for too long, such views start again from its last commit, maintained
by an algorithm that need not wait:

    a view with keys, alone     periodic-c-strobe, as section 6 of the Strobe paper has it: a state every k updates
    any other                   batched-sweep: a state per transaction, where several views always meet; it needs no
                                keys, and keeps transactions that span sources whole
    one that shows parts        sweep: an algorithm that is weak for transactions that span sources may have committed
    of such transactions        a part of one already, which batched-sweep would wait for

Neither promises less, and what is stored stays as it is, hidden columns included. The next run begins with the view's
own algorithm again.
"""

from dataclasses import replace

from viewkeeper.algorithms.registry import Algorithm, Transactions, algorithm
from viewkeeper.levels import Level
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.sources.multi_relation import BATCH

MOST_BEHIND_ANSWERS = 1_000
"""Transactions that may come after answers before a group has waited too long for a state. A backlog does not count:
it comes before the first answer, and is installed when the last has come."""
PERIOD = 256


def without_quiet(how: Maintenance, *, alone: bool) -> Maintenance | None:
    """How a view is maintained without waiting for quiet, or for the other views of its group if it is not alone; None
    if it does not wait, or cannot but wait."""
    chosen = algorithm(how.algorithm)
    waits = chosen.needs_quiet or chosen.needs_pause or (not alone and _states_hold_many(chosen))
    if not waits or chosen.baseline:
        return None
    if how.transactions is Transactions.GLOBAL and chosen.levels[Transactions.GLOBAL] < Level.STRONG:
        # Its states may hold a part of a transaction: whoever waits for whole ones would wait for that part for ever.
        return replace(how, algorithm="sweep", options={}, stored_for=how.layout)
    if alone and chosen.needs_keys and how.transactions is not Transactions.GLOBAL:
        return replace(how, algorithm="periodic-c-strobe", options={"period": PERIOD}, stored_for=how.layout)
    return replace(how, algorithm="batched-sweep", options={"batch": BATCH}, stored_for=how.layout)


def _states_hold_many(chosen: Algorithm) -> bool:
    """Strong, not complete. What is only convergent, as recompute, leaves states that nobody else can go on from."""
    return chosen.levels[Transactions.SINGLE] is Level.STRONG
