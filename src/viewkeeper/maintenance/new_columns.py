"""Columns that tables were given, or that were made wider, since their source was added.

new columns     taken when a definition names one that is not known; whatever is stored stays as it is
wider types     taken by a reload, of all views that read them: a value came that the old type does not hold
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from viewkeeper.errors import BadDelta, SourceUnavailable, UnknownName, ViewkeeperError, may_pass
from viewkeeper.lake.log.catalog import find
from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.planner.known_relations import relations_named
from viewkeeper.sources.layout import retyped
from viewkeeper.sql.view import View, columns_read

Done = TypeVar("Done")


def with_new_columns(keeper: Keeper, statements: Sequence[str], work: Callable[[], Done]) -> Done:
    """Do something with definitions; once more, if they name columns that their sources have got meanwhile."""
    try:
        return work()
    except UnknownName:
        if not learn(keeper, statements):
            raise
    try:
        return work()
    except BadDelta as error:
        # What was captured before the column was known does not have it, and cannot be taken back from what is read.
        raise BadDelta(
            "changes that were captured before the new columns were known are not part of the views yet",
            "run 'viewkeeper catch-up', and then this again",
        ) from error


def learn(keeper: Keeper, statements: Sequence[str]) -> bool:
    """Take up the new columns of the sources that definitions read; whether there are any."""
    known = keeper.sources.definitions()
    named = {table.partition(".")[0] for sql in statements for table in relations_named(sql)} & known.keys()
    registered = keeper.sources.relations()
    learned = False
    for name in sorted(named):
        found = keeper.sources.with_new_columns([name])
        if any(one.columns != registered[relation].columns for relation, one in found.items()):
            keeper.sources.refresh(name, wider=False)
            learned = True
    if learned:
        keeper.summaries.look_again()
    return learned


def reload_with_types(keeper: Keeper, name: str) -> None:
    """Reload a view; if that takes up wider types of columns, halt the others that read them until they are too."""
    from viewkeeper.maintenance.reload import reload_view

    before = keeper.sources.relations()
    reload_view(keeper, name)
    if columns := retyped(before, keeper.sources.relations()):
        _halt_readers(keeper, columns, name)


def _halt_readers(keeper: Keeper, columns: Mapping[str, frozenset[str]], reloaded: str) -> None:
    halted = keeper.halts.all()
    for view, used in _read(keeper, reloaded).items():
        hit = [f"{name}.{one}" for name, some in columns.items() for one in some & used.get(name, frozenset())]
        if hit and view not in halted and not view.startswith(RESERVED):
            definition = find(keeper.writer.catalog, view)
            state = keeper.writer.last.groups[definition.group].last
            told = f"{', '.join(sorted(hit))} was widened; run 'viewkeeper reload {view}'"
            keeper.halts.add(view, definition.folder, told, state, recomputable=True)


def _read(keeper: Keeper, reloaded: str) -> dict[str, Mapping[str, frozenset[str]]]:
    """The columns that each view reads, but for the one that was reloaded and those of its lattice."""
    read: dict[str, Mapping[str, frozenset[str]]] = {
        name: columns_read(one.how.view) for name, one in keeper.kept().items() if not one.reads
    }
    for name, one in keeper.self_maintained.views().items():
        if isinstance(one.view, View):
            read[name] = columns_read(one.view)
    own = {reloaded}
    for lattice in keeper.summaries.lattices().values():
        used = {one.name: frozenset(one.columns) for one in lattice.input_relations.values()}
        read |= dict.fromkeys(lattice.visible, used)
        if set(keeper.summaries.members(reloaded)) & lattice.visible.keys():
            own |= lattice.visible.keys()
    return {name: columns for name, columns in read.items() if name not in own}


def recompute(keeper: Keeper) -> list[str]:
    """Compute again the views that are halted only because a column that they read was widened; which were."""
    done = []
    for name, halt in keeper.halts.all().items():
        # One may have been computed with another, of its lattice.
        if not halt.recomputable or name.startswith(RESERVED) or name not in keeper.halts.all():
            continue
        try:
            reload_with_types(keeper, name)
            done.append(name)
        except ViewkeeperError as error:
            if not may_pass(error) and not isinstance(error, SourceUnavailable):
                told = f"{halt.reason}; it was tried, and failed: {error.detail}"
                keeper.halts.add(name, find(keeper.writer.catalog, name).folder, told, halt.state)
    return done
