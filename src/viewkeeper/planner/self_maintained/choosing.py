"""Which storage a view gets, from its property `storage`.

remote             nothing beside the view: the sources are queried
one of the five    what it says
auto               see `automatic.py`
nothing            remote; for an outer join, which only its storage maintains, outerjoin
"""

from collections.abc import Mapping

from viewkeeper.errors import DefinitionError, UnsupportedClause, did_you_mean
from viewkeeper.lake.log.source_files import SourceDefinition
from viewkeeper.planner.self_maintained.automatic import REMOTE, Decision, decide
from viewkeeper.planner.self_maintained.facts import facts_of
from viewkeeper.planner.view_properties import VIEWS
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import STORAGES

PROPERTY = "storage"
REASONS = "storage_reasons"
"""the property of a definition that tells why 'auto' chose its storage"""
OUTER_JOIN, AUTO = "outerjoin", "auto"
KNOWN = (REMOTE, *STORAGES, AUTO)
OF_SELF_MAINTAINED = (PROPERTY, "consistency", "group", "retention", "global_timeout", "refresh_policy")


def is_automatic(view: View | OuterJoinView) -> bool:
    """Whether the choice is left to viewkeeper."""
    return _asked(view) == AUTO


def storage_for(
    view: View | OuterJoinView, sources: Mapping[str, SourceDefinition], rates: Mapping[str, float]
) -> Decision:
    """The storage of a new view, and why, as far as that can be told before its relations are read."""
    refuse_storage(view)
    outer, asked = isinstance(view, OuterJoinView), _asked(view)
    if asked == AUTO:
        decision = decide(facts_of(view, sources, rates))
    elif asked is not None:
        decision = Decision(asked, ("it was requested",))
    elif outer:
        decision = decide(facts_of(view, sources, rates))
    else:
        decision = Decision(REMOTE, ("nothing else was requested",))
    if decision.storage != REMOTE:
        _check(view)
    return decision


def refuse_storage(view: View | OuterJoinView) -> str | None:
    """The error of a view that cannot have the storage that it asks for, whatever its sources; else the storage, if it
    is known without looking at them."""
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
    if asked == AUTO and not outer:
        return None
    storage = OUTER_JOIN if outer and asked in (None, AUTO) else asked or REMOTE
    if storage != REMOTE:
        _check(view)
    return storage


def _asked(view: View | OuterJoinView) -> str | None:
    asked = dict(view.properties).get(PROPERTY)
    if asked is not None and asked not in KNOWN:
        raise DefinitionError(
            f"the property {PROPERTY} of {view.name} is {asked!r}",
            f"{did_you_mean(asked, KNOWN)}use one of {', '.join(KNOWN)}",
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
