"""How the loads of views go, told while the rows come.

reading      rows of a relation so far, and how many the source thinks it has
computing    the relations are read: the view is computed from them, and written
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewkeeper.errors import SourceError

if TYPE_CHECKING:
    from viewkeeper.sources.base import Source
    from viewkeeper.sql.relation import Relation


@dataclass(frozen=True)
class LoadProgress:
    """A load at one moment."""

    relation: str | None
    """what is being read; None: everything is, and the view is computed"""
    rows: int
    """of it that have come; of all relations, once everything is read"""
    total: int | None = None
    """how many it has, as far as its source can say without counting"""


WatchLoad = Callable[[LoadProgress], None]


class Loads:
    """Tells whoever watches. No source is queried for an estimate while nobody does."""

    def __init__(self) -> None:
        self.watch: WatchLoad | None = None
        self._rows = 0

    def begin(self) -> None:
        """A load begins."""
        self._rows = 0

    def reading(self, source: "Source", relation: "Relation") -> Callable[[int], None]:
        """A function to be called with the number of rows that have come; a second reading begins at 0 again."""
        watch = self.watch
        if watch is None:
            return lambda more: None
        total = _estimate(source, relation.name)
        rows = 0
        watch(LoadProgress(relation.name, 0, total))

        def come(more: int) -> None:
            nonlocal rows
            rows += more
            self._rows += more
            watch(LoadProgress(relation.name, rows, total))

        return come

    def computing(self) -> None:
        """Everything is read."""
        if self.watch is not None:
            self.watch(LoadProgress(None, self._rows))


def _estimate(source: "Source", relation: str) -> int | None:
    try:
        return source.estimated_rows(relation)
    except SourceError:
        # It is there to be shown; the reading itself says what is wrong.
        return None
