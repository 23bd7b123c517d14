"""A self-maintained view before it is created: its storage, its level, the company of its group, its properties."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from viewkeeper.errors import DefinitionError
from viewkeeper.lake.log.catalog import COMPUTED, HAVING, SHOWN
from viewkeeper.levels import Level
from viewkeeper.planner.self_maintained.automatic import Decision
from viewkeeper.planner.self_maintained.choosing import REASONS, is_automatic
from viewkeeper.planner.self_maintained.kept_view import SELF_MAINTAINED, KeptView
from viewkeeper.planner.view_properties import ALGORITHM, KEY, LEVEL, SOURCES
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.view import View
from viewkeeper.storage.mat_out_view import MatOutView
from viewkeeper.storage.self_maintained import storage_of


def supposed(view: View | OuterJoinView, decision: Decision) -> KeptView:
    """A view as it would be kept with a storage."""
    group = dict(view.properties).get("group", view.name)
    reasons = decision.reasons if is_automatic(view) else ()
    return KeptView(view, storage_of(view, decision.storage), decision.storage, group, reached_level(view), reasons)


def reached_level(view: View | OuterJoinView) -> Level:
    """The level of a view that is maintained by what is stored for it."""
    asked = dict(view.properties).get("consistency", "auto")
    return Level.COMPLETE if asked in ("auto", "complete") else Level.STRONG


class _Placed(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def group(self) -> str: ...

    @property
    def level(self) -> Level: ...


def refuse_company(kept: "_Placed", strangers: Sequence[str], others: Mapping[str, Level]) -> None:
    """DefinitionError for a group with views that are maintained otherwise, or at another level."""
    if strangers or any(level is not kept.level for level in others.values()):
        raise DefinitionError(
            f"the views of group {kept.group} are not maintained as {kept.name} is: {', '.join(strangers or others)}",
            "give it a group of its own, or the same storage and consistency",
        )


def properties_of(kept: KeptView) -> dict[str, Any]:
    """What the catalog says of a view."""
    storage, tree = kept.storage, kept.storage.tree
    shown = storage.shown if isinstance(storage, MatOutView) else tree.where
    copies = [
        [kept.table_of(structure.name), list(structure.ids)]
        for structure in storage.structures
        if structure.name.startswith("copy ")
    ]
    return {
        **dict(kept.view.properties),
        **({REASONS: list(kept.reasons)} if kept.reasons else {}),
        SELF_MAINTAINED: kept.as_json(),
        ALGORITHM: kept.storage_name,
        LEVEL: str(kept.level),
        SOURCES: list(kept.sources),
        KEY: None,
        SHOWN: [[column.name, column.expression.sql, column.expression.type] for column in kept.view.output],
        HAVING: " AND ".join(f"({condition.sql})" for condition in shown) or None,
        COMPUTED: {"rows": kept.table_of(storage.read_from), "copies": copies},
    }
