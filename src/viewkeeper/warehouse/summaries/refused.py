"""Summaries that cannot be created, as far as that is known before anything is read."""

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.refresh_mode import RefreshMode, refresh_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.summary.plan import CHANGES
from viewkeeper.warehouse.summaries.lattice import Lattice

OF_SUMMARIES = ("consistency", "refresh", "group", "minmax", "core", "retention", "global_timeout")


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


def refuse_joining(lattice: Lattice, parsed: SummaryView | Family, fact: Relation) -> None:
    """DefinitionError for one that does not fit the lattice that it would be in."""
    if lattice.facts.fact != fact.name:
        raise DefinitionError(
            f"group {lattice.name} has summaries of {lattice.facts.fact}, and {parsed.name} is one of {fact.name}",
            "give it a group of its own, or leave the property out",
        )
    if dict(parsed.properties).get("core") == "stored" and not lattice.facts.readable:
        raise DefinitionError(
            f"{parsed.name} is to be refreshed with {', '.join(lattice.visible)}, whose core is not stored",
            "give it a group of its own with TBLPROPERTIES('group' = ...)",
        )


def taken_group(group: str, fact: Relation) -> DefinitionError:
    """The error for a lattice that would be in a group of other views."""
    return DefinitionError(f"group {group} has views that are no summaries of {fact.name}", "choose another group")
