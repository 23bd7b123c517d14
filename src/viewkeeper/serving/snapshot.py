"""What a user reads from: the views as one commit has them, in Spark, in Arrow, by SQL."""

from typing import TYPE_CHECKING

from viewkeeper.lake.tables.held_commit import HeldCommit
from viewkeeper.lake.views.stored_views import arrow_view, changes_of, stored_view

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from viewkeeper.lake.views.shown_views import StoredView


class Snapshot(HeldCommit):
    """The views as one commit has them; a context manager that keeps their files from being deleted."""

    def read(self, view: str, state: int | None = None, *, weights: bool = False) -> "DataFrame":
        """The rows of a view at a state (by default its last): a bag, or each distinct row with its count in
        `_vk_weight`."""
        stored = self.stored(view, state)
        return stored.weights() if weights else stored.bag()

    def arrow(self, view: str, state: int | None = None) -> "pa.Table":
        """The rows of a view in Arrow; Spark is not used, unless the view shows what Spark alone evaluates."""
        return arrow_view(self, view, state)

    def stored(self, view: str, state: int | None = None) -> "StoredView":
        """The same in any of its forms."""
        return stored_view(self, view, state)

    def changes(self, view: str, since: int, until: int | None = None) -> "DataFrame":
        """The signed rows of the states after `since`, up to `until` (by default the last)."""
        return changes_of(self, view, since, until)

    def sql(self, query: str) -> "DataFrame":
        """The answer of a Spark SQL query over the views, by their names."""
        from viewkeeper.serving.queries import run_query

        return run_query(self, query)
