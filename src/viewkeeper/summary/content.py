"""The rows of a stored summary table, as the refresh looks them up.

    matching(columns, values) = content ⋉ values        over `columns`, where NULL = NULL and NaN = NaN

A group key may be NULL like any other value, so the semijoin is null-safe.
"""

from typing import Protocol

import pyarrow as pa


class Content(Protocol):
    """The rows of one summary table before the refresh."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def matching(self, columns: tuple[str, ...], values: pa.Table) -> pa.Table:
        """All rows whose `columns` equal some row of `values`, which has these columns and no row twice.

        With no columns at all, that is every row if there is a value. The answer has the columns of the content, also
        when it has no rows.
        """
