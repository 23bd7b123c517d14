"""The lattice that a new summary joins, or begins; the errors of one that has no place."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from viewkeeper.errors import DefinitionError, UnknownName
from viewkeeper.lake.log.catalog import Catalog
from viewkeeper.planner.summaries.feeds import copy_of, facts_of
from viewkeeper.planner.summaries.lattice import Facts, followed, lattice_name
from viewkeeper.planner.summaries.refused import (
    refuse_apart,
    refuse_joining,
    refuse_summary,
    refuse_unreadable,
    taken_group,
)
from viewkeeper.planner.view_plan import PlannedSummary
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.defined import defined

Lattices = Mapping[str, tuple[Facts, Sequence[str]]]
"""where each lattice gets its facts from, and its summaries"""


def place_summary(
    new: SummaryView | Family,
    relations: Mapping[str, Relation],
    stored: Catalog,
    lattices: Lattices,
    group_of: Callable[[str], str],
    groups: Collection[str],
) -> PlannedSummary:
    """The plan of a new summary. `group_of` finds the group of a view, `groups` are all that there are."""
    refuse_summary(new)
    name, parsed, own = _lattice_of(new, relations, stored, lattices)
    properties = dict(parsed.properties)
    views = [member.view for member in parsed.members] if isinstance(parsed, Family) else [parsed]
    stars = [defined(view, recompute=properties.get("minmax") == "recompute").star for view in views]
    fact = stars[0].fact
    if name in lattices:
        facts, visible = lattices[name]
        refuse_joining(name, facts, visible, parsed, fact)
    elif name in groups:
        raise taken_group(name, fact)
    else:
        facts = facts_of(name, fact, properties, group_of(fact.name) if fact.source == VIEWS else None)
    copies = dict(facts.copies)
    dimensions = {one.relation.name: one.relation for star in stars for one in star.dimensions}
    for dimension in sorted(dimensions.values(), key=lambda one: one.name):
        if dimension.source == VIEWS:
            refuse_apart(parsed, dimension.name, group_of(dimension.name), facts.core)
        copies.setdefault(dimension.name, copy_of(name, dimension))
    refuse_unreadable(parsed, readable=facts.readable)
    return PlannedSummary(new, name, replace(facts, copies=copies), parsed, own)


def _lattice_of(
    new: SummaryView | Family, relations: Mapping[str, Relation], stored: Catalog, lattices: Lattices
) -> tuple[str, SummaryView | Family, Mapping[str, Relation]]:
    """The name of the lattice, and the summary over the columns that it follows: beside a lattice of the same name, if
    that was made before the columns were there that the summary reads."""
    properties = dict(new.properties)
    view = new.members[0].view if isinstance(new, Family) else new
    called = name = lattice_name(defined(view).star.fact.name, properties)
    number = 1
    while name in lattices:
        own = followed(lattices[name][0], relations, stored)
        try:
            parsed = parse_definition(new.sql, own) if own != relations else new
        except UnknownName as error:
            if "group" in properties:
                raise DefinitionError(
                    f"{new.name} reads a column that is newer than group {called}: {error.detail}",
                    "give it a group of its own, or leave the property out",
                ) from None
            number += 1
            name = f"{called} {number}"
            continue
        assert isinstance(parsed, SummaryView | Family)
        return name, parsed, own
    return name, new, relations
