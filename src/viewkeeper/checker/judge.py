"""The level of consistency that a history reaches, after Zhuge et al. (1996), section 4.2.

    convergent    V(ws_f) = V(ss_q)                                 the last state, and the last source state
    weak          for each ws_i some cut c:  V(ws_i) = V(c)         global transactions may be split, in any order
    strong        closed cuts c₀ ≤ c₁ ≤ ... with V(ws_i) = V(c_i)   a chain lies on a serial schedule R
    complete      and along R every source state is some c_i        each step adds exactly one unit

Each level includes those above it in this list. An update that does not change the view makes a source state of its own
and needs a state of its own.

We read the paper's condition "if ws_i < ws_k then m(ws_i) < m(ws_k)" as "not later": several states may stand for one
source state. Its appendix C, meant to be equivalent, puts the states as read-only transactions into the serial
schedule, and nothing there keeps two of them from standing next to each other.

A history may end with a global transaction of which a part never arrived. A weak state may show the others; for
convergence the last state may show them or hold them back; to the higher levels it has not happened (`units.py`).
"""

from viewkeeper.checker.blind import judge_blind
from viewkeeper.checker.case import Case, Finding
from viewkeeper.checker.claimed import judge_claimed
from viewkeeper.checker.explain import not_converged
from viewkeeper.checker.history import History
from viewkeeper.checker.judgement import LEVELS, Judgement, Mode, Violation
from viewkeeper.checker.schedule import Cut
from viewkeeper.levels import Level

_ENOUGH_TO_EXPLAIN = 100_000
"""Source states to look at where every verdict is known already, and only the first wrong state is wanted."""


def check(history: History, *, blind: bool = False, budget: int = 1_000_000) -> Judgement:
    """Judge a history: by the vectors that its states claim, or blindly, by search for any mapping that fits.

    The search looks at no more than `budget` source states; what it cannot decide with them stays undecided.
    """
    case = Case(history)
    convergence = _convergence(case)
    if not convergence.holds:
        budget = min(budget, _ENOUGH_TO_EXPLAIN)
    findings = (convergence, *(judge_blind(case, budget) if blind else judge_claimed(case)))
    level, verdict, violations = _combined(findings)
    mapping: tuple[Cut | None, ...] = findings[level - 1].mapping if level else (None,) * len(history.states)
    return Judgement(
        level,
        verdict,
        Mode.BLIND if blind else Mode.CLAIMED,
        tuple(None if cut is None else case.schedule.vector_of(cut) for cut in mapping),
        violations,
        tuple(unit.members for unit in case.schedule.units if unit.merged),
        f"more than {budget} source states to look at" if None in verdict.values() else "",
    )


def _convergence(case: Case) -> Finding:
    for final in (case.schedule.settled, case.schedule.everything):
        if case.shown[-1] == case.source_states.at(final):
            return Finding(True, (*[None] * (len(case.shown) - 1), final))
    return Finding(False, violation=not_converged(case))


def _combined(
    findings: tuple[Finding, ...],
) -> tuple[Level, dict[Level, bool | None], tuple[Violation, ...]]:
    """Each level holds if its own condition and those of the levels below do."""
    reached, verdict = Level.NONE, dict[Level, bool | None]()
    violations: list[Violation] = []
    below: bool | None = True
    for level, finding in zip(LEVELS, findings, strict=True):
        below = False if below is False or finding.holds is False else finding.holds and below
        verdict[level] = below
        if below:
            reached = level
        elif below is False:
            violation = finding.violation or violations[-1]
            violations.append(violation.at(level))
    return reached, verdict, tuple(violations)
