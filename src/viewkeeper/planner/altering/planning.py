"""What a definition would do to the warehouse as it is: found out from the catalog alone, nothing is done.

the view of that name    its definition and the new one parsed over what there is, and compared
those that read it       parsed over the new columns, before anything is done
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from viewkeeper.errors import DefinitionError, UsageError, ViewkeeperError
from viewkeeper.lake.log.catalog import Catalog, Definition, families, free_name
from viewkeeper.planner.altering.alteration import Alteration
from viewkeeper.planner.altering.comparison import Differences, differences
from viewkeeper.planner.altering.fitting import refuse_unfit
from viewkeeper.planner.altering.in_place import columns_changed, in_the_way
from viewkeeper.planner.altering.refused import refuse_new
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.composed.composed_view import ComposedView, composed_view
from viewkeeper.planner.composed.naming import COMPOSED, composed_names
from viewkeeper.planner.composed.reading import read_view
from viewkeeper.planner.groups import Groups
from viewkeeper.planner.known_relations import refuse_summaries
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.planning import plan_parsed
from viewkeeper.planner.stored_definitions import behind_what_they_read, definition_of, dependants_of, named_in, sql_of
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import SQL
from viewkeeper.sql.create_clauses import read_create
from viewkeeper.sql.definition import name_in
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.view import View


@dataclass(frozen=True)
class Plan:
    """An alteration, with what is needed to carry it out."""

    alteration: Alteration
    sql: str
    """the new definition"""
    new: Parsed | ComposedView
    present: tuple[Definition, ...] = ()
    """the view, or the tables of the family"""
    readers: Mapping[str, str] = field(default_factory=dict)
    """the definitions of those that are recreated with it, each after those that it reads"""


def plan_alteration(overview: Overview, sql: str, also: Sequence[str] = (), *, stale: str = "") -> Plan:
    """Find out what a definition would do; DefinitionError if it cannot be, naming the views in its way.

    `also` are new definitions of views that read it: they hold for those that are recreated with it. `stale` says why
    it is to be recreated whatever the definition, with its whole lattice if it is a summary.
    """
    create = read_create(sql)
    if not create.creates:
        raise DefinitionError("the view has no name", "write CREATE MATERIALIZED VIEW name AS SELECT ...")
    name, catalog = name_in(create.sql), overview.catalog
    refuse_summaries(create.sql, {one: view for one, view in catalog.items() if name not in (one, view.family)})
    present = present_of(catalog, name)
    dependants = _dependants(overview, name, present, whole=bool(stale))
    _refuse_circle(name, create.sql, dependants)
    gone = {name, *dependants}
    relations = {one: relation for one, relation in overview.relations.items() if one not in gone}
    staying = _without(catalog, gone)
    new = read_view(create.sql, relations, overview.spark, composed_names(staying))
    if isinstance(new, ComposedView):
        return _of_composed(overview, create.sql, new, present, _readers(catalog, dependants, also), stale)
    if not present:
        free_name(catalog, name)
        plan_parsed(overview, new)
        return Plan(Alteration(name, "create", ("there is no such view",)), create.sql, new)
    refuse_new(overview, staying, new)
    found = _compared(overview, present, new)
    if isinstance(found, Differences):
        outdated = (stale,) if stale else _stale(overview, present[0], new) if found.none else ()
        if found.none and not outdated:
            return Plan(Alteration(name, "keep"), create.sql, new, present)
        reasons = (*found.query, *found.properties.values())
        obstacles = found.query or outdated or in_the_way(overview, present, new, found)
        if not obstacles:
            return Plan(Alteration(name, "alter", reasons), create.sql, new, present)
        reasons = tuple(dict.fromkeys((*reasons, *obstacles)))
    else:
        reasons = (found,)
    readers = _readers(catalog, dependants, also)
    refuse_unfit(staying, overview.sources, present, new, readers)
    return Plan(Alteration(name, "reload", reasons, tuple(readers)), create.sql, new, present, readers)


def _of_composed(
    overview: Overview,
    sql: str,
    new: ComposedView,
    present: tuple[Definition, ...],
    readers: Mapping[str, str],
    stale: str,
) -> Plan:
    """The same of a view that is maintained operator by operator: what is not the same is recreated."""
    name = new.name
    if not present:
        free_name(overview.catalog, name)
        Groups.of(overview).place_composed(new)
        return Plan(Alteration(name, "create", ("there is no such view",)), sql, new)
    reasons = [stale] if stale else []
    if COMPOSED not in present[0].properties:
        reasons.append("it is to be maintained operator by operator, which it was not")
    else:
        old = composed_view(present[0])
        if (old.query.root, old.query.names) != (new.query.root, new.query.names):
            reasons.append("its query is another")
        before, after = dict(old.properties), dict(new.properties)
        reasons += [
            f"the property {key} is {after.get(key, 'not set')}, and was {before.get(key, 'not set')}"
            for key in sorted({*before, *after})
            if before.get(key) != after.get(key)
        ]
    if not reasons:
        return Plan(Alteration(name, "keep"), sql, new, present)
    return Plan(Alteration(name, "reload", tuple(reasons), tuple(readers)), sql, new, present, readers)


def present_of(catalog: Catalog, name: str) -> tuple[Definition, ...]:
    """The view, or the tables of the family, that has a name; none if there is none."""
    if members := families(catalog).get(name):
        return members
    view = catalog.get(name)
    if view is None:
        return ()
    if view.family is not None:
        raise UsageError(
            f"{name} is one of the tables of {view.family}, and is defined with it",
            f"change the definition of {view.family}; or drop {name}, and create it by itself",
        )
    if definition_of(view) is None:
        raise UsageError(
            f"view {name} was loaded by a commit of its own, and has no definition that could be changed",
            "drop it first, or choose another name",
        )
    return (view,)


def _dependants(overview: Overview, name: str, present: Sequence[Definition], *, whole: bool) -> tuple[str, ...]:
    """Those that read a view; of a summary the others of its lattice if that is halted: it is fixed as a whole."""
    if not present:
        return ()
    catalog, group = overview.catalog, present[0].group
    if SUMMARY not in present[0].properties:
        return dependants_of(catalog, name)
    lattice = [one for one, view in catalog.items() if view.group == group and not view.hidden]
    if not whole and not overview.halts.keys() & set(lattice):
        return ()
    others = sorted(lattice, key=lambda one: catalog[one].created)
    return tuple(dict.fromkeys(called for one in others if (called := catalog[one].family or one) != name))


def _readers(catalog: Catalog, dependants: Sequence[str], also: Sequence[str]) -> dict[str, str]:
    """The definitions that those that read a view will have, each after those that it reads."""
    later = {name_in(one.sql): one.sql for one in map(read_create, also)}
    definitions = {name: later.get(name) or sql_of(catalog, name) for name in dependants}
    reads = {name: named_in(sql, definitions) for name, sql in definitions.items()}
    return {name: definitions[name] for name in behind_what_they_read(dependants, reads)}


def _without(catalog: Catalog, gone: Collection[str]) -> Catalog:
    """The views that stay as they are."""
    return {name: view for name, view in catalog.items() if not {name, view.family} & set(gone)}


def _refuse_circle(name: str, sql: str, dependants: tuple[str, ...]) -> None:
    if named_in(sql, [name]):
        raise DefinitionError(f"{name} would read itself", "name the tables and the other views that it is made of")
    if circle := sorted(named_in(sql, dependants)):
        raise DefinitionError(
            f"{name} would read {circle[0]}, which reads {name}", "define one of the two over what the other is over"
        )


def _compared(overview: Overview, present: tuple[Definition, ...], new: Parsed) -> Differences | str:
    """What is different; or why that is not known, and the view must be recreated."""
    sql = definition_of(present[0])
    assert sql is not None
    if COMPOSED in present[0].properties:
        return "it was maintained operator by operator, which it is not to be"
    try:
        return differences(parse_definition(sql, overview.relations, name=new.name), new)
    except ViewkeeperError as error:
        return f"its present definition no longer fits its sources: {error.detail}"


def _stale(overview: Overview, present: Definition, new: Parsed) -> tuple[str, ...]:
    """Why a join is to be recreated although its definition is the same."""
    if SQL in present.properties and isinstance(new, View) and columns_changed(overview, present, new):
        return ("the columns of what it reads have changed since it was loaded",)
    return ()
