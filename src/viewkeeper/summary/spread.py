"""Σ (e - mean)² from values with their counts: in Arrow, and as Spark SQL.

    c = Σ n e / Σ n            r = Σ n (e - c)            M = Σ n (e - c)² - r² / Σ n

Of sums of squares nothing is left where values are large beside their differences, nor after a large one is deleted.
Here the differences are squared. c is rounded, and r makes up for that. NaN and infinity make it NaN, as in Spark.
Of exact numbers e is the difference from the least of the group, so that none of their digits is lost in a DOUBLE.
"""

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.sql.type_families import MAX_PRECISION, Family, type_named
from viewkeeper.summary.grouping import ZERO, ZERO_POINT, by_group, canonical_floats

_DOWN, _UP = pa.scalar(2.0**-64), pa.scalar(2.0**64)
"""so that the sum of the largest values is finite"""


def spreads(places: pa.Array, values: pa.Array, counts: pa.Array, groups: int) -> pa.Array:
    """M of each group, NULL without a value. A value may occur several times; its counts are then added up."""
    if pa.types.is_floating(values.type):
        values = canonical_floats(values.cast(pa.float64()))
    rows = pa.table({"place": places, "value": values, "count": counts})
    rows = rows.filter(pc.is_valid(rows["value"]))
    rows = rows.group_by(["place", "value"], use_threads=False).aggregate([("count", "sum")])
    rows = rows.filter(pc.greater(rows["count_sum"], ZERO))
    place, value, count = (rows[name].combine_chunks() for name in ("place", "value", "count_sum"))
    value = _near(place, value, groups)
    weight = count.cast(pa.float64())
    sums = by_group(place, groups, {"n": weight, "s": pc.multiply(pc.multiply(value, _DOWN), weight)}, "sum")
    center = pc.multiply(pc.divide(sums["s"], sums["n"]), _UP)
    away = pc.subtract(value, center.take(place))
    rest = pc.multiply(away, weight)
    moments = by_group(place, groups, {"r": rest, "d": pc.multiply(rest, away)}, "sum")
    less = pc.divide(pc.multiply(moments["r"], moments["r"]), sums["n"])
    made = pc.subtract(moments["d"], pc.if_else(pc.is_finite(moments["d"]), less, ZERO_POINT))
    return pc.if_else(pc.less(made, ZERO_POINT), ZERO_POINT, made)


def _near(places: pa.Array, values: pa.Array, groups: int) -> pa.Array:
    """Values as DOUBLE; exact ones less the least of their group."""
    if pa.types.is_floating(values.type):
        return values
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    # Twice the digits: no difference of two values overflows.
    wide = values.cast(pa.decimal256(2 * MAX_PRECISION - 1, scale))
    least = by_group(places, groups, {"least": wide}, "min")["least"]
    return pc.subtract(wide, least.take(places)).cast(pa.float64())


def spread_table(rows: str, keys: list[str], made_of: dict[str, tuple[str, str, str]]) -> str:
    """The statement of M by keys: each column from a value and its count, columns of `rows`, all of them quoted, and
    the type of the value."""
    partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
    items, centers, near = [], [], []
    for place, (column, (value, count, type)) in enumerate(made_of.items()):
        known = f"CAST(IF({value} IS NULL, NULL, {count}) AS DOUBLE)"
        if type_named(type).family is Family.FLOATING:
            value = f"CAST({value} AS DOUBLE)"
        else:
            near.append(f"{difference(value, f'MIN({value}) OVER ({partition})')} AS _vk_e{place}")
            value = f"_vk_e{place}"
        total = f"SUM({value} * {_DOWN.as_py()!r}D * {known}) OVER ({partition}) / SUM({known}) OVER ({partition})"
        centers += [f"{known} AS _vk_n{place}", f"{value} - {total} * {_UP.as_py()!r}D AS _vk_a{place}"]
        far, rest = f"SUM(_vk_n{place} * _vk_a{place} * _vk_a{place})", f"SUM(_vk_n{place} * _vk_a{place})"
        less = f"{rest} * {rest} / SUM(_vk_n{place})"
        # Nothing can be taken from an infinite sum, and NaN is greater than all numbers.
        made = f"GREATEST({far} - IF({far} < DOUBLE('Infinity'), {less}, 0D), 0D)"
        items.append(f"IF(COUNT(_vk_n{place}) = 0, NULL, {made}) AS {column}")
    if near:
        rows = f"(SELECT {', '.join(['*', *near])} FROM {rows})"
    inner = f"SELECT {', '.join([*keys, *centers])}\nFROM {rows}"
    by = f"\nGROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *items])}\nFROM (\n{inner}\n){by}"


def difference(a: str, b: str) -> str:
    """a - b of exact numbers as DOUBLE: all digits of it, unless it has more than their type."""
    return f"COALESCE(CAST(try_subtract({a}, {b}) AS DOUBLE), CAST({a} AS DOUBLE) - CAST({b} AS DOUBLE))"
