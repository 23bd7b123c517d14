"""Numbers that no summary table can have: the changes do not belong to the table, or one of them is damaged.

    0 ≤ COUNT(e) ≤ COUNT(*)        SUM(e) = 0 if COUNT(e) = 0        every sum fits the type in which it is stored

A refresh that meets one stops before anything is changed, and names the table, the group and the numbers. A sum of
DOUBLE over nothing need not be 0: that is rounding, and it goes away with the values.
"""

from collections.abc import Mapping
from decimal import localcontext
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import CorruptChange, ViewkeeperError
from viewkeeper.summary.grouping import ZERO, first
from viewkeeper.summary.node_shape import NodeShape
from viewkeeper.summary.sums import MOST_DIGITS, misfit


def check(shape: NodeShape, groups: pa.Table, old: pa.Table, totals: Mapping[str, pa.Array]) -> None:
    """Check the new counts and exact sums of each group against each other, and against what can be stored."""
    rows = totals[shape.count]
    checks = [(shape.count, pc.less(rows, ZERO), "below 0")]
    for measure in shape.linear:
        if measure.kind == "count":
            checks.append((measure.column, pc.less(totals[measure.column], ZERO), "below 0"))
            checks.append((measure.column, pc.greater(totals[measure.column], rows), f"more than {shape.count}"))
        elif measure.kind == "sum":
            of_nothing = pc.and_(
                pc.equal(totals[measure.count or shape.count], ZERO), pc.not_equal(totals[measure.column], ZERO)
            )
            checks.append((measure.column, of_nothing, "a sum of no values"))
    for column, wrong, why in checks:
        if (group := first(wrong)) is not None:
            before, after = old[column][group].as_py() or 0, totals[column][group].as_py()
            with localcontext(prec=MOST_DIGITS):
                what = f"{column} would be {after}, {why} (stored {before}, changed by {after - before})"
            corrupt(shape, groups, group, what)
    for column, total in totals.items():
        if (group := misfit(total, old.schema.field(column).type)) is not None:
            _overflow(shape, groups, group, column, total[group].as_py(), old.schema.field(column).type)


def corrupt(shape: NodeShape, groups: pa.Table, group: int, what: str) -> NoReturn:
    raise CorruptChange(
        f"{_place(shape, groups, group)}: {what}",
        "nothing was changed; the table and its changes do not belong together: load the view again",
    )


def _overflow(
    shape: NodeShape, groups: pa.Table, group: int, column: str, total: object, type: pa.DataType
) -> NoReturn:
    if pa.types.is_integer(type):
        hint = "CAST what is summed to DECIMAL(38, 0) in the definition of the view"
    else:
        hint = "CAST what is summed to a DECIMAL of fewer digits, or to DOUBLE, in the definition of the view"
    where = _place(shape, groups, group)
    raise ViewkeeperError(f"{where}: {column} would be {total}, which {type} cannot hold", hint, code="overflow")


def _place(shape: NodeShape, groups: pa.Table, group: int) -> str:
    if not shape.keys:
        return f"summary table {shape.table}"
    named = ", ".join(f"{key} = {_told(groups[key][group].as_py())}" for key in shape.keys)
    return f"summary table {shape.table}, group {named}"


def _told(value: object) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, str | bytes) else str(value)
