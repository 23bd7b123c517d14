"""Summaries that cannot be created, as far as that is known before anything is read."""

from collections.abc import Iterable

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.planner.summaries.lattice import Facts
from viewkeeper.sql.refresh_mode import RefreshMode, refresh_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.plan import CHANGES

OF_SUMMARIES = ("consistency", "refresh", "group", "minmax", "core", "retention", "global_timeout", "refresh_policy")


def refuse_summary(parsed: SummaryView | Family) -> None:
    """UnsupportedClause or DefinitionError for a name or properties that a summary cannot have, or not together."""
    properties = dict(parsed.properties)
    for name in properties:
        if name not in OF_SUMMARIES:
            raise UnsupportedClause(
                f"the property {name} does not apply to {parsed.name}, which is a summary",
                f"a summary has {', '.join(OF_SUMMARIES)}; for others make its join a view and summarize that",
            )
    if properties.get("consistency") == "complete" and refresh_of(parsed.properties).mode is not RefreshMode.CONTINUOUS:
        raise DefinitionError(
            f"{parsed.name} is to be complete and refreshed {properties['refresh']}: between two refreshes it skips "
            "states",
            "leave one of the two properties out",
        )
    names = [member.view.name for member in parsed.members] if isinstance(parsed, Family) else [parsed.name]
    if CHANGES in names:
        raise DefinitionError(
            f"a summary cannot be called {CHANGES}: that is what the changes of its fact are called",
            "choose another name",
        )


def refuse_unreadable(parsed: SummaryView | Family, *, readable: bool) -> None:
    """DefinitionError for one that computes from a core that is not stored."""
    if dict(parsed.properties).get("minmax") == "recompute" and not readable:
        raise DefinitionError(
            f"{parsed.name} is to recompute MIN and MAX from its core, and the core is not stored",
            "add 'core' = 'stored', or leave 'minmax' out: a hidden table then answers",
        )


def refuse_joining(
    lattice: str, facts: Facts, visible: Iterable[str], parsed: SummaryView | Family, fact: Relation
) -> None:
    """DefinitionError for one that does not fit the lattice that it would be in."""
    if facts.fact != fact.name:
        raise DefinitionError(
            f"group {lattice} has summaries of {facts.fact}, and {parsed.name} is one of {fact.name}",
            "give it a group of its own, or leave the property out",
        )
    if dict(parsed.properties).get("core") == "stored" and not facts.readable:
        raise DefinitionError(
            f"{parsed.name} is to be refreshed with {', '.join(visible)}, whose core is not stored",
            "give it a group of its own with TBLPROPERTIES('group' = ...)",
        )


def refuse_apart(parsed: SummaryView | Family, dimension: str, group: str, core: str) -> None:
    """UnsupportedClause for a dimension that is a view of another group than the facts."""
    if group != core:
        raise UnsupportedClause(
            f"{parsed.name} reads {dimension}, which is in group {group}, and facts of group {core}: they have states "
            "of their own",
            "use the table that the view reads, or create the views with the same TBLPROPERTIES('group' = ...)",
        )


def taken_group(group: str, fact: Relation) -> DefinitionError:
    """The error for a lattice that would be in a group of other views."""
    return DefinitionError(f"group {group} has views that are no summaries of {fact.name}", "choose another group")
