"""Which storage a view gets, from its property `storage`.

remote             nothing beside the view: the sources are asked
one of the five    what it says
auto               see `automatic.py`
nothing            remote; for an outer join, which only its storage maintains, outerjoin
"""

from typing import TYPE_CHECKING

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import STORAGES

if TYPE_CHECKING:
    from viewkeeper.warehouse.keeper import Keeper

PROPERTY = "storage"
REMOTE, OUTER_JOIN, AUTO = "remote", "outerjoin", "auto"


def storage_for(keeper: "Keeper", view: View | OuterJoinView) -> str | None:
    """The storage of a new view; None if its sources are asked."""
    outer = isinstance(view, OuterJoinView)
    asked = dict(view.properties).get(PROPERTY, OUTER_JOIN if outer else REMOTE)
    if asked not in (REMOTE, AUTO, *STORAGES):
        raise DefinitionError(
            f"the property {PROPERTY} of {view.name} is {asked!r}",
            f"use one of {', '.join((REMOTE, *STORAGES, AUTO))}",
        )
    if asked == AUTO:
        asked = OUTER_JOIN if outer else "partial-operand"
    if asked == REMOTE and outer:
        raise DefinitionError(
            f"{view.name} is an outer join, and only what is stored for it can maintain it",
            "give it 'storage' = 'outerjoin', or leave the property out",
        )
    return None if asked == REMOTE else asked
