"""How long Spark takes to compute the views from nothing: what keeping them fresh is measured against.

    recompute = read the tables, compute the SELECT of a view, write the result; as Parquet both times

Everything is done in favour of it. The tables are taken out of the databases before, once, and lie there as Parquet;
that is not counted. The faster of two counts; somebody else had better warm Spark up before.
"""

import shutil
import tempfile
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewkeeper.clock import monotonic
from viewkeeper.demo.databases import open_database
from viewkeeper.demo.retail import TABLES, Table
from viewkeeper.demo.views import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 2


def recompute(spark: "SparkSession", urls: Mapping[str, str]) -> dict[str, float]:
    """Seconds for each view."""
    folder = Path(tempfile.mkdtemp(prefix="viewkeeper-recomputed-"))
    names = {f"{source}.{table.name}": f"demo_{source}_{table.name}" for source in urls for table in TABLES[source]}
    try:
        for source, url in urls.items():
            for name, path in _taken_out(source, url, folder).items():
                spark.read.parquet(str(path)).createOrReplaceTempView(names[name])
        rounds = [
            {view: _timed(spark, _over(query, names), folder / view) for view, query in VIEWS.items()}
            for _ in range(ROUNDS)
        ]
        return {view: round(min(one[view] for one in rounds), 3) for view in VIEWS}
    finally:
        for name in names.values():
            spark.catalog.dropTempView(name)
        shutil.rmtree(folder, ignore_errors=True)


def _timed(spark: "SparkSession", query: str, into: Path) -> float:
    begin = monotonic()
    spark.sql(query).write.mode("overwrite").parquet(str(into))
    return monotonic() - begin


def _over(query: str, names: Mapping[str, str]) -> str:
    """The same query over tables of other names."""
    for name, other in names.items():
        query = query.replace(f"{name} ", f"{other} ")
    return query


def _taken_out(source: str, url: str, folder: Path) -> dict[str, Path]:
    """The tables of a database as files of Parquet."""
    import pyarrow.parquet as pq

    database = open_database(url)
    try:
        paths = {f"{source}.{table.name}": folder / f"{source}-{table.name}.parquet" for table in TABLES[source]}
        for table, path in zip(TABLES[source], paths.values(), strict=True):
            pq.write_table(_arrow(table, database.rows(table)), path)
        return paths
    finally:
        database.close()


def _arrow(table: Table, rows: list[Any]) -> Any:
    import pyarrow as pa

    types = {"INTEGER": pa.int32(), "VARCHAR": pa.string(), "DATE": pa.date32(), "DECIMAL": pa.decimal128(8, 2)}
    # SQLite has neither dates nor decimals of its own.
    made = {"DATE": lambda value: date.fromisoformat(str(value)), "DECIMAL": lambda value: _cents(value)}
    columns = {}
    for (name, declared), values in zip(table.columns.items(), zip(*rows, strict=True), strict=True):
        kind = declared.split("(")[0].split()[0]
        columns[name] = pa.array(map(made[kind], values) if kind in made else values, types[kind])
    return pa.table(columns)


def _cents(value: object) -> Decimal:
    return Decimal(str(value)).quantize(Decimal("0.01"))
