"""Groups of rows in Arrow: numbered null-safely, and aggregated by number.

    groups, (n, m) = numbered((r, s), keys)      r[i].keys = groups[n[i]],  s[j].keys = groups[m[j]]
    by_group(n, ..., "sum")                      one number per group, in the order of `groups`

Once groups have numbers, whatever is known of them is an array with a place per group, and a join is `take`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

# Whenever Arrow is given a value of Python, it tries to import a package that nobody installs: once is enough.
TRUE, FALSE = pa.scalar(True), pa.scalar(False)
ZERO, ONE, MINUS_ONE = (pa.scalar(number, pa.int64()) for number in (0, 1, -1))
ZERO_POINT = pa.scalar(0.0)
NAN = pa.scalar(float("nan"))

ONE_ROW = pa.table({"no column": [None]}).select([])
"""The group of a table without keys."""


def numbered(tables: Sequence[pa.Table], keys: tuple[str, ...]) -> tuple[pa.Table, list[pa.Array]]:
    """The groups that occur in these tables, in the order of their first rows, and the number of each row's group.

    NULL and NaN are values like any other. Without keys there is one group, whether there are rows or not.
    """
    if not keys:
        return ONE_ROW, [pa.repeat(ZERO, table.num_rows) for table in tables]
    types = tables[0].select(keys).schema.types
    places = [f"key {place}" for place in range(len(keys))]
    rows = pa.concat_tables(
        [
            pa.table(
                {
                    place: canonical_floats(table[key].cast(type))
                    for place, key, type in zip(places, keys, types, strict=True)
                }
            )
            for table in tables
        ]
    )
    listed = (
        rows.append_column("row", pa.arange(0, rows.num_rows))
        .group_by(places, use_threads=False)
        .aggregate([("row", "list"), ("row", "min")])
    )
    # Arrow promises no order of groups. It is that of their first rows here, so that all of `tables[0]` come first.
    listed = listed.take(pc.sort_indices(listed["row_min"]))
    members = listed["row_list"].combine_chunks()
    numbers = pc.scatter(pc.list_parent_indices(members), members.flatten()).cast(pa.int64())
    parts, start = [], 0
    for table in tables:
        parts.append(numbers.slice(start, table.num_rows))
        start += table.num_rows
    return listed.select(places).rename_columns(list(keys)), parts


def by_group(
    numbers: pa.Array, groups: int, columns: Mapping[str, pa.Array], function: Literal["sum", "min"]
) -> dict[str, pa.Array]:
    """Columns aggregated by group; NULL where there is nothing to aggregate."""
    if not columns:
        return {}
    places = {name: f"value {place}" for place, name in enumerate(columns)}
    rows = pa.table({"group": numbers, **{places[name]: column for name, column in columns.items()}})
    grouped = rows.group_by("group", use_threads=False).aggregate([(place, function) for place in places.values()])
    of_group = pc.scatter(pa.arange(0, grouped.num_rows), grouped["group"].combine_chunks(), max_index=groups - 1)
    return {name: grouped[f"{place}_{function}"].combine_chunks().take(of_group) for name, place in places.items()}


def placed(values: pa.Array, numbers: pa.Array, groups: int) -> pa.Array:
    """Values at the places of their groups; NULL elsewhere."""
    return values.take(pc.scatter(pa.arange(0, len(values)), numbers, max_index=groups - 1))


def surely(mask: pa.Array) -> pa.Array:
    """True where a condition is known to hold: what compares with NULL does not."""
    return pc.fill_null(mask, FALSE)


def all_of(mask: pa.Array, *others: pa.Array) -> pa.Array:
    """Where all conditions hold."""
    for other in others:
        mask = pc.and_(mask, other)
    return mask


def first(mask: pa.Array) -> int | None:
    """The first place where a condition holds."""
    place = int(pc.index(mask, TRUE).as_py())
    return None if place < 0 else place


def same(left: pa.Array, right: pa.Array) -> pa.Array:
    """Where two columns agree, NULL with NULL and NaN with NaN."""
    agree = pc.or_(surely(pc.equal(left, right)), pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        agree = pc.or_(agree, pc.and_(surely(pc.is_nan(left)), surely(pc.is_nan(right))))
    return agree


def canonical_floats(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """-0.0 as 0.0 and one NaN: values that are equal to SQL are then equal to Arrow, whose hash tables go by bits."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), NAN.cast(column.type), pc.add(column, ZERO_POINT.cast(column.type)))
