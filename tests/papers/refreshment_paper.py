"""The worked example of the view refreshment paper: its relations, its five storages, and its history carried on.

    V = R ⋈ S on R.a = S.a        shown: R.a, R.b, R.c, S.a, S.b, S.c        tid: the paper's tuple identifiers, a key

The first two moments are the paper's, 11.15.95 and 11.17.95. Those after them delete and update, which the paper does
for two of its five storages only. What is stored at each moment is written out by hand: who joins whom, and who joins
nobody.
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


R_15: Rows = {"r1": (1, 10, 100), "r2": (2, 11, 101), "r3": (3, 12, 102), "r4": (4, 13, 103)}
S_15: Rows = {"s1": (1, 20, 200), "s2": (2, 21, 201), "s3": (5, 22, 202), "s4": (6, 23, 203)}
R_I: Rows = {"r5": (5, 14, 104), "r6": (7, 15, 105)}
S_I: Rows = {"s5": (3, 24, 204), "s6": (8, 25, 205)}

HISTORY = (
    Moment("11.15.95", R_15, S_15, (("r1", "s1"), ("r2", "s2")), ("r3", "r4"), ("s3", "s4")),
    Moment(
        "11.17.95: R_I and S_I",
        R_15 | R_I,
        S_15 | S_I,
        (("r1", "s1"), ("r2", "s2"), ("r3", "s5"), ("r5", "s3")),
        ("r4", "r6"),
        ("s4", "s6"),
    ),
    Moment(
        "r1 is deleted: its partner s1 goes to S0",
        {
            "r2": (2, 11, 101),
            "r3": (3, 12, 102),
            "r4": (4, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        S_15 | S_I,
        (("r2", "s2"), ("r3", "s5"), ("r5", "s3")),
        ("r4", "r6"),
        ("s1", "s4", "s6"),
    ),
    Moment(
        "s5 is deleted: r3 goes back to R0",
        {
            "r2": (2, 11, 101),
            "r3": (3, 12, 102),
            "r4": (4, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        {
            "s1": (1, 20, 200),
            "s2": (2, 21, 201),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r2", "s2"), ("r5", "s3")),
        ("r3", "r4", "r6"),
        ("s1", "s4", "s6"),
    ),
    Moment(
        "r4.a becomes 6: it leaves R0 and finds s4",
        {
            "r2": (2, 11, 101),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        {
            "s1": (1, 20, 200),
            "s2": (2, 21, 201),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r2", "s2"), ("r4", "s4"), ("r5", "s3")),
        ("r3", "r6"),
        ("s1", "s6"),
    ),
    Moment(
        "r2.c, which nothing compares, becomes 111",
        {
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
        },
        {
            "s1": (1, 20, 200),
            "s2": (2, 21, 201),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r2", "s2"), ("r4", "s4"), ("r5", "s3")),
        ("r3", "r6"),
        ("s1", "s6"),
    ),
    Moment(
        "one batch: r7 comes and finds s6, s2 goes, so r2 is alone and r8, which comes, has no partner either",
        {
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (5, 14, 104),
            "r6": (7, 15, 105),
            "r7": (8, 16, 106),
            "r8": (2, 17, 107),
        },
        {
            "s1": (1, 20, 200),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r4", "s4"), ("r5", "s3"), ("r7", "s6")),
        ("r2", "r3", "r6", "r8"),
        ("s1",),
    ),
    Moment(
        "r5 is deleted and its key used again in the same batch, with other values: it changes partners",
        {
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (1, 18, 108),
            "r6": (7, 15, 105),
            "r7": (8, 16, 106),
            "r8": (2, 17, 107),
        },
        {
            "s1": (1, 20, 200),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
        },
        (("r4", "s4"), ("r5", "s1"), ("r7", "s6")),
        ("r2", "r3", "r6", "r8"),
        ("s3",),
    ),
    Moment(
        "the key of r1 is used again long after it was deleted; r9 and s9 come together and find each other",
        {
            "r1": (5, 19, 109),
            "r2": (2, 11, 111),
            "r3": (3, 12, 102),
            "r4": (6, 13, 103),
            "r5": (1, 18, 108),
            "r6": (7, 15, 105),
            "r7": (8, 16, 106),
            "r8": (2, 17, 107),
            "r9": (9, 30, 300),
        },
        {
            "s1": (1, 20, 200),
            "s3": (5, 22, 202),
            "s4": (6, 23, 203),
            "s6": (8, 25, 205),
            "s9": (9, 31, 301),
        },
        (("r1", "s3"), ("r4", "s4"), ("r5", "s1"), ("r7", "s6"), ("r9", "s9")),
        ("r2", "r3", "r6", "r8"),
        (),
    ),
)
NOV_15, NOV_17 = HISTORY[:2]


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
