"""MIN and MAX looked up in a hidden node that is too large for the driver: few of its rows come there."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from viewkeeper.clock import seeded
from viewkeeper.maintenance.contents import SparkContent, frame_of_table
from viewkeeper.summary.content import ArrowContent, Content, Found
from viewkeeper.summary.grouping import ONE_ROW
from viewkeeper.summary.node_shape import FromNode, NodeShape
from viewkeeper.summary.refresh import refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {"shop": pa.int64(), "value": pa.float64(), "n": pa.int64()}


def values_of(seed: int) -> pa.Table:
    rng = seeded(seed)
    pool = [None, float("nan"), float("inf"), *(float(number) for number in range(150))]
    pairs = sorted({(shop, value) for shop in (1, 2) for value in rng.sample(pool, 100)}, key=repr)
    return pa.Table.from_pylist([{"shop": shop, "value": value, "n": 1} for shop, value in pairs], pa.schema(TYPES))


def shapes(keys: tuple[str, ...]) -> list[NodeShape]:
    derived = tuple(
        FromNode(name, function, "values", keys, "value") for name, function in (("least", "min"), ("most", "max"))
    )
    return [NodeShape("kept", keys, "n", (), derived), NodeShape("values", (*keys, "value"), "n", ())]


class Watched:
    """A content in Spark, and how many rows of it came to the driver."""

    def __init__(self, content: SparkContent) -> None:
        self._content, self.rows, self.came = content, content.rows, 0

    def find(self, columns: tuple[str, ...], values: pa.Table) -> Found:
        return self._seen(self._content.find(columns, values))

    def best(self, *asked: Any) -> Found:
        return self._seen(self._content.best(*asked))

    def _seen(self, found: Found) -> Found:
        self.came += found.rows.num_rows
        return found


@pytest.mark.parametrize("keys", [(), ("shop",)], ids=["total", "by-shop"])
def test_a_lost_extreme_is_found_among_few_rows(spark: "SparkSession", keys: tuple[str, ...]) -> None:
    values = values_of(3)
    if not keys:
        once = {row["value"]: row for row in values.to_pylist() if row["shop"] == 1}
        values = pa.Table.from_pylist([*once.values()], pa.schema(TYPES)).select(["value", "n"])
    for shop in (1, 2) if keys else (None,):
        own = sorted(
            {row["value"] for row in values.to_pylist() if row.get("shop") == shop and row["value"] is not None},
            key=_rank,
        )
        lost = [*own[:3], *own[-2:]]
        gone = pa.Table.from_pylist(
            [{**({"shop": shop} if keys else {}), "value": value, "n": -1} for value in lost],
            values.schema,
        )
        table = _table(values, keys)
        delta = pa.table({**({"shop": [shop]} if keys else {}), "n": [-len(lost)]})
        found = {}
        for engine in ("memory", "spark"):
            content: Content = ArrowContent(values)
            if engine == "spark":
                watched = content = Watched(SparkContent(frame_of_table(spark, values), values.num_rows))
            done = refresh(
                shapes(keys), {"kept": ArrowContent(table), "values": content}, {"kept": delta, "values": gone}
            )
            found[engine] = [(row["least"], row["most"]) for row in done["kept"].after.to_pylist()]
        assert repr(found["spark"]) == repr(found["memory"]) == repr([(own[3], own[-3])])
        # The rows that disappeared, and for each extreme one more than these.
        assert watched.came <= 3 * len(lost) + 2 < values.num_rows // 2


def test_without_keys_and_values_there_is_nothing(spark: "SparkSession") -> None:
    values = values_of(1)
    content = SparkContent(frame_of_table(spark, values), values.num_rows)
    assert content.best((), ONE_ROW.slice(0, 0), "value", "min", 3).rows.num_rows == 0
    assert content.best((), ONE_ROW, "value", "max", 2).rows["n"].to_pylist() == [1, 1]


def _rank(value: float) -> tuple[bool, float]:
    return (value != value, value if value == value else 0.0)


def _table(values: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    made = []
    for shop in (1, 2) if keys else (None,):
        own = [row["value"] for row in values.to_pylist() if row.get("shop") == shop]
        known = sorted((value for value in own if value is not None), key=_rank)
        made.append({**({"shop": shop} if keys else {}), "n": len(own), "least": known[0], "most": known[-1]})
    return pa.Table.from_pylist(made)
