"""What maintaining a warehouse works with: its files and writer, its sources, the views that are there.

Summaries, self-maintained views and joins all get it, and know nothing of each other.
"""

from collections.abc import Callable, Mapping
from typing import Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Definition, find
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.tables.files import Files
from viewkeeper.lake.writer import Writer
from viewkeeper.maintenance.contents import Contents
from viewkeeper.maintenance.incomplete import IncompleteTransactions
from viewkeeper.maintenance.load_progress import Loads
from viewkeeper.maintenance.stored_rows import stored_rows
from viewkeeper.planner.kept_views import Kept, KeptViews
from viewkeeper.planner.known_sources import KnownSources
from viewkeeper.sql.relation import Relation


class Context:
    """One warehouse that is open to be maintained. `halt_unfit` is called for a view that its sources no longer
    allow."""

    def __init__(
        self,
        files: Files,
        writer: Writer,
        commit: Callable[[], Commit],
        sources: KnownSources,
        engines: Engines,
        halt_unfit: Callable[[Definition, str], None],
    ) -> None:
        self.files = files
        self.writer = writer
        self.new_commit = commit
        self.sources = sources
        self.engines = engines
        self.contents = Contents(files)
        self.loads = Loads()
        self.halts = Halts(files.store)
        self.incomplete = IncompleteTransactions(files.store)
        self.views = KeptViews(lambda: writer.catalog, sources, halt_unfit)
        self.sampler: Callable[[Mapping[str, Any]], None] | None = None
        """gets the first relations that are read, before anything is computed from them"""

    def kept(self) -> dict[str, Kept]:
        """Every view that was created over sources or other views, each after those that it reads. One that its
        sources no longer allow is halted, and left out."""
        return self.views.all()

    def relations(self) -> dict[str, Relation]:
        """What a view can be over: the relations of the sources, and the views that are stored."""
        return self.views.relations()

    def stored(self, name: str) -> Any:
        """A view as it is stored at the last commit, hidden columns included."""
        return stored_rows(self.files, self.engines, name)

    def group_of(self, view: str) -> str:
        """The group of a view."""
        return find(self.writer.catalog, view).group

    def groups(self) -> frozenset[str]:
        return frozenset(self.writer.last.groups)
