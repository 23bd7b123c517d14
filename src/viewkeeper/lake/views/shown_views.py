"""What readers see of stored tables: a view without its hidden rows and columns, and a family of views as one."""

from collections.abc import Sequence
from functools import reduce

from viewkeeper.algebra.pyspark_names import DataFrame, F, NullType
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.columns import WEIGHT
from viewkeeper.lake.tables.signed_frames import quoted
from viewkeeper.lake.tables.spark_tables import AppendedView, RewrittenView, added_up
from viewkeeper.lake.views.computed_views import ComputedView


class ShownView:
    """What readers see of a stored view: rows that are the same to them become one."""

    def __init__(self, stored: AppendedView | RewrittenView, view: Definition) -> None:
        self._stored, self._view = stored, view

    def signed(self) -> DataFrame:
        return shown_rows(self._stored.signed(), self._view, WEIGHT)

    def bag(self) -> DataFrame:
        return shown_rows(self._stored.bag(), self._view)

    def weights(self) -> DataFrame:
        # Of rows that are there: of one that was deleted, an expression might fail.
        return added_up(shown_rows(self._stored.weights(), self._view, WEIGHT))


MemberView = AppendedView | RewrittenView | ShownView | ComputedView


class FamilyView:
    """Several views read as one: their rows side by side, each padded to the columns of the family."""

    def __init__(self, members: Sequence[tuple[MemberView, Definition]]) -> None:
        self._members = [member for member, _ in members]
        self._views = [view for _, view in members]

    def signed(self) -> DataFrame:
        return padded_rows([member.signed() for member in self._members], self._views, WEIGHT)

    def bag(self) -> DataFrame:
        return padded_rows([member.bag() for member in self._members], self._views)

    def weights(self) -> DataFrame:
        # A NULL that is a group and one that pads are the same, so two members may have the same row.
        return added_up(padded_rows([member.weights() for member in self._members], self._views, WEIGHT))


StoredView = MemberView | FamilyView


def shown_rows(frame: DataFrame, view: Definition, *kept: str) -> DataFrame:
    """Stored rows as readers see them, one by one, with columns that are kept beside them."""
    rows = frame if view.having is None else frame.filter(F.expr(view.having))
    if view.expressions is None:
        columns = [F.col(quoted(name)) for name in view.shown.names]
    else:
        columns = [F.expr(sql).cast(type).alias(name) for name, sql, type in view.expressions]
    return rows.select(*columns, *kept)


def padded_rows(frames: Sequence[DataFrame], views: Sequence[Definition], *kept: str) -> DataFrame:
    """Shown rows of the members of a family as rows of the family, with columns that are kept beside them.

    The first member decides on names and types; where it has nothing but NULL, the first that has something else.
    """
    padded = [
        frame.select(*(F.expr(sql).alias(name) for name, sql in view.padded), *kept)
        for frame, view in zip(frames, views, strict=True)
    ]
    names = [*(name for name, _ in views[0].padded), *kept]
    types = [
        next((type for type in candidates if not isinstance(type, NullType)), candidates[0])
        for candidates in zip(*([field.dataType for field in frame.schema] for frame in padded), strict=True)
    ]
    columns = [F.col(quoted(name)).cast(type).alias(name) for name, type in zip(names, types, strict=True)]
    return reduce(lambda some, more: some.unionAll(more), (frame.toDF(*names).select(*columns) for frame in padded))
