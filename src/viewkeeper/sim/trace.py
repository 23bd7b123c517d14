"""A run told event by event, as the worked examples of the papers do, with the queue and the view."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.joins import TAG
from viewkeeper.algorithms.update_queue import UpdateQueue
from viewkeeper.messages import (
    Change,
    Fetch,
    HopQuery,
    Position,
    Query,
    TermsQuery,
    Transaction,
    Vector,
    ViewDelta,
    position,
)
from viewkeeper.sources.local_queries import LocalizedQuery, LocalSweep, Reached
from viewkeeper.sql.view import Operand

if TYPE_CHECKING:
    from viewkeeper.sim.live_store import Crash, GroupState


GROUP = "group"
"""the place where a group of the live mediator works"""


class Observer:
    """Told of everything that happens; this one does nothing with it."""

    def committed(self, transaction: Transaction) -> None: ...

    def asked(self, ticket: int, query: Query) -> None: ...

    def answered(self, source: str, query: Query, rows: Any) -> None: ...

    def delivered(self, transaction: Transaction) -> None: ...

    def answer_delivered(self, ticket: int, query: Query, rows: Any) -> None: ...

    def installed(self, delta: ViewDelta, number: int, view: Any) -> None: ...

    def settled(self, queue: UpdateQueue) -> None: ...

    # With the live mediator:

    def captured(self, transaction: Transaction, commits: int) -> None: ...

    def read(self, source: str, fetches: Sequence[Fetch], rows: Sequence[Any]) -> None: ...

    def reply_delivered(self, source: str, position: Position) -> None: ...

    def new_state(self, number: int, state: "GroupState") -> None: ...

    def restarted(self, crash: "Crash", vector: Vector) -> None: ...


class Trace(Observer):
    """Writes numbered lines to `tell`. Transactions are called U1, U2, ... in the order in which they commit, unless
    `names` has a name for the (source, position)."""

    def __init__(self, tell: Callable[[str], None], names: Mapping[tuple[str, str], str] | None = None) -> None:
        self._tell = tell
        self._step = 0
        self._names: dict[tuple[str, str], str] = dict(names or {})
        self._queue = ""

    def committed(self, transaction: Transaction) -> None:
        name = self._names.setdefault((transaction.source, transaction.position), f"U{len(self._names) + 1}")
        part = f"  (part of {', '.join(transaction.global_ids)})" if transaction.parts else ""
        self._line(transaction.source, f"commits {name} = {describe_changes(transaction.changes)}{part}")

    def asked(self, ticket: int, query: Query) -> None:
        self._line("warehouse", f"asks {query.source}: Q{ticket} = {describe_query(query)}")

    def answered(self, source: str, query: Query, rows: Any) -> None:
        self._line(source, f"answers {describe_query(query)} = {describe_rows(rows)}")

    def delivered(self, transaction: Transaction) -> None:
        name = self._names.get((transaction.source, transaction.position), "?")
        self._line("warehouse", f"receives {name} from {transaction.source}: {describe_changes(transaction.changes)}")

    def answer_delivered(self, ticket: int, query: Query, rows: Any) -> None:
        self._line("warehouse", f"receives A{ticket} from {query.source} = {describe_rows(rows)}")

    def installed(self, delta: ViewDelta, number: int, view: Any) -> None:
        names = [self._names.get((t.source, t.position), "?") for t in delta.transactions]
        reflects = f" with {', '.join(names)}" if names else ""
        self._line("warehouse", f"installs state {number}{reflects}: V = {describe_rows(view)}")

    def settled(self, queue: UpdateQueue) -> None:
        waiting = [
            self._names.get((t.source, t.position), "?") for update in queue.waiting for t in update.transactions
        ]
        line = ", ".join(waiting) + (f" and {queue.held} held" if queue.held else "")
        if line != self._queue:
            self._queue = line
            self._tell(f"{'':16}queue: {line or 'empty'}")

    def captured(self, transaction: Transaction, commits: int) -> None:
        last = int(transaction.position)
        names = [
            self._names.get((transaction.source, position(number)), "?")
            for number in range(last - commits + 1, last + 1)
        ]
        together = " as one transaction" if commits > 1 else ""
        self._line(transaction.source, f"captures {', '.join(names)}{together}")

    def read(self, source: str, fetches: Sequence[Fetch], rows: Sequence[Any]) -> None:
        for fetch, zset in zip(fetches, rows, strict=True):
            tables = " ⋈ ".join(map(_short, fetch.operands))
            keys = "" if fetch.keys is None else f" with ({', '.join(fetch.matched)}) in {list(fetch.keys)}"
            self._line(source, f"reads {tables}{keys} = {describe_rows(zset)}")

    def reply_delivered(self, source: str, position: Position) -> None:
        name = self._names.get((source, position))
        self._line(GROUP, f"receives the answer of {source}{f', which shows {name}' if name else ''}")

    def new_state(self, number: int, state: "GroupState") -> None:
        shown = "   ".join(f"{view} = {describe_rows(rows)}" for view, rows in state.rows.items())
        at = ", ".join(f"{source} {int(place)}" for source, place in state.vector.items())
        self._line(GROUP, f"commits state {number} at ({at}): {shown}")

    def restarted(self, crash: "Crash", vector: Vector) -> None:
        at = ", ".join(f"{source} {int(place)}" for source, place in vector.items())
        self._line(GROUP, f"restarts ({crash.replace('-', ' ')}), from ({at})")

    def _line(self, place: str, text: str) -> None:
        self._step += 1
        self._tell(f"{self._step:3d}  {place:9}  {text}")


def describe_changes(changes: tuple[Change, ...]) -> str:
    """`insert(r2, [2, 3])`, in the Strobe paper's way."""
    if not changes:
        return "no change"
    words = []
    for change in changes:
        verb = "insert" if change.count > 0 else "delete"
        times = f" x{abs(change.count)}" if abs(change.count) > 1 else ""
        words.append(f"{verb}({change.relation.split('.')[-1]}, {describe_row(change.row)}){times}")
    return ", ".join(words)


def describe_query(query: Query) -> str:
    """`{[2, 3]} ⋈ r1`."""
    match query:
        case LocalizedQuery(query=maintenance):
            return describe_query(maintenance)
        case LocalSweep(query=first, links=links):
            operands = (first.hop.operand, *(link.hop.operand for link in links))
            return " ⋈ ".join([describe_rows(_untagged(first.delta)), *map(_short, operands)])
        case HopQuery(hop=hop, delta=delta):
            return f"{describe_rows(delta)} ⋈ {_short(hop.operand)}"
        case TermsQuery(plan=plan, terms=terms):
            signed = []
            for term in terms:
                names = [
                    describe_rows(term.bound[o.index]) if o.index in term.bound else _short(o) for o in plan.operands
                ]
                signed.append(f"{'+' if term.sign > 0 else '-'} {' ⋈ '.join(names)}")
            return " ".join(signed).removeprefix("+ ")
    return str(query)


def _short(operand: Operand) -> str:
    return operand.relation.name.split(".")[-1]


def describe_rows(rows: Any) -> str:
    """`{[1, 2], 2·[3, 4], -[5, 6]}`: counts other than 1 in front."""
    if isinstance(rows, Reached):
        rows = _untagged(rows.rows)
    shown = []
    for row, weight in sorted(rows.weights(), key=lambda entry: repr(entry[0])):
        count = {1: "", -1: "-"}.get(weight, f"{weight}·")
        shown.append(f"{count}{describe_row(row)}")
    return "{" + ", ".join(shown) + "}"


def _untagged(rows: Any) -> Any:
    """Without the ranks of updates by which the wrapper tells apart what it sweeps together."""
    return rows.keep(tuple(column for column in rows.columns if not column.startswith(TAG)))


def describe_row(row: tuple[Any, ...]) -> str:
    return "[" + ", ".join("NULL" if value is None else repr(value) for value in row) + "]"
