"""Several views compared with their sources: what they have in common is read once.

a join           its text run by Spark over its sources at its own vector
summaries        those of one lattice together: their sources are read once
a summary of v   compared with what v holds, so v is audited with it: the two together say what the sources give
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from viewkeeper.lake.log.columns import RESERVED
from viewkeeper.maintenance.audits import Audit, audited
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.original_rows import original_rows
from viewkeeper.maintenance.self_maintained.comparing import audit as audit_self_maintained
from viewkeeper.maintenance.summaries.reloading import compare
from viewkeeper.maintenance.view_images import images_under

Watch = Callable[[Sequence[str]], None]


def audits(keeper: Keeper, names: Sequence[str], watch: Watch) -> list[Audit]:
    """The audits of these views, in this order; `watch` is told which come next."""
    below = {name: _visible_inputs(keeper, name) for name in names}
    found: dict[str, Audit] = {}
    for some in _together(keeper, (*chain.from_iterable(below.values()), *names)):
        watch(some)
        summaries = keeper.summaries.members(some[0])
        found |= {one.view: one for one in (_of_summaries(keeper, some) if summaries else [_of_join(keeper, *some)])}
    wrong = {name for name, audit in found.items() if not audit.clean}
    return [replace(found[name], below=tuple(one for one in below[name] if one in wrong)) for name in names]


def _visible_inputs(keeper: Keeper, name: str) -> tuple[str, ...]:
    """The views that a summary is of; those that a program loads have no sources to be compared with."""
    if not keeper.summaries.members(name):
        return ()
    inputs = keeper.summaries.lattice_of(name).inputs
    return tuple(one for one in inputs if not one.startswith(RESERVED) and keeper.is_from_sources(one))


def _together(keeper: Keeper, names: Sequence[str]) -> list[list[str]]:
    """The summaries of each lattice, and every other view by itself."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(names):
        lattice = keeper.summaries.lattice_of(name).name if keeper.summaries.members(name) else ""
        found.setdefault((lattice, "" if lattice else name), []).append(name)
    return list(found.values())


def _of_summaries(keeper: Keeper, names: Sequence[str]) -> list[Audit]:
    """Summaries of one lattice; of a family all tables."""
    lattice = keeper.summaries.lattice_of(names[0])
    tables = {name: lattice.tables[next(iter(keeper.summaries.members(name)))] for name in names}
    compared, broken = compare(keeper.summaries, lattice, tables)
    found = [audited(name, keeper.writer.last.groups[lattice.name], *compared[name]) for name in names]
    return [replace(one, broken_foreign_keys=tuple(broken.items())) for one in found]


def _of_join(keeper: Keeper, name: str) -> Audit:
    """The audit of a view that is no summary."""
    if name in keeper.composed.views():
        return keeper.composed.audit(name)
    if name in keeper.self_maintained.views():
        return audit_self_maintained(keeper.self_maintained, name)
    view = keeper.kept_one(name)
    group = keeper.writer.last.groups[view.group]
    with (
        images_under(keeper, keeper.self_maintained, view.how, group.vector) as (contents, relations, between),
        original_rows(keeper.files.spark(), contents, relations) as original,
    ):
        for below in between.values():
            original.add(below.name, original.of(below.sql, below.operands, below.columns))
        shown = view.how.view
        expected = keeper.engines.of_frame(original.of(shown.sql, shown.operands, shown.columns))
        stored = keeper.stored(name).keep(shown.columns)
        difference = expected - stored
        rows = stored.size()
        wrong = [] if difference.is_empty() else list(difference.weights())
    return audited(name, group, rows, wrong)
