"""Which storage a view gets, from its property `storage`.

remote             nothing beside the view: the sources are asked
one of the five    what it says
auto               see `automatic.py`
nothing            remote; for an outer join, which only its storage maintains, outerjoin
"""

from collections.abc import Mapping

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import STORAGES
from viewkeeper.warehouse.self_maintained.automatic import REMOTE, Decision, decide
from viewkeeper.warehouse.self_maintained.facts import facts_of
from viewkeeper.warehouse.source_files import SourceDefinition
from viewkeeper.warehouse.view_properties import VIEWS

PROPERTY = "storage"
REASONS = "storage_reasons"
"""the property of a definition that tells why 'auto' chose its storage"""
OUTER_JOIN, AUTO = "outerjoin", "auto"
OF_SELF_MAINTAINED = (PROPERTY, "consistency", "group", "retention")


def is_automatic(view: View | OuterJoinView) -> bool:
    """Whether the choice is left to viewkeeper."""
    return _asked(view) == AUTO


def storage_for(
    view: View | OuterJoinView, sources: Mapping[str, SourceDefinition], rates: Mapping[str, float]
) -> Decision:
    """The storage of a new view, and why, as far as that can be told before its relations are read."""
    outer, asked = isinstance(view, OuterJoinView), _asked(view)
    if outer and VIEWS in view.sources:
        raise UnsupportedClause(
            f"{view.name} is an outer join of views, and only one of tables of sources is maintained",
            "make it an outer join of the tables that those views read, or keep the inner join of the views",
        )
    if asked == REMOTE and outer:
        raise DefinitionError(
            f"{view.name} is an outer join, and only what is stored for it can maintain it",
            "give it 'storage' = 'outerjoin', or leave the property out",
        )
    if asked == AUTO:
        decision = decide(facts_of(view, sources, rates))
    elif asked is not None:
        decision = Decision(asked, ("it was asked for",))
    elif outer:
        decision = decide(facts_of(view, sources, rates))
    else:
        decision = Decision(REMOTE, ("nothing else was asked for",))
    if decision.storage != REMOTE:
        _check(view)
    return decision


def _asked(view: View | OuterJoinView) -> str | None:
    asked = dict(view.properties).get(PROPERTY)
    if asked not in (None, REMOTE, AUTO, *STORAGES):
        raise DefinitionError(
            f"the property {PROPERTY} of {view.name} is {asked!r}",
            f"use one of {', '.join((REMOTE, *STORAGES, AUTO))}",
        )
    return asked


def _check(view: View | OuterJoinView) -> None:
    """What holds for every self-maintained view."""
    for name, _ in view.properties:
        if name not in OF_SELF_MAINTAINED:
            raise UnsupportedClause(
                f"the property {name} does not apply to {view.name}, which is maintained by what is stored for it",
                f"it can have {', '.join(OF_SELF_MAINTAINED)}",
            )
    if VIEWS in view.sources:
        raise UnsupportedClause(
            f"{view.name} reads views, and follows them without asking anybody: nothing more need be stored",
            "leave 'storage' out",
        )
