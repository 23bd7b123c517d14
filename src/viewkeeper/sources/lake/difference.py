"""The difference of two contents of a relation, as a signed bag.

    Δ = Σ rows of new files - Σ rows of old files          grouped by all columns, zeros dropped

A file that both contents have is not read: its rows would cancel. What is left is added up in Python if it is small,
by Arrow if it fits the driver, and by Spark otherwise. Deletions come first, so that a row that is replaced keeps its
key.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Change
from viewkeeper.sources.lake.column_types import python_values
from viewkeeper.sources.lake.content import WEIGHT, Content, DataFile
from viewkeeper.sources.lake.workshop import Workshop, total

Signed = tuple[Content, int]
"""A content and the weight of its rows: +1 or -1."""


def difference(old: Content, new: Content, workshop: Workshop) -> list[Change]:
    """What turns the old content into the new one."""
    before = Counter(map(_identity, old.files))
    after = Counter(map(_identity, new.files))
    gone, come = _only(old.files, after), _only(new.files, before)
    minus, plus = replace(old, files=gone), replace(new, files=come)
    # With nothing to cancel, the result is as large as what is read.
    rows = total((*gone, *come)) if gone and come else 0
    if rows <= workshop.small:
        return netted([(minus, -1), (plus, 1)])
    if rows <= workshop.on_driver:
        return _netted_by_arrow(minus, plus)
    from viewkeeper.sources.lake.on_spark import netted_on_spark

    return changes(new.relation.name, netted_on_spark(minus, plus, workshop))


def netted(parts: Iterable[Signed]) -> list[Change]:
    """The sum of contents of one relation, on the driver."""
    weights: Counter[Row] = Counter()
    name = ""
    for content, sign in parts:
        name = content.relation.name
        for rows in content.rows(content.relation.columns):
            if sign > 0:
                weights.update(rows)
            else:
                weights.subtract(rows)
    return changes(name, weights.items())


def _netted_by_arrow(minus: Content, plus: Content) -> list[Change]:
    columns = list(plus.relation.columns)
    signed = plus.schema.append(pa.field(WEIGHT, pa.int64()))
    batches = [
        batch.append_column(WEIGHT, pa.repeat(pa.scalar(sign, pa.int64()), batch.num_rows)).cast(signed)
        for content, sign in ((minus, -1), (plus, 1))
        for batch in content.batches(columns)
    ]
    grouped = pa.Table.from_batches(batches, schema=signed).group_by(columns).aggregate([(WEIGHT, "sum")])
    left = grouped.filter(pc.not_equal(grouped[f"{WEIGHT}_sum"], 0))
    # Arrow tells 0.0 from -0.0, and SQL does not.
    weights: Counter[Row] = Counter()
    values = zip(*(python_values(left[column]) for column in columns), strict=True)
    for row, weight in zip(values, left[f"{WEIGHT}_sum"].to_pylist(), strict=True):
        weights[row] += weight
    return changes(plus.relation.name, weights.items())


def changes(relation: str, weights: Iterable[tuple[Row, int]]) -> list[Change]:
    """Signed rows as changes, deletions first."""
    made = [Change(relation, row, weight) for row, weight in weights if weight]
    made.sort(key=lambda change: change.count > 0)
    return made


def _identity(file: DataFile) -> tuple[str, tuple[tuple[str, object], ...]]:
    return str(file.path), tuple(sorted(file.constants.items()))


def _only(
    files: Sequence[DataFile], others: Counter[tuple[str, tuple[tuple[str, object], ...]]]
) -> tuple[DataFile, ...]:
    """The files that the other content does not have, or not as often."""
    left = Counter(others)
    only = []
    for file in files:
        if left[_identity(file)] > 0:
            left[_identity(file)] -= 1
        else:
            only.append(file)
    return tuple(only)
