"""Large differences and joins of Delta tables go to Spark, and come out the same."""

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable, write_deltalake
from exactness import Recorded, operand, whole
from lake_rows import arrow, random_row
from test_delta import next_events

from viewkeeper.clock import seeded
from viewkeeper.messages import Fetch
from viewkeeper.sources.base import Request
from viewkeeper.sources.delta import DeltaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_differences_and_joins_by_spark_are_exact(tmp_path: Path, spark: "SparkSession") -> None:
    lake = tmp_path / "lake"
    rows = [random_row(seeded(number), number % 5) for number in range(9)]
    write_deltalake(lake / "a", arrow(rows), partition_by=["name"])
    write_deltalake(lake / "b", arrow(rows[:3] * 2))
    request = Request("lake", f"delta://{lake}", "w1")
    source = DeltaSource(request, lambda: spark, tmp_path / "work", small=0)
    a, b = (operand(source.relations[f"lake.{name}"], name, n) for n, name in enumerate("ab"))
    joined = Fetch((a, b), ("a.name", "b.moment", "b.local", "a.price"), (("a.id", "b.id"),))
    # The first job of a session takes long on a busy machine, and a stream is waited for with limited patience.
    begin = source.end()
    DeltaTable(lake / "a").update(new_values={"price": "2.20"}, predicate="id = 1")
    assert next_events(source, begin)
    begin = source.end()
    with Recorded(source, after=begin) as recorded:
        DeltaTable(lake / "a").update(new_values={"price": "1.10"}, predicate="id = 2")
        recorded.read(joined, whole(a.relation))
        DeltaTable(lake / "b").delete("small > 0")
        recorded.read(joined, whole(b.relation))
        recorded.catch_up()
    recorded.check()
    assert len(recorded.transactions) == 2
