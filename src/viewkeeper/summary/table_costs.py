"""What maintenance costs in tuples read and written, after the statistics of tables (table 1 and appendix A).

    recomputation    rows of the smallest table above, or of the fact        +  rows of the table
    individual       changes of the fact                                     +  rows of its summary-delta
    reuse            rows of the smallest summary-delta above, or changes    +  rows of its summary-delta
    counting         changes  +  groups deleted  +  rows of the fact in those groups  +  groups inserted

Mumick, Quass and Mumick (1997). A row of a summary-delta is one group to update, insert or delete. Counting deletes
and inserts each of these groups, and recomputes them from the fact: with n rows of the fact in m groups that is n / m
rows for each, 10 for SID_sales and 100,000 for sR_sales. The model counts no accesses to dimensions, and nothing for
what is kept in memory between reading and writing. Neither does it count what MIN and MAX may have to look up.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.errors import UsageError
from viewkeeper.summary.cube_lattice import Lattice


@dataclass(frozen=True)
class TableSize:
    """Rows of a summary table, and of the summary-delta that the changes make."""

    rows: int
    delta: int


@dataclass(frozen=True)
class Accesses:
    """Tuples read and written to bring a table up to date, in four ways."""

    recomputation: int
    individual: int
    reuse: int
    counting: int

    def __add__(self, other: "Accesses") -> "Accesses":
        return Accesses(
            self.recomputation + other.recomputation,
            self.individual + other.individual,
            self.reuse + other.reuse,
            self.counting + other.counting,
        )


def tuple_accesses(
    lattice: Lattice[str], sizes: Mapping[str, TableSize], *, fact: int, changes: int
) -> dict[str, Accesses]:
    """The costs of each table of a lattice over a fact of so many rows, with so many changes."""
    if missing := [name for name in lattice.nodes if name not in sizes]:
        raise UsageError(f"the sizes of {', '.join(missing)} are not given", "give every table of the lattice a size")
    costs = {}
    for name in lattice.nodes:
        size = sizes[name]
        above = [sizes[ancestor] for ancestor in lattice.ancestors(name)]
        costs[name] = Accesses(
            recomputation=min([fact, *(one.rows for one in above)]) + size.rows,
            individual=changes + size.delta,
            reuse=min([changes, *(one.delta for one in above)]) + size.delta,
            counting=changes + size.delta + _rows_in(size.delta, size.rows, fact) + size.delta,
        )
    return costs


def total(costs: Mapping[str, Accesses]) -> Accesses:
    """The costs of all tables together."""
    return sum(costs.values(), Accesses(0, 0, 0, 0))


def _rows_in(groups: int, rows: int, fact: int) -> int:
    """Rows of the fact in some of the groups, which are taken to be of one size, rounded up."""
    return -(-groups * fact // rows) if rows else 0
