"""A view that is maintained by what is stored for it: the changes of its operands are all that it is told.

storage      matview, outerjoin, viewcache, partial-join, partial-operand
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.view import View
from viewkeeper.storage.join_tree import JoinTree, tree_of
from viewkeeper.storage.mat_out_view import MatOutView
from viewkeeper.storage.mat_view import MatView
from viewkeeper.storage.numbering import numbered
from viewkeeper.storage.part_mat_join import PartMatJoin
from viewkeeper.storage.part_mat_op import PartMatOp
from viewkeeper.storage.storage import Storage
from viewkeeper.storage.tables import Changes, Tables, Z
from viewkeeper.storage.view_cache import ViewCache

STORAGES: Final[Mapping[str, Callable[[JoinTree], Storage]]] = {
    "matview": MatView,
    "outerjoin": MatOutView,
    "viewcache": ViewCache,
    "partial-join": PartMatJoin,
    "partial-operand": PartMatOp,
}


def storage_of(view: View | OuterJoinView, name: str) -> Storage:
    """A view stored in one of the five ways; DefinitionError or UnsupportedClause if it cannot be."""
    if isinstance(view, OuterJoinView) and name != "outerjoin":
        raise DefinitionError(
            f"{view.name} is an outer join, and the storage {name} keeps inner joins",
            "give it 'storage' = 'outerjoin', or leave the property out",
        )
    if len(view.operands) == 1:
        raise DefinitionError(
            f"{view.name} is over one table: its changes are enough to maintain it, and nothing more need be stored",
            "leave 'storage' out",
        )
    return STORAGES[name](tree_of(view))


def operand_changes(
    storage: Storage, tables: Tables[Z], given: Mapping[int, Z], numbers: Iterator[int]
) -> dict[int, Z]:
    """The changes of the operands, by their place in the tree, with ids; given without those that are numbers."""
    return {
        number: numbered(storage, tables, number, given[number], numbers)
        if leaf.numbered
        else given[number].keep(leaf.columns)
        for number, leaf in enumerate(storage.tree.leaves)
    }


def refresh(storage: Storage, tables: Tables[Z], leaves: Mapping[int, Z], *, view: bool) -> tuple[Changes[Z], Z | None]:
    """The changes of the structures and, if it is requested, of the view."""
    changes = storage.refresh(tables, leaves)
    return changes, storage.of_view(tables, leaves, changes) if view else None
