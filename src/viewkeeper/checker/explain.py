"""Violations in words and as data."""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.algebra.zset import Row
from viewkeeper.checker.case import Case
from viewkeeper.checker.judgement import Reason, Violation
from viewkeeper.checker.schedule import Cut
from viewkeeper.checker.units import Unit
from viewkeeper.checker.values import encode_row
from viewkeeper.levels import Level
from viewkeeper.messages import Position, Transaction

_FEW = 3


# --- the content is wrong ---


def not_converged(case: Case) -> Violation:
    """The last state is not the view over the final source state."""
    state, final = len(case.shown) - 1, case.schedule.settled
    message = f"the last state ({state}) {_contrast(case, state, final, 'the final source state')}"
    return _content(case, Level.CONVERGENT, state, Reason.NOT_CONVERGED, message, final)


def wrong_claim(case: Case, state: int, cut: Cut) -> Violation:
    """The view over the claimed cut is another."""
    message = f"state {state} claims {at(case, cut)}, but {_contrast(case, state, cut, 'that source state')}"
    return _content(case, Level.WEAK, state, Reason.WRONG_CLAIM, message, cut)


def no_source_state(case: Case, level: Level, state: int) -> Violation:
    """No cut at all gives what the state shows."""
    rows, nearest = case.history.states[state].rows, _nearest(case, state)
    if rows.size() <= _FEW:
        message = f"state {state} shows {_listed(rows.weights())}, which no combination of source states gives"
    else:
        difference = _difference_in_words(case, state, nearest)
        message = f"no combination of source states gives state {state}: next to {at(case, nearest)} {difference}"
    return _content(case, level, state, Reason.NO_SOURCE_STATE, message, nearest)


def unknown_position(case: Case, state: int, source: str, position: Position) -> Violation:
    """A claimed position that the source never delivered."""
    message = f"state {state} claims {source} at {short(position)}, where {source} has no transaction"
    return Violation(Level.WEAK, state, Reason.UNKNOWN_POSITION, message)


# --- the place is wrong ---


def not_closed(case: Case, state: int, cut: Cut, *, claimed: bool) -> Violation:
    """The cut splits a unit, or holds one of which a part never arrived."""
    says = f"state {state} claims {at(case, cut)}" if claimed else f"state {state} only fits {at(case, cut)}"
    unit = case.schedule.split_by(cut)
    if unit is not None:
        reason, message = Reason.SPLIT_GLOBAL_TRANSACTION, f"{says}: that splits {_named(unit)}"
    else:
        unit = case.schedule.pending_in(cut)
        assert unit is not None, "a cut that is not closed splits a unit or holds an incomplete one"
        absent = " and ".join(unit.absent)
        reason = Reason.INCOMPLETE_GLOBAL_TRANSACTION
        message = f"{says}: that shows {_named(unit)}, whose part from {absent} never arrived"
    return _place(case, Level.STRONG, state, reason, message, cut, unit.members)


def out_of_order(case: Case, state: int, cut: Cut, previous: Cut, *, claimed: bool) -> Violation:
    """The cut lacks what the state before already has."""
    verb = "claims" if claimed else "shows"
    message = f"state {state} {verb} {at(case, cut)}, and state {state - 1} before it already {at(case, previous)}"
    gone = [member for unit in case.schedule.between(cut, previous) for member in unit.members]
    return _place(case, Level.STRONG, state, Reason.ORDER, message, cut, gone)


def passed_over(case: Case, cuts: Sequence[Cut]) -> Violation:
    """The first source state that the chain of cuts, one for each state, leaves without a state."""
    schedule, last = case.schedule, len(cuts) - 1
    if cuts[0] != schedule.nothing:
        return _skipped(0, "the initial source state", "state 0 shows a later one", ())
    for state, (cut, following) in enumerate(pairwise((*cuts, schedule.settled)), 1):
        added = schedule.between(cut, following)
        if len(added) > 1 or (added and state > last):
            break
    else:
        raise AssertionError("the chain passes nothing over")
    if state > last:
        where = f"the states end before it, with state {last}"
    else:
        where = f"state {state - 1} comes before it and state {state} shows more"
    what = f"the source state after {_numbered(case, added[0])}"
    return _skipped(min(state, last), what, where, added[0].members)


def _skipped(state: int, what: str, where: str, transactions: tuple[Transaction, ...]) -> Violation:
    message = f"{what} has no state of its own: {where}"
    return Violation(Level.COMPLETE, state, Reason.SKIPPED_SOURCE_STATE, message, transactions=transactions)


# --- words ---


def at(case: Case, cut: Cut) -> str:
    """A cut in words: 'x at 2 and y at 1'."""
    return _and([f"{source} at {short(position)}" for source, position in case.schedule.vector_of(cut).items()])


def short(position: Position) -> str:
    """A position without the zeros that only make it sort."""
    return (position.lstrip("0") or "0") if position.isdigit() else position


def _named(unit: Unit) -> str:
    """A unit of which at least a part is global."""
    ids = list(dict.fromkeys(id for member in unit.members for id in member.global_ids))
    if unit.merged and len(ids) > 1:
        why = "were captured together" if unit.captured_together else "cross"
        return f"the global transactions {_and(ids)}, which {why}"
    return f"global transaction {ids[0]}"


def _numbered(case: Case, unit: Unit) -> str:
    last = {member.source: member.position for member in unit.members}
    places = _and([f"{source} at {short(position)}" for source, position in last.items()])
    if len(unit.members) > 1 or unit.members[0].parts:
        return f"{_named(unit)} ({places})"
    number = case.history.deliveries.index(unit.members[0]) + 1
    return f"transaction {number} ({places})"


def _contrast(case: Case, state: int, cut: Cut, name: str) -> str:
    shown, given = case.history.states[state].rows, case.source_states.rows(cut)
    if max(shown.size(), given.size()) <= _FEW:
        return f"shows {_listed(shown.weights())}, and {name} gives {_listed(given.weights())}"
    return f"differs from {name}: {_difference_in_words(case, state, cut)}"


def _difference_in_words(case: Case, state: int, cut: Cut) -> str:
    missing, extra = _difference(case, state, cut)
    parts = [f"it lacks {_listed(missing)}"] if missing else []
    parts += [f"has {_listed(extra)} too much" if missing else f"it has {_listed(extra)} too much"] if extra else []
    return " and ".join(parts)


def _listed(weights: Iterable[tuple[Row, int]]) -> str:
    rows = list(weights)
    shown = [
        ("" if count == 1 else f"{count} × ") + json.dumps(encode_row(row), ensure_ascii=False)
        for row, count in rows[:_FEW]
    ]
    return _and(shown + ([f"{len(rows) - _FEW} more"] if len(rows) > _FEW else [])) or "no row"


def _and(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# --- data ---


def _content(case: Case, level: Level, state: int, reason: Reason, message: str, cut: Cut) -> Violation:
    missing, extra = _difference(case, state, cut)
    return Violation(level, state, reason, message, case.schedule.vector_of(cut), tuple(missing), tuple(extra))


def _place(
    case: Case, level: Level, state: int, reason: Reason, message: str, cut: Cut, transactions: Iterable[Transaction]
) -> Violation:
    vector = case.schedule.vector_of(cut)
    return Violation(level, state, reason, message, vector, transactions=tuple(transactions))


def _difference(case: Case, state: int, cut: Cut) -> tuple[list[tuple[Row, int]], list[tuple[Row, int]]]:
    """What the state lacks of V(cut), and what it has beyond it."""
    shown = MemoryZSet(case.source_states.initial.columns, case.history.states[state].rows.weights())
    difference = list((case.source_states.rows(cut) - shown).weights())
    return [(row, n) for row, n in difference if n > 0], [(row, -n) for row, n in difference if n < 0]


def _nearest(case: Case, state: int) -> Cut:
    """The cut along the serial order that differs from the state in the fewest rows; its claim, if that is one."""
    schedule = case.schedule
    shown = case.history.states[state]
    if shown.vector is not None and schedule.unknown_in(shown.vector) is None:
        return schedule.cut_of(shown.vector)
    differing = dict(case.source_states.initial.weights())
    for row, count in shown.rows.weights():
        differing[row] = differing.get(row, 0) - count
    size = sum(map(abs, differing.values()))
    best, nearest = size, schedule.nothing
    for cut, change in case.source_states.along_serial_order(schedule.everything):
        for row, count in change:
            before = differing.get(row, 0)
            differing[row] = before + count
            size += abs(before + count) - abs(before)
        if size < best:
            best, nearest = size, cut
    return nearest
