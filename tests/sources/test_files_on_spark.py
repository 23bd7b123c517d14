"""Large differences, joins and keys of a folder go to Spark, and come out the same."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from exactness import Recorded, matching, operand, read, whole
from lake_rows import WRITTEN, arrow, random_row, write
from test_files import next_events

from viewkeeper.clock import seeded
from viewkeeper.errors import SourceUnfit
from viewkeeper.messages import Fetch
from viewkeeper.sources.base import Request
from viewkeeper.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def source_of(folder: Path, spark: "SparkSession", query: str) -> FilesSource:
    """Everything is large to it."""
    url = f"files://{folder}?poll=20ms&quiet=5ms&{query}"
    return FilesSource(Request("shop", url, "w1"), lambda: spark, folder.with_name("work [space]"), small=0)


def test_differences_and_joins_by_spark_are_exact(tmp_path: Path, spark: "SparkSession") -> None:
    folder, random = tmp_path / "lake", seeded(11)
    pool = [random_row(seeded(number), number % 5) for number in range(9)]
    write(folder / "a.csv", arrow(pool[:5]))
    write(folder / "b" / "1.parquet", arrow(pool[2:4] * 2))
    schema = quote(WRITTEN)
    source = source_of(folder, spark, f"schema.a={schema}")
    a, b = (operand(source.relations[f"shop.{name}"], name, n) for n, name in enumerate("ab"))
    joined = Fetch((a, b), ("a.name", "b.moment", "b.local", "a.price"), (("a.id", "b.id"),))
    some = Fetch(
        (a, b), a.columns, joined.equal, ("b.small", "a.id"), tuple((row[2], row[0]) for row in pool if row[2])
    )
    # The first job of a session takes long on a busy machine, and a stream is waited for with limited patience.
    begin = source.end()
    write(folder / "a.csv", arrow(pool[:4]))
    assert next_events(source, begin)
    with Recorded(source) as recorded:
        for step in range(3):
            write(folder / "a.csv", arrow(random.choices(pool, k=7)))
            write(folder / "b" / f"{random.randrange(2)}.parquet", arrow(random.choices(pool, k=5)))
            if step == 1:
                write(folder / "b" / "copy.parquet", arrow(pool[2:4] * 2))
            recorded.catch_up()
            recorded.read(joined, some, whole(a.relation), matching(b.relation, "id", 2, 3))
    recorded.check()
    assert len(recorded.transactions) >= 3


def test_a_key_that_is_checked_by_spark(tmp_path: Path, spark: "SparkSession") -> None:
    folder = tmp_path / "lake"
    rows = [random_row(seeded(number), number) for number in range(4)]
    write(folder / "a.parquet", arrow(rows))
    source = source_of(folder, spark, "key=id,name")
    relation = source.relations["shop.a"]
    source.install()
    kept = [row for row in rows if row[5] is not None]
    write(folder / "a.parquet", arrow(kept))
    source.install()
    assert read(source, whole(relation))[1] == [Counter(kept)]
    write(folder / "a.parquet", arrow([*kept, kept[0]]))
    source.install()
    with pytest.raises(SourceUnfit, match="two rows have the key id = "):
        read(source, whole(relation))
