"""A self-maintained view compared with its sources: its text run by Spark, and its structures computed, over the
relations at its vector."""

from typing import Any

from viewkeeper.maintenance.audits import Audit, audited
from viewkeeper.maintenance.original_rows import original_rows
from viewkeeper.maintenance.self_maintained.views import SelfMaintainedViews
from viewkeeper.planner.self_maintained.kept_view import KeptView


def audit(views: SelfMaintainedViews, name: str) -> Audit:
    """Compute a view from its sources at its own vector, and compare it with what its readers see."""
    context, kept = views.context, views.views()[name]
    with views.contents(kept, context.relations()) as (contents, _):
        structures, _ = views.computed(kept, contents)
        stored = context.stored(name).keep(kept.view.columns)
        with original_rows(context.files.spark(), contents, kept.view.relations) as original:
            text = original.of(kept.view.sql, kept.view.operands, kept.view.columns)
            difference = context.engines.of_frame(text) - stored
            wrong = [] if difference.is_empty() else list(difference.weights())
        rows = stored.size()
        different = [table for table, one in kept.tables.items() if not _same(views, kept, table, structures[one.name])]
    return audited(name, context.writer.last.groups[kept.group], rows, wrong, different)


def _same(views: SelfMaintainedViews, kept: KeptView, table: str, expected: Any) -> bool:
    """Whether a structure is what it should be. Which number a row without a key was given does not matter."""
    numbers = {leaf.ids[0] for leaf in kept.storage.tree.leaves if leaf.numbered}
    columns = tuple(column for column in kept.tables[table].columns if column not in numbers)
    return bool((expected.keep(columns) - views.context.stored(table).keep(columns)).is_empty())
