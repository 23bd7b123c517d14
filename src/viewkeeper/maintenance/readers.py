"""Views that read a view which is recreated: they follow what is different in it, in the same state.

    Δ of the view  =  what its sources say  -  what is stored          Δ of a reader  =  its definition over that

Without it they would stay as they were, since nobody tells them later: the group goes on from the new state.
"""

from collections.abc import Mapping
from typing import Any

from viewkeeper.lake.log.halts import Halts
from viewkeeper.maintenance.context import Context
from viewkeeper.mediator.alignment import GroupChange
from viewkeeper.mediator.derived import DerivedView


def with_readers(context: Context, group: str, view: str, different: Any) -> dict[str, tuple[Any, ...]]:
    """What is different in a view, and in the views that read it. Those that are halted are reloaded by themselves."""
    halted = Halts(context.files.store).all()
    changes = [GroupChange({}, {view: (different,)}, ())]
    for name, one in context.kept().items():
        if one.group == group and one.reads and name not in halted:
            follower = DerivedView(one.how.view, make_zset=context.engines.zset, read=context.stored)
            changes = follower.follow(changes)
    return dict(changes[0].deltas)


def readers_alone(deltas: Mapping[str, tuple[Any, ...]], view: str) -> dict[str, tuple[Any, ...]]:
    """The same without the view itself."""
    return {name: of_view for name, of_view in deltas.items() if name != view}
