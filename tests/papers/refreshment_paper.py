"""The worked example of the view refreshment paper: its relations, its five storages, and what they hold.

    V = R ⋈ S on R.a = S.a        shown: R.a, R.b, R.c, S.a, S.b, S.c        tid: the paper's tuple identifiers, a key

What is stored at a moment follows from what its tuples are, who joins whom, and who joins nobody.
"""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.storage.self_maintained import operand_changes, refresh, storage_of
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import HeldTables

Row = tuple[Any, ...]
Rows = dict[str, Row]
"""whole rows without their tid, by it"""

COLUMNS = ("tid", "a", "b", "c")
RELATIONS = {
    name: Relation(name, name.split(".")[0], COLUMNS, ("STRING", "INT", "INT", "INT"), ("tid",))
    for name in ("one.r", "two.s")
}
SELECT = """SELECT r.a AS ra, r.b AS rb, r.c AS rc, s.a AS sa, s.b AS sb, s.c AS sc
    FROM one.r JOIN two.s ON r.a = s.a"""

R, S = tuple(f"r.{column}" for column in COLUMNS), tuple(f"s.{column}" for column in COLUMNS)
STRUCTURES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "matview": {"joined 1": R + S, "left 1": R, "right 1": S},
    "outerjoin": {"outer 1": R + S},
    "viewcache": {"pairs 1": ("r.tid", "s.tid"), "copy 0": R, "copy 1": S},
    "partial-join": {
        "joined 1": ("r.tid", "s.tid", "r.a"),
        "left 1": ("r.tid", "r.a"),
        "right 1": ("s.tid", "s.a"),
        "copy 0": R,
        "copy 1": S,
    },
    "partial-operand": {
        "pairs 1": ("r.tid", "s.tid"),
        "operand 0": ("r.tid", "r.a"),
        "operand 1": ("s.tid", "s.a"),
        "copy 0": R,
        "copy 1": S,
    },
}
"""The tables of each storage, with their columns as the figures have them."""


@dataclass(frozen=True)
class Moment:
    """What there is after a batch of changes: at the sources, in the join, and outside it."""

    what: str
    r: Rows
    s: Rows
    pairs: tuple[tuple[str, str], ...]
    r0: tuple[str, ...]
    s0: tuple[str, ...]

    @classmethod
    def of(cls, what: str, r: Rows, s: Rows) -> "Moment":
        """A moment that was not written out by hand, by the definitions of V, R0 and S0."""
        pairs = tuple((left, right) for left in r for right in s if r[left][0] == s[right][0])
        met_r, met_s = {left for left, _ in pairs}, {right for _, right in pairs}
        alone = tuple(tid for tid in r if tid not in met_r), tuple(tid for tid in s if tid not in met_s)
        return cls(what, r, s, pairs, *alone)

    def shown(self) -> Counter[Row]:
        """V, as its readers see it."""
        return Counter((*self.r[left], *self.s[right]) for left, right in self.pairs)

    def stored(self, storage: str) -> dict[str, Counter[Row]]:
        """All tables of a storage."""
        whole = {table: Counter(rows) for table, rows in self._tables(storage).items()}
        return {table: whole[table] for table in STRUCTURES[storage]}

    def _tables(self, storage: str) -> dict[str, list[Row]]:
        in_r = {tid: (tid, *row) for tid, row in self.r.items()}
        in_s = {tid: (tid, *row) for tid, row in self.s.items()}
        joined = [in_r[left] + in_s[right] for left, right in self.pairs]
        left_alone, right_alone = [in_r[tid] for tid in self.r0], [in_s[tid] for tid in self.s0]
        absent = (None,) * len(COLUMNS)
        dense = storage == "partial-join"
        return {
            "joined 1": [(left, right, self.r[left][0]) for left, right in self.pairs] if dense else joined,
            "left 1": [row[:2] for row in left_alone] if dense else left_alone,
            "right 1": [row[:2] for row in right_alone] if dense else right_alone,
            "outer 1": [*joined, *(row + absent for row in left_alone), *(absent + row for row in right_alone)],
            "pairs 1": list(self.pairs),
            "operand 0": [row[:2] for row in in_r.values()],
            "operand 1": [row[:2] for row in in_s.values()],
            "copy 0": list(in_r.values()),
            "copy 1": list(in_s.values()),
        }


@dataclass
class Example:
    """The view in one storage, in memory, taken from moment to moment."""

    name: str
    storage: Storage = field(init=False)
    tables: HeldTables[MemoryZSet] = field(init=False)
    view: Counter[Row] = field(default_factory=Counter)
    changed: dict[str, MemoryZSet] = field(default_factory=dict)
    """what the last refresh changed, by structure"""
    at: Moment = Moment("nothing yet", {}, {}, (), (), ())

    def __post_init__(self) -> None:
        self.storage = storage_of(parse_view(SELECT, RELATIONS, name="V"), self.name)
        self.tables = HeldTables({one.name: MemoryZSet(one.columns) for one in self.storage.structures})

    def go_to(self, moment: Moment) -> "Example":
        """Refresh by the difference of the relations, and by nothing else."""
        given = {
            0: MemoryZSet(R, _difference(self.at.r, moment.r)),
            1: MemoryZSet(S, _difference(self.at.s, moment.s)),
        }
        leaves = operand_changes(self.storage, self.tables, given, itertools.count())
        self.changed, of_view = refresh(self.storage, self.tables, leaves, view=True)
        assert of_view is not None
        self.tables.apply(self.changed)
        self.view.update(dict(of_view.weights()))
        self.view = Counter({row: weight for row, weight in self.view.items() if weight})
        self.at = moment
        return self

    def stored(self) -> dict[str, Counter[Row]]:
        """All tables, with the columns in the order of the figures."""
        assert {name: sorted(rows.columns) for name, rows in self.tables.held.items()} == {
            name: sorted(columns) for name, columns in STRUCTURES[self.name].items()
        }
        return {
            name: Counter(dict(self.tables.held[name].keep(columns).weights()))
            for name, columns in STRUCTURES[self.name].items()
        }


def _difference(before: Rows, after: Rows) -> list[tuple[Row, int]]:
    come = [((tid, *row), 1) for tid, row in after.items() if before.get(tid) != row]
    return come + [((tid, *row), -1) for tid, row in before.items() if after.get(tid) != row]
