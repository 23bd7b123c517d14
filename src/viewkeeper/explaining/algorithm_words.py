"""What each algorithm does with a transaction, told to somebody who has not read the papers."""

from viewkeeper.levels import Level

MEANS = {
    Level.COMPLETE: "every transaction of the sources becomes a state of the view, in one order, and none is skipped",
    Level.STRONG: "every state of the view is one that the sources went through, in one order; some may be skipped",
    Level.WEAK: "every state of the view is right for some state of each source, but these may not fit together",
    Level.CONVERGENT: "the view is sure to be right only when the sources have paused",
    Level.NONE: "nothing is promised: the view may stay wrong",
}

_TAKEN_OUT = (
    "What other transactions did while the questions were out is taken out of the answers again, here, so that each "
    "change is computed as if it had come alone."
)
_BY_KEY = (
    "A deleted row leaves the view at once, by its key, without a question. For an inserted one the questions are "
    "asked, and deletions that come meanwhile are applied to the answers."
)
_QUIET = "Changes are collected, and shown as one new state when no question is out."

COMPUTES = {
    "batched-sweep": (
        f"{_TAKEN_OUT} Transactions that come while it asks are then asked about together, and each still becomes a "
        "state of its own."
    ),
    "sweep": f"{_TAKEN_OUT} One transaction follows the other.",
    "parallel-sweep": f"{_TAKEN_OUT} Sources that do not need each other's answers are asked at the same time.",
    "pipelined-sweep": f"{_TAKEN_OUT} Several transactions are under way at a time, and are shown in their order.",
    "parallel-pipelined-sweep": (
        f"{_TAKEN_OUT} Sources that do not need each other's answers are asked at the same time. Several transactions "
        "are under way at a time, and are shown in their order."
    ),
    "nested-sweep": (
        "A transaction that comes while questions are out, and shows in an answer, is taken along, until a state holds "
        "as many as it may: they become one state. What cannot be taken along is taken out of the answer again."
    ),
    "strobe": f"{_BY_KEY} {_QUIET} Transactions are taken apart into their rows.",
    "t-strobe": f"{_BY_KEY} {_QUIET}",
    "g-strobe": f"{_BY_KEY} {_QUIET} Transactions that span sources are waited for and shown whole.",
    "c-strobe": (
        f"{_BY_KEY} Further questions make up for what the deletions took away, so that each row that changes is shown "
        "by itself; transactions are taken apart."
    ),
    "c-t-strobe": (
        f"{_BY_KEY} Further questions make up for what the deletions took away, so that each transaction is shown by "
        "itself."
    ),
    "periodic-c-strobe": f"{_BY_KEY} Every few transactions further questions bring about a state.",
    "eca": (
        "One question goes to the source for each transaction. It also asks for what corrects the questions that are "
        f"out. {_QUIET}"
    ),
    "eca-key": "A deleted row leaves the view by its key; one question goes to the source for what is inserted.",
    "recompute": (
        "All relations are read again, once for all transactions that wait, and the view is computed and compared with "
        "what is stored."
    ),
    "conventional": (
        "The answers are taken as they come. What other transactions did meanwhile makes the view wrong: this "
        "algorithm is here to be seen failing."
    ),
}
"""by algorithm"""

KNOWN_FROM_THE_VIEW = (
    "What the view itself has is not asked for: a question by keys, of which it has all rows and columns that the join "
    "needs, is answered from it."
)

BY_KEYS = ("conventional", "strobe", "t-strobe", "g-strobe", "c-strobe", "c-t-strobe", "periodic-c-strobe")
"""those that ask nothing for a deletion, and n - 1 questions for an insertion"""
READ_THE_VIEW = (*BY_KEYS, "eca-key", "recompute")
"""those that look at all of the stored view for each state"""


def questions(algorithm: str, steps: int, inside: int, joined: int) -> tuple[int, int]:
    """How many questions a lone transaction costs at most that inserts into one relation, and one that deletes from it.

    `steps` are the messages for the joins on the way to the view, the first `inside` of them to the relation's own
    source; `joined` is the number of relations that the algorithm works on.
    """
    if algorithm == "recompute":
        return joined, joined
    if not steps:
        return 0, 0
    if algorithm in ("eca", "eca-key"):
        return 1, int(algorithm == "eca")
    return steps, inside if algorithm in BY_KEYS else steps
