"""What the algorithms that rest on keys share: source_evaluate, key_delete and the action list.

The view is stored with the key of every operand (`View.with_keys`), so each of its rows has exactly one derivation
and the view is a set. A deletion then needs no query: the rows that carry its key go.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.zset import On, Row
from viewkeeper.algorithms.effects import Process
from viewkeeper.algorithms.update_queue import MakeZSet
from viewkeeper.messages import Change, HopQuery
from viewkeeper.sql.view import Operand, View, hidden_key

Bound = Mapping[int, Any]
"""operand index -> the rows that stand in for its relation: V⟨U⟩ binds the operand that U changes"""


def source_evaluate(plan: JoinPlan, bound: Bound) -> Process:
    """The answer to V⟨bound⟩, gathered source by source, and the delivery number of the last answer.

    Operands that are bound are joined here. When nothing is left to join with, no further source is asked; if none was
    asked at all the number is None.
    """
    first = min(bound)
    delta = plan.start(first, bound[first])
    seq: int | None = None
    for hop in plan.path(frozenset({first}), prefer=frozenset(bound)):
        if hop.operand.index in bound:
            delta = hop.join(delta, bound[hop.operand.index])
        elif delta.is_empty():
            delta = delta.like(hop.keep, ())
        else:
            answer = yield HopQuery(hop, delta)
            delta, seq = answer.rows, answer.seq
    return plan.finish(delta), seq


@dataclass(frozen=True)
class KeyDelete:
    """key_delete(MV, U): remove what carries the key of one of these rows, at any occurrence of their relation."""

    relation: str
    rows: Any


@dataclass(frozen=True)
class Insert:
    """insert(MV, A): add these rows of the stored view, without duplicates."""

    rows: Any


Action = KeyDelete | Insert


def apply_actions(actions: Iterable[Action], view: View, mv: Any) -> Any:
    """The change of MV by an action list AL. Only the rows that some action can touch are looked at."""
    actions = list(actions)
    before = mv.like(mv.columns, ())
    for action in actions:
        if isinstance(action, Insert):
            before += mv.matching(action.rows, _whole_key(view))
        else:
            for operand in view.operands_of(action.relation):
                before += mv.matching(action.rows, _stored_key(operand))
    before = before.distinct()
    after = before
    for action in actions:
        if isinstance(action, Insert):
            after = (after + action.rows).distinct()
        else:
            after = key_delete(after, view, action)
    return after - before


def key_delete(rows: Any, view: View, action: KeyDelete) -> Any:
    """Rows of the stored view without those that carry a deleted key."""
    for operand in view.operands_of(action.relation):
        rows = rows.key_delete(action.rows, _stored_key(operand))
    return rows


def _stored_key(operand: Operand) -> On:
    return tuple(zip(hidden_key(operand), operand.relation.key or (), strict=True))


def _whole_key(view: View) -> On:
    return tuple((column, column) for operand in view.operands for column in hidden_key(operand))


@dataclass(frozen=True)
class Actions:
    """Tuple actions to be treated at once: the deletions and the insertions, per relation."""

    deletes: Mapping[str, Any]
    inserts: Mapping[str, Any]

    def key_deletes(self) -> list[KeyDelete]:
        return [KeyDelete(relation, rows) for relation, rows in self.deletes.items()]

    def bindings(self, view: View) -> list[Bound]:
        """The operands to bind to the insertions, one query each: Q = ∪ V⟨U_j⟩."""
        return [
            {operand.index: rows} for relation, rows in self.inserts.items() for operand in view.operands_of(relation)
        ]


def split_actions(changes: Iterable[Change], view: View, make_zset: MakeZSet) -> Actions:
    """Net changes as deletions and insertions.

    That they are net is T-Strobe's removal of what a transaction inserted and deleted again: such an insertion would be
    queried for, and nothing would take its rows away any more.
    """
    groups: dict[bool, dict[str, list[Row]]] = {True: {}, False: {}}
    for change in changes:
        groups[change.count > 0].setdefault(change.relation, []).append(change.row)

    def zsets(rows_of: dict[str, list[Row]]) -> dict[str, Any]:
        return {
            name: make_zset(view.relations[name].columns, ((row, 1) for row in rows)) for name, rows in rows_of.items()
        }

    return Actions(zsets(groups[False]), zsets(groups[True]))


def single_actions(changes: list[Change], *, apart: bool) -> Iterator[tuple[int, list[Change]]]:
    """The changes of an update as an algorithm without transactions sees them, each piece with the place of its last.

    Where updates are single there is one piece: a modification is a deletion and an insertion of one moment. Where
    transactions are taken `apart`, every action is a piece.
    """
    if not apart or not changes:
        yield len(changes) - 1, changes
    else:
        yield from ((place, [change]) for place, change in enumerate(changes))
