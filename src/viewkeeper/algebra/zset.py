"""The Z-set protocol: what an engine must offer, whatever it runs on.

    Z : row -> weight            an update is a Z-set: + insert, - delete, a modification is both
    (A + B)(t) = A(t) + B(t)     rows of weight 0 are not there
    (A ⋈ B)(t) = A(t₁) · B(t₂)   joins multiply weights, and distribute over +
    NULL never joins             an equality over a NULL is not true

Operations are pure: they return a new Z-set and leave their operands as they were.

Values are Python's: None is NULL, a TIMESTAMP is a datetime in UTC, a TIMESTAMP_NTZ one without a time zone, an ARRAY
a tuple. Rows are the same if their values are equal in SQL, where NaN is equal to NaN (`sql/one_nan.py`). Whoever reads
rows from a source gives moments in UTC: Python finds two times of one zone equal that differ only in summer time.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self

from viewkeeper.sql.expressions import Expression

Row = tuple[Any, ...]
On = tuple[tuple[str, str], ...]
WEIGHT = "_vk_weight"
"""the column of the weights, where an engine holds them beside the others"""


class ZSet(Protocol):
    """A bag of rows with signed counts."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def __add__(self, other: Self) -> Self: ...

    def __sub__(self, other: Self) -> Self: ...

    def __neg__(self) -> Self: ...

    def join(self, other: Self, on: On, where: tuple[Expression, ...], keep: tuple[str, ...]) -> Self:
        """σ where ( self ⋈ other ) projected on `keep`; `on` pairs a column of self with one of other."""
        ...

    def select(self, conditions: tuple[Expression, ...]) -> Self:
        """The rows for which every condition is true: neither false nor NULL."""
        ...

    def project(self, output: tuple[tuple[str, Expression], ...]) -> Self:
        """Named expressions over each row; rows that become equal add up."""
        ...

    def keep(self, columns: tuple[str, ...]) -> Self:
        """π columns, adding up the weights."""
        ...

    def rename(self, columns: tuple[str, ...]) -> Self:
        """The same rows under other column names."""
        ...

    def distinct(self) -> Self:
        """Each row of positive weight once."""
        ...

    def matching(self, keys: Self, on: On) -> Self:
        """The rows whose `on` columns occur in `keys`; NULL matches NULL, for this compares identities."""
        ...

    def key_delete(self, keys: Self, on: On) -> Self:
        """self - self.matching(keys): Strobe's key_delete."""
        ...

    def tag(self, name: str, value: int) -> Self:
        """The same rows with one more column in front, which has this value in all of them."""
        ...

    def split(self) -> dict[Any, Self]:
        """The rows by what they have in the first column, without it."""
        ...

    def values(self, columns: tuple[str, ...]) -> list[Row]:
        """The distinct values of some columns among the rows, on the driver."""
        ...

    def is_empty(self) -> bool: ...

    def weights(self) -> Iterator[tuple[Row, int]]:
        """Every row with its weight, on the driver."""
        ...

    def size(self) -> int:
        """The number of distinct rows: what a message that ships this Z-set would carry."""
        ...

    def like(self, columns: tuple[str, ...], weights: Iterable[tuple[Row, int]]) -> Self:
        """A Z-set of the same engine from rows on the driver."""
        ...
