"""Tables 1 and 2 of the view refreshment paper, and how far the order of what was measured is theirs."""

from collections.abc import Mapping
from itertools import combinations

from wisconsin_data import KINDS

MATVIEW, OUTERJOIN, VIEWCACHE = "matview", "outerjoin", "viewcache"
PARTIAL_JOIN, PARTIAL_OPERAND = "partial-join", "partial-operand"
STORAGES = (MATVIEW, OUTERJOIN, VIEWCACHE, PARTIAL_JOIN, PARTIAL_OPERAND)
REMOTE = "remote"
"""An ordinary view, for which the sources are queried: not in the paper."""

Column = Mapping[str, float]


def _columns(rows: Mapping[str, tuple[float, float, float]]) -> dict[str, dict[str, float]]:
    return {kind: {storage: row[place] for storage, row in rows.items()} for place, kind in enumerate(KINDS)}


TABLE_1 = _columns(
    {
        MATVIEW: (1.22, 1.64, 3.24),
        OUTERJOIN: (1.20, 1.58, 3.18),
        VIEWCACHE: (1.02, 1.03, 1.06),
        PARTIAL_JOIN: (1.04, 1.06, 1.11),
        PARTIAL_OPERAND: (1.07, 1.04, 1.12),
    }
)
"""Storage: what is stored for the view, over the size of its relations."""

TABLE_2 = _columns(
    {
        MATVIEW: (7436, 13360, 45492),
        OUTERJOIN: (6457, 12473, 44491),
        VIEWCACHE: (2739, 4704, 4815),
        PARTIAL_JOIN: (671, 1307, 1714),
        PARTIAL_OPERAND: (582, 893, 1093),
    }
)
"""Pages read and written by a refresh after 10 % insertions."""


def side_by_side(paper: Column, measured: Column) -> dict[str, object]:
    """A column of the paper beside what was measured, and where their orders agree."""
    paper = {storage: figure for storage, figure in paper.items() if storage in measured}
    pairs = list(combinations(paper, 2))
    other = [f"{one}, {two}" for one, two in pairs if (paper[one] < paper[two]) != (measured[one] < measured[two])]
    return {
        "paper": dict(paper),
        "measured": {storage: measured[storage] for storage in paper},
        "paper's order": ranked(paper),
        "measured order": ranked({storage: measured[storage] for storage in paper}),
        "pairs in the paper's order": f"{len(pairs) - len(other)} of {len(pairs)}",
        "pairs in the other order": other,
    }


def ranked(column: Column) -> list[str]:
    """The storages, the smallest first."""
    return sorted(column, key=column.__getitem__)
