"""What can be changed while the rows of a view stay as they are.

retention                               always
consistency, algorithm, its options     of a join: if what is stored is the same, and so is the algorithm of its group
consistency                             of a self-maintained view: if it is alone in its group
consistency, refresh                    of a summary: if that does not take it to another lattice, see `_of_summary`
group                                   if it is the group that it has
storage                                 if it is the storage that it has

Everything else is a reload.
"""

from dataclasses import replace

from viewkeeper.lake.log.catalog import Definition
from viewkeeper.levels import Level
from viewkeeper.planner.altering.comparison import Differences
from viewkeeper.planner.canonical import Parsed
from viewkeeper.planner.kept_views import KeptViews
from viewkeeper.planner.overview import Overview
from viewkeeper.planner.self_maintained.automatic import REMOTE
from viewkeeper.planner.self_maintained.choosing import is_automatic, storage_for
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, self_maintained
from viewkeeper.planner.self_maintained.planned import reached_level
from viewkeeper.planner.stored_definitions import definition_of
from viewkeeper.planner.summaries.lattice import is_lattice, lattice_name
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import ALGORITHM, VIEWS
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.refresh_mode import RefreshMode, refresh_of
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.view import View


def in_the_way(overview: Overview, present: tuple[Definition, ...], new: Parsed, found: Differences) -> tuple[str, ...]:
    """Why properties cannot be changed in place; nothing if they can."""
    sql = definition_of(present[0])
    assert sql is not None
    old = parse_definition(sql, overview.relations, name=new.name)
    if isinstance(new, SummaryView | Family):
        return _of_summary(overview, present[0], old, new, found)
    if SELF_MAINTAINED in present[0].properties:
        return _of_self_maintained(overview, present[0], old, new, found)
    assert isinstance(new, View)
    return _of_join(overview, present[0], old, new, found)


def algorithm_before(present: Definition, old: Parsed) -> str | None:
    """The algorithm that `auto` stays with: the one that it chose."""
    chosen = dict(old.properties).get("algorithm", "auto") == "auto"
    return present.properties[ALGORITHM] if chosen else None


def columns_changed(overview: Overview, present: Definition, new: View) -> bool:
    """Whether a join would be stored with other columns than it is."""
    views = KeptViews(lambda: overview.catalog, overview.sources)
    how = views.how(new, present.properties.get(ALGORITHM))
    return tuple((column.name, column.expression.type) for column in how.stored.output) != present.columns


def _of_join(
    overview: Overview, present: Definition, old: Parsed, new: View, different: Differences
) -> tuple[str, ...]:
    # A choice that was left to viewkeeper is made once.
    if "storage" in different.properties and _storage(overview, new) != REMOTE:
        return ("what is stored for it is something else",)
    found = []
    asked = dict(new.properties).get("group")
    if asked is not None and asked != present.group:
        found.append(f"it is in group {present.group}, and a group has states of its own")
    views = KeptViews(lambda: overview.catalog, overview.sources)
    how = views.how(new, algorithm_before(present, old))
    if tuple((column.name, column.expression.type) for column in how.stored.output) != present.columns:
        found.append(f"{how.algorithm} stores other columns than {present.properties[ALGORITHM]}")
    others = {
        name: one.how.algorithm
        for name, one in views.all().items()
        if one.group == present.group and name != present.name and not one.reads
    }
    if VIEWS not in new.sources and (unlike := {one for one in others.values() if one != how.algorithm}):
        found.append(f"the others of group {present.group} are maintained by {', '.join(sorted(unlike))}")
    return tuple(found)


def _storage(overview: Overview, view: View | OuterJoinView) -> str:
    return storage_for(view, overview.sources.definitions(), overview.rates).storage


def _of_self_maintained(
    overview: Overview, present: Definition, old: Parsed, new: View | OuterJoinView, different: Differences
) -> tuple[str, ...]:
    if not isinstance(old, View | OuterJoinView) or _bare(old) != _bare(new):
        # Its tables are called after the aliases.
        return ("it is written with other aliases, which the tables that are stored for it are named after",)
    told, found = present.properties[SELF_MAINTAINED], []
    # What viewkeeper would choose now depends on sizes, which are known once the relations are read.
    if "storage" in different.properties and (is_automatic(new) or _storage(overview, new) != told["storage"]):
        found.append("what is stored for it is something else")
    if dict(new.properties).get("group", present.group) != present.group:
        found.append(f"it is in group {present.group}, and a group has states of its own")
    others = [n for n, one in self_maintained(overview.catalog).items() if one.group == present.group and n != new.name]
    if reached_level(new) is not Level[told["level"].upper()] and others:
        found.append(f"the others of group {present.group} have another consistency: {', '.join(sorted(others))}")
    return tuple(found)


def _of_summary(
    overview: Overview, present: Definition, old: Parsed, new: SummaryView | Family, found: Differences
) -> tuple[str, ...]:
    """A lattice is refreshed as a whole, and called after how it is: so what says that belongs to all of it."""
    if not isinstance(old, SummaryView | Family) or _bare(old) != _bare(new):
        return ("it is written in another way, and what is stored for it is named after that",)
    for name in ("minmax", "core"):
        if name in found.properties:
            return ("what is stored for it is something else",)
    fact = present.properties[SUMMARY]["facts"]["fact"]
    if not is_lattice(present.group, lattice_name(fact, dict(new.properties))):
        return ("summaries that are refreshed otherwise are another lattice",)
    if _refreshed(old) != _refreshed(new):
        others = [
            name
            for name, one in overview.catalog.items()
            if one.group == present.group and not one.hidden and new.name not in (name, one.family)
        ]
        if others:
            return (f"it is refreshed together with {', '.join(sorted(others))}",)
        if (
            RefreshMode.CONTINUOUS in (_refreshed(old)[0], _refreshed(new)[0])
            and _refreshed(old)[0] != _refreshed(new)[0]
        ):
            return ("changes that wait for a refresh are stored, and those of a continuous one are not",)
    return ()


def _refreshed(parsed: SummaryView | Family) -> tuple[RefreshMode, int | None, bool]:
    refresh = refresh_of(parsed.properties)
    return refresh.mode, refresh.seconds, dict(parsed.properties).get("consistency") == "complete"


def _bare(parsed: Parsed) -> Parsed:
    """A definition without text and properties, and otherwise to the letter."""
    if isinstance(parsed, Family):
        members = tuple(replace(one, view=_bare_summary(one.view)) for one in parsed.members)
        return replace(parsed, sql="", properties=(), members=members)
    if isinstance(parsed, SummaryView):
        return _bare_summary(parsed)
    return replace(parsed, sql="", properties=())


def _bare_summary(view: SummaryView) -> SummaryView:
    return replace(view, sql="", properties=(), core=replace(view.core, sql="", properties=()))
