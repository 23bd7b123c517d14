"""The other kinds in words: views over views, views that are loaded by commits, hidden tables of viewkeeper's own."""

from collections.abc import Sequence

from viewkeeper.algebra.adaptive import MOST_BYTES
from viewkeeper.explaining.explained_storage import HeldInWords
from viewkeeper.explaining.explanation import Advice, InWords, RelationCost
from viewkeeper.explaining.join_facts import only_spark
from viewkeeper.explaining.measured import measured_of
from viewkeeper.explaining.queried_joins import UNKNOWN, expected_rows
from viewkeeper.explaining.sizes import known_sizes, stored_joins
from viewkeeper.explaining.summary_explanation import Sweep
from viewkeeper.explaining.wording import listed
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.planner.overview import Overview
from viewkeeper.sql.view import View

LOADED = InWords(
    (
        "A program loads it, with `Warehouse.commit()`: each commit says which rows go and come.",
        "Summaries can be over it, and follow each commit. Nothing else maintains it, and no source is queried.",
    ),
    ("no level: what is right is up to the program that loads it",),
)


def over_views(
    overview: Overview, view: View, sweeps: Sequence[Sweep], halted: str | None, rows: int | None
) -> InWords:
    """A view over views of its group."""
    names, sizes = listed(view.relations), known_sizes(overview)
    spark = only_spark(view)
    work = f"a Spark job, for {spark}" if spark else f"on the driver, up to {MOST_BYTES >> 20} MB"
    costs = []
    for sweep in sweeps:
        each, told = expected_rows("batched-sweep", sweep.steps, sizes.get(sweep.start.split(" ")[0]), rows)
        if told.startswith("all of"):
            each, told = None, UNKNOWN
        costs.append(RelationCost(sweep.start, 0, 0, (), each, told, len(sweep.steps), work))
    others = "" if len(sweeps) == 1 else ", joined with the others as they stand in the warehouse"
    return InWords(
        (
            f"{names} {'is a view' if len(view.relations) == 1 else 'are views'} of this warehouse.",
            f"When a new state brings changed rows there, these are put through the conditions and columns of "
            f"{view.name}{others}.",
            "What goes and comes is part of the same state and the same commit. No source is queried.",
        ),
        (
            "it has a state for each state of the views that it reads, so it is as good as they are",
            "batched-sweep: a view over views is always maintained so; properties are set at the views that it reads",
        ),
        tuple(costs),
        measured_of(overview, view.name),
        _reload(view.name) if halted is not None else (),
    )


def _reload(view: str) -> tuple[Advice, ...]:
    command = f"viewkeeper reload {view}"
    return (Advice("halted", f"recreate {view}", "it is not maintained until then", command),)


def hidden_table(overview: Overview, definition: Definition) -> InWords | None:
    """A table of viewkeeper's own that is none of a lattice; None if it is not one of those."""
    if not definition.hidden:
        return None
    serves = _serves(overview, definition.name)
    if serves is None:
        return None
    what, whom = serves
    return InWords(
        (
            f"It is stored for {whom}: {what}.",
            f"It is refreshed with it; viewkeeper explain {whom} says how.",
        ),
        ("it is there because it is needed for that, and goes with it",),
    )


def _serves(overview: Overview, table: str) -> tuple[str, str] | None:
    """What a hidden table has, and the view that it is for."""
    for kept in stored_joins(overview):
        if table in kept.feeds:
            changed = kept.storage.tree.leaves[kept.feeds[table]].operand.relation.name
            return f"it passes on the changes of {changed}, and stores none", kept.name
        if table in kept.tables:
            return f"it stores {HeldInWords(kept).holds(kept.tables[table])}", kept.name
    for lattice in overview.lattices.values():
        seen = next(iter(lattice.visible), None)
        if seen is None:
            continue
        for view, relation in lattice.input_relations.items():
            if table == view and view == lattice.facts.feed:
                stored = "and stores all of them" if lattice.facts.readable else "and stores none"
                return f"it passes on the changes of {relation.name}, {stored}", seen
            if table == view:
                return f"it is a copy of {relation.name}", seen
            if table == lattice.log(view):
                return f"it has the changes of {relation.name} that wait to be propagated", seen
        for node in lattice.nodes:
            if table == lattice.pending(node):
                return f"it has the summary-delta of {node} that waits for the refresh", seen
    return None
