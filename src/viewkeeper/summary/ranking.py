"""Values by rank: a minimum and a maximum are both the least rank, whatever the type.

    rank(a) < rank(b)      a is less than b for MIN, greater for MAX

The order is Spark's: NaN is greater than any number, strings compare by their UTF-8 bytes, false < true. NULL has
no rank.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.summary.grouping import MINUS_ONE, ONE, by_group, canonical_floats, surely


class Ranking:
    """The ranks of all values in some columns, which become of the type of the first."""

    def __init__(self, function: Literal["min", "max"], *columns: pa.Array) -> None:
        type = columns[0].type
        values = pa.concat_arrays([canonical_floats(column.cast(type)) for column in columns]).drop_null().unique()
        self._ascending = values.take(pc.sort_indices(values))
        self._sign = ONE if function == "min" else MINUS_ONE

    def ranks(self, column: pa.Array) -> pa.Array:
        known = canonical_floats(column.cast(self._ascending.type))
        return pc.multiply(pc.index_in(known, value_set=self._ascending).cast(pa.int64()), self._sign)

    def values(self, ranks: pa.Array) -> pa.Array:
        return self._ascending.take(pc.multiply(ranks, self._sign))


@dataclass(frozen=True)
class Ends:
    """Of each group, the ranks of its old extreme, and of the best value that it gained and that it lost."""

    ranking: Ranking
    old: pa.Array
    gained: pa.Array
    lost: pa.Array

    @classmethod
    def of(
        cls, function: Literal["min", "max"], old: pa.Array, numbers: pa.Array, gained: pa.Array, lost: pa.Array
    ) -> "Ends":
        """Old extremes, one per group, and values that were gained and lost, after the numbers of their groups."""
        ranking = Ranking(function, old, gained, lost)
        ranks = {"gained": ranking.ranks(gained), "lost": ranking.ranks(lost)}
        ends = by_group(numbers, len(old), ranks, "min")
        return cls(ranking, ranking.ranks(old), ends["gained"], ends["lost"])

    @property
    def candidates(self) -> pa.Array:
        """The best of what was there and what was gained: the new extreme, if none was lost."""
        return self.ranking.values(pc.min_element_wise(self.old, self.gained))

    @cached_property
    def hit(self) -> pa.Array:
        """Whether the old extreme may be what was lost."""
        return surely(pc.equal(self.lost, pc.min_element_wise(self.old, self.lost)))

    @cached_property
    def beyond(self) -> pa.Array:
        """Whether something was lost that cannot have been there: it is better than the old extreme."""
        return pc.and_(self.hit, pc.invert(surely(pc.equal(self.lost, self.old))))

    @cached_property
    def undercut(self) -> pa.Array:
        """Whether something was gained that is better than all that was lost, and so is there for sure."""
        return surely(pc.less(self.gained, self.lost))

    @cached_property
    def renewed(self) -> pa.Array:
        """Whether something was gained that is as good as the old extreme."""
        return surely(pc.less_equal(self.gained, self.old))
