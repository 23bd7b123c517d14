"""Any history of batches: after every refresh each table is what recomputing it from the base gives."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from summary_model import Row, Table, Tables

from viewkeeper.clock import Random, seeded
from viewkeeper.summary.node_shape import FromNode, Linear, NodeShape, Recomputed

NAN = float("nan")
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [-7, -1, 0, 2, 3, 11]),
    "boolean": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["", "Z", "a", "ab", "é", "\uffff", "\U0001f600"]),
    "binary": (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
    "decimal": (pa.decimal128(10, 2), [Decimal("-9.50"), Decimal("0.00"), Decimal("2.25"), Decimal("10.00")]),
    "double": (pa.float64(), [NAN, float("-inf"), -2.5, 0.0, 1.0, float("inf")]),
    "date": (pa.date32(), [date(2024, 1, 1) + timedelta(days=days) for days in (-400, 0, 1, 30)]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]),
}
STORE, CITY, VALUE, QTY, PRICE, WEIGHT = range(6)
"""the columns of the base: two to group by, one for extremes, three to sum"""


def tables(value_type: pa.DataType) -> list[Table]:
    types = {"store": pa.int64(), "city": pa.string(), "value": value_type, "n": pa.int64(), "rest": pa.float64()}
    sums = {"qty": (QTY, pa.int64()), "price": (PRICE, pa.decimal128(20, 2)), "weight": (WEIGHT, pa.float64())}
    linear, arguments = [Linear("n_value", "count")], {"n_value": VALUE}
    types |= {"n_value": pa.int64()}
    for name, (column, type) in sums.items():
        rest = "rest" if name == "weight" else None
        kind = "sum" if rest is None else "float_sum"
        linear += [Linear(f"n_{name}", "count"), Linear(f"sum_{name}", kind, f"n_{name}", rest)]
        arguments |= {f"n_{name}": column, f"sum_{name}": column}
        types |= {f"n_{name}": pa.int64(), f"sum_{name}": type}
    extremes = {"least": value_type, "most": value_type, "kinds": pa.int64(), "low": value_type, "high": value_type}
    types |= extremes
    arguments |= dict.fromkeys(extremes, VALUE)
    hidden = NodeShape("hidden", ("store", "city", "value"), "n", ())

    def over(name: str, keys: dict[str, int]) -> Table:
        columns = tuple(keys)
        derived = [
            FromNode(column, function, "hidden", columns, "value")
            for column, function in (("least", "min"), ("most", "max"), ("kinds", "distinct"))
        ]
        recomputed = [
            Recomputed(column, function, "n_value", f"ins_{column}", f"del_{column}")
            for column, function in (("low", "min"), ("high", "max"))
        ]
        shape = NodeShape(name, columns, "n", tuple(linear), tuple(derived), tuple(recomputed))
        return Table(shape, tuple(keys.values()), arguments, types)

    return [
        over("by_store_and_city", {"store": STORE, "city": CITY}),
        over("by_city", {"city": CITY}),
        over("of_all", {}),
        Table(hidden, (STORE, CITY, VALUE), {}, types),
    ]


def drawn(rng: Random, values: list[Any]) -> Row:
    return (
        rng.choice([1, 1, 2, None]),
        rng.choice(["Rome", "Bari", None]),
        rng.choice([*values, None]),
        rng.choice([-3, 0, 4, None]),
        rng.choice([Decimal("-1.25"), Decimal("0.00"), Decimal("99999999999999.99"), None]),
        rng.choice([-0.5, 0.25, 1e6, None]),
    )


def batch(rng: Random, base: Counter[Row], values: list[Any]) -> Counter[Row]:
    """Insertions, deletions, updates of one column, whole groups that go; all kinds, one, or none."""
    kind = rng.choice(["any", "any", "any", "inserts", "deletes", "nothing", "all", "a group", "updates"])
    changes: Counter[Row] = Counter()
    rows = sorted(base.elements(), key=repr)
    if kind in ("any", "inserts"):
        changes.update(drawn(rng, values) for _ in range(rng.randrange(8)))
    if kind in ("any", "deletes"):
        changes.subtract(rng.sample(rows, rng.randrange(min(len(rows), 8) + 1)))
    if kind == "all":
        changes.subtract(rows)
    if kind == "a group" and rows:
        city = rng.choice(rows)[CITY]
        changes.subtract(row for row in rows if row[CITY] == city)
    if kind == "updates":
        for row in rng.sample(rows, min(len(rows), 4)):
            column = rng.choice([VALUE, QTY, PRICE])
            changes[row] -= 1
            changes[(*row[:column], drawn(rng, values)[column], *row[column + 1 :])] += 1
    return changes


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", range(3))
def test_every_refresh_equals_recomputation(name: str, seed: int) -> None:
    rng = seeded(seed)
    type, values = VALUES[name]
    # NaN is one object, so that rows with it are equal.
    kept = Tables(tables(type), [drawn(rng, values) for _ in range(rng.choice([0, 3, 20]))])

    def split(signed: list[tuple[Row, int]]) -> list[list[tuple[Row, int]]]:
        """Some groups get several rows in a summary-delta."""
        parts: list[list[tuple[Row, int]]] = [[], []]
        for change in signed:
            parts[rng.randrange(2)].append(change)
        return parts

    for _ in range(8):
        changes = batch(rng, kept.base, values)
        asked = len(kept.recomputed)
        kept.apply(changes, split if rng.randrange(2) else None)
        assert len(kept.recomputed) <= asked + 1, "recomputed in more than one call"
        if min(changes.values(), default=0) >= 0:
            assert len(kept.recomputed) == asked, "insertions alone recompute nothing"
