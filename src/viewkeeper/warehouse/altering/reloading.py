"""A view made anew beside the old one, with those that read it, and swapped by one commit.

    before       groups that others stay in are brought up past a halt; summaries that wait are refreshed
    supposed     the old ones dropped; the new one created, then those that read it, each over what was just created
    one commit   everything at once

Until that commit readers see the old view, whatever process they are in; a failure on the way leaves it, and it is
maintained as before. State numbers go on: those of a group that others stay in by one state in which nothing moves,
those of a group in which everything is new from the last number on.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.defined import defined
from viewkeeper.warehouse.altering.canonical import Parsed
from viewkeeper.warehouse.altering.fitting import home_of
from viewkeeper.warehouse.altering.planning import Plan
from viewkeeper.warehouse.altering.reading import tables_in
from viewkeeper.warehouse.altering.supposed import SupposedWriter
from viewkeeper.warehouse.catalog import Catalog, Definition, families
from viewkeeper.warehouse.commit import Commit
from viewkeeper.warehouse.halted import Halts
from viewkeeper.warehouse.self_maintained.kept_view import SELF_MAINTAINED
from viewkeeper.warehouse.snapshot import Files
from viewkeeper.warehouse.summaries.dropping import dropping
from viewkeeper.warehouse.summaries.lattice import lattice_name
from viewkeeper.warehouse.summaries.naming import SUMMARY
from viewkeeper.warehouse.view_properties import SOURCES

if TYPE_CHECKING:
    from viewkeeper.warehouse.keeper import Keeper

ALTERED = "altered"
"""in the figures of a commit: the views that it made anew"""


def reload_as(keeper: "Keeper", plan: Plan) -> None:
    """Carry out a reload."""
    name = plan.alteration.view
    gone = [table for one in (name, *plan.readers) for table in _tables(keeper.writer.catalog, one)]
    _prepare(keeper, plan, gone)
    _refresh_joined(keeper, plan.new)
    before = keeper.writer.catalog
    with _supposing(keeper, gone, {name: home_of(plan.present)}) as (world, writer):
        with world.new_commit() as commit:
            _drop(world, commit, gone)
            _go_on(commit, gone)
        for view, sql in {name: plan.sql, **plan.readers}.items():
            try:
                world.create_view(sql)
            except ViewkeeperError as error:
                if view != name:
                    # The user spoke of one view, and should know which one is in the way.
                    error.detail = f"{view}, which reads {name}, cannot be made anew with it: {error.detail}"
                raise
        writer.come_true_as({ALTERED: [name, *plan.readers]})
    _forget(keeper, before)


def _tables(catalog: Catalog, name: str) -> tuple[Definition, ...]:
    return families(catalog).get(name) or (catalog[name],)


# --- before ---


def _prepare(keeper: "Keeper", plan: Plan, gone: list[Definition]) -> None:
    halts, names = Halts(keeper.files.store).all(), {view.name for view in gone}
    read = {table for sql in (plan.sql, *plan.readers.values()) for table in tables_in(sql)}
    if stuck := sorted((read & halts.keys()) - names):
        raise UsageError(f"{stuck[0]}, which {plan.new.name} is to read, is halted", f"reload {stuck[0]} first")
    for source in {one for view in gone if view.name in halts for one in view.properties.get(SOURCES, ())}:
        # What it was halted by may be that the source has changed.
        keeper.sources.refresh(source)
    for view in gone:
        if SUMMARY in view.properties:
            _settle_lattice(keeper, view, names)
        elif view.name in halts:
            keeper.bring_others_up(view.name, view.group)


def _settle_lattice(keeper: "Keeper", view: Definition, gone: set[str]) -> None:
    """Others of a lattice stay: what waits for them is no part of what is about to happen."""
    lattice = keeper.summaries.lattices().get(view.group)
    if lattice is not None and set(lattice.visible) - gone:
        keeper.summaries.refresh(lattice)


def _refresh_joined(keeper: "Keeper", new: Parsed) -> None:
    """What waits in a lattice that a summary is about to be in is applied first, as before any new one."""
    if isinstance(new, SummaryView | Family):
        one = new.members[0].view if isinstance(new, Family) else new
        fact = defined(one, recompute=dict(new.properties).get("minmax") == "recompute").star.fact
        lattice = keeper.summaries.lattices().get(lattice_name(fact.name, dict(new.properties)))
        if lattice is not None and lattice.deferred and not keeper.summaries.is_halted(lattice):
            keeper.summaries.refresh(lattice)


# --- beside the old one ---


@contextmanager
def _supposing(
    keeper: "Keeper", gone: list[Definition], homes: Mapping[str, str | None]
) -> "Iterator[tuple[Keeper, SupposedWriter]]":
    """A keeper of the same warehouse whose commits come true together, if they do."""
    real, files = keeper.writer, keeper.files
    with real.committing() as number:
        last = max(real.last.groups[view.group].last for view in gone)
        writer = SupposedWriter(real, number, last + 1)
        world = type(keeper)(
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
            world.files.kept_reads.close()


def _drop(world: "Keeper", commit: Commit, gone: list[Definition]) -> None:
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
        elif SUMMARY not in view.properties:
            commit.drop(view.name)


def _go_on(commit: Commit, gone: list[Definition]) -> None:
    """A number of its own for what is about to be new in a group that others stay in."""
    inhabited = {view.group for view in commit.catalog.values()}
    for group in dict.fromkeys(view.group for view in gone if view.group in inhabited):
        commit.state(group, {})


# --- afterwards ---


def _forget(keeper: "Keeper", before: Catalog) -> None:
    """What was known of tables that are not there any more."""
    halts, after = Halts(keeper.files.store), keeper.writer.catalog
    for name, view in before.items():
        if name not in after or after[name].folder != view.folder:
            halts.remove(view.folder)
            keeper.self_maintained.forget(name)
