"""Views made beside those that they replace, and swapped by one commit.

    supposed     the old ones dropped, the new ones created, each over what was just created
    one commit   everything at once

Until that commit readers see the old views, whatever process they are in; a failure on the way, or the end of the
process, leaves them, and they are maintained as before. State numbers go on: those of a group that others stay in by
one state in which nothing moves, those of a group in which everything is new from the last number on.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from viewkeeper.errors import UsageError
from viewkeeper.lake.commit import Commit
from viewkeeper.lake.log.catalog import Catalog, Definition
from viewkeeper.lake.log.halts import Halts
from viewkeeper.lake.supposed_writer import SupposedWriter
from viewkeeper.lake.tables.files import Files
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.summaries.dropping import dropping
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.naming import COMPOSED
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.planner.summaries.lattice import lattice_name
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import SOURCES
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.defined import defined

MADE = "made"
"""in the figures of a commit: the views that it made, in place of others or not"""


# --- before ---


def settle(keeper: Keeper, gone: Sequence[Definition]) -> None:
    """Bring up those that stay in the groups of views that go."""
    halts, names = Halts(keeper.files.store).all(), {view.name for view in gone}
    for source in {one for view in gone if view.name in halts for one in view.properties.get(SOURCES, ())}:
        # What it was halted by may be that the source has changed.
        keeper.sources.refresh(source)
    for view in gone:
        if SUMMARY in view.properties:
            _settle_lattice(keeper, view, names)
        elif view.name in halts:
            keeper.bring_others_up(view.name, view.group)


def _settle_lattice(keeper: Keeper, view: Definition, gone: set[str]) -> None:
    """Others of a lattice stay: what waits for them is no part of what is about to happen."""
    lattice = keeper.summaries.lattices().get(view.group)
    if lattice is not None and set(lattice.visible) - gone:
        keeper.summaries.refresh(lattice)


def refresh_joined(keeper: Keeper, new: Parsed) -> None:
    """What waits in a lattice that a summary is about to be in is applied first, as before any new one."""
    if isinstance(new, SummaryView | Family):
        one = new.members[0].view if isinstance(new, Family) else new
        fact = defined(one, recompute=dict(new.properties).get("minmax") == "recompute").star.fact
        refresh_deferred(keeper, lattice_name(fact.name, dict(new.properties)))


def refresh_deferred(keeper: Keeper, name: str | None = None) -> None:
    """Apply what waits in a lattice, or in all of them."""
    for lattice in [one for one in keeper.summaries.lattices().values() if name in (None, one.name)]:
        if lattice.deferred and not keeper.summaries.is_halted(lattice):
            keeper.summaries.refresh(lattice)


# --- beside the old one ---


@contextmanager
def swapping(
    keeper: Keeper, gone: Sequence[Definition], homes: Mapping[str, str | None] | None = None
) -> Iterator[Keeper]:
    """A keeper of the same warehouse without views that go, to create others in: all of it comes true when the block
    ends. A view has the group that it has in `homes`, if it can."""
    before = keeper.writer.catalog
    with _supposing(keeper, gone, homes or {}) as (world, writer):
        if gone:
            with world.new_commit() as commit:
                _drop(world, commit, gone)
                _go_on(commit, gone)
        yield world
        there = {view.folder for view in before.values()}
        made = [view for view in writer.catalog.values() if view.folder not in there and not view.hidden]
        writer.come_true_as({MADE: list(dict.fromkeys(view.family or view.name for view in made))})
    _forget(keeper, before)


@contextmanager
def _supposing(
    keeper: Keeper, gone: Sequence[Definition], homes: Mapping[str, str | None]
) -> Iterator[tuple[Keeper, SupposedWriter]]:
    """A keeper of the same warehouse whose commits come true together, if they do."""
    real, files = keeper.writer, keeper.files
    with real.committing() as number:
        last = max((real.last.groups[view.group].last for view in gone), default=-1)
        writer = SupposedWriter(real, number, last + 1)
        world = Keeper(
            Files(files.store, writer.log, writer.catalogs, writer.tables, files.spark),
            writer,
            lambda: Commit(writer, follow=world.summaries.follow),
            keeper.sources,
            keeper.engines,
        )
        world.loads = keeper.loads
        world.views = replace(world.views, homes=homes)
        try:
            yield world, writer
        finally:
            world.files.cached_reads.close()


def _drop(world: Keeper, commit: Commit, gone: Sequence[Definition]) -> None:
    """Everything that is stored for the old views."""
    names = {view.name for view in gone}
    for group in dict.fromkeys(view.group for view in gone if SUMMARY in view.properties):
        lattice = world.summaries.lattices().get(group)
        if lattice is None:
            raise UsageError(
                f"the summaries of {group} no longer fit their sources, so what is stored for them is not known",
                "drop them, and create them again",
            )
        dropping(lattice, [name for name in lattice.visible if name in names]).drop(world.summaries, commit)
    for view in gone:
        if SELF_MAINTAINED in view.properties:
            for table in view.properties[SELF_MAINTAINED]["tables"]:
                commit.drop(table)
        elif COMPOSED in view.properties:
            for table in view.properties[COMPOSED]["tables"]:
                commit.drop(table)
        elif SUMMARY not in view.properties:
            commit.drop(view.name)


def _go_on(commit: Commit, gone: Sequence[Definition]) -> None:
    """A number of its own for what is about to be new in a group that others stay in."""
    inhabited = {view.group for view in commit.catalog.values()}
    for group in dict.fromkeys(view.group for view in gone if view.group in inhabited):
        commit.state(group, {})


# --- afterwards ---


def _forget(keeper: Keeper, before: Catalog) -> None:
    """What was known of tables that are not there any more."""
    halts, after = Halts(keeper.files.store), keeper.writer.catalog
    for name, view in before.items():
        if name not in after or after[name].folder != view.folder:
            halts.remove(view.folder)
            keeper.self_maintained.forget(name)
            keeper.composed.forget(name)
