"""VAR and STDDEV after any insertions and deletions, on the driver and in Spark, of large values too."""

import math
import sqlite3
import statistics
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from viewkeeper import Warehouse
from viewkeeper.clock import seeded
from viewkeeper.maintenance import contents
from viewkeeper.maintenance.contents import SparkContent, frame_of_table
from viewkeeper.maintenance.summaries import first_content, input_changes
from viewkeeper.maintenance.summaries import round as rounds
from viewkeeper.sql.expressions import Expression
from viewkeeper.sql.summary_view import Aggregate
from viewkeeper.summary import defined, measures
from viewkeeper.summary.content import ArrowContent
from viewkeeper.summary.spread import spreads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FUNCTIONS = ("VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")


def expected(values: list[Any], function: str) -> float | None:
    """What exact arithmetic gives, rounded once; NaN of what is not finite."""
    present = [value for value in values if value is not None]
    if len(present) < (2 if "SAMP" in function else 1):
        return None
    if not all(math.isfinite(value) for value in present):
        return math.nan
    exact = [Fraction(value) for value in present]
    found = float((statistics.variance if "SAMP" in function else statistics.pvariance)(exact))
    return math.sqrt(found) if function.startswith("STDDEV") else found


def alike(found: float | None, right: float | None) -> bool:
    if found is None or right is None:
        return found is right
    return math.isclose(found, right, rel_tol=1e-12) or (math.isnan(found) and math.isnan(right))


class Shop:
    """Numbers by group in a database, and summaries of them."""

    def __init__(self, folder: Path, spark: "SparkSession | None" = None, columns: str = "xidp") -> None:
        self.columns, self.views = columns, [f"by_{column}" for column in columns]
        self.database = sqlite3.connect(folder / "s.db", isolation_level=None)
        self.database.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, x DOUBLE, i BIGINT, d DECIMAL(12, 4), p DECIMAL(15, 2))"
        )
        self.warehouse = Warehouse.open(folder / "lake", spark)

    def insert(self, *rows: tuple[int, int, float | None, int, str, str]) -> None:
        self.database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)

    def add_source(self) -> None:
        path = self.database.execute("PRAGMA database_list").fetchone()[2]
        self.warehouse.add_source("s", f"sqlite:///{path}", install=True)

    def create(self) -> None:
        self.add_source()
        for column in self.columns:
            items = ", ".join(f"{function}({column}) AS {function}" for function in FUNCTIONS)
            self.warehouse.create_view(f"CREATE MATERIALIZED VIEW by_{column} AS SELECT g, {items} FROM s.t GROUP BY g")
        self.warehouse.create_view("CREATE MATERIALIZED VIEW total AS SELECT VAR_POP(x) AS v FROM s.t")

    def assert_right(self) -> None:
        for column in self.columns:
            stored = {row["g"]: row for row in self.warehouse.arrow(f"by_{column}").to_pylist()}
            values: dict[int, list[Any]] = {}
            for group, value in self.database.execute(f"SELECT g, {column} FROM t"):
                values.setdefault(group, []).append(Decimal(str(value)) if column in "dp" else value)
            assert stored.keys() == values.keys()
            for group, own in values.items():
                for function in FUNCTIONS:
                    right = expected(own, function)
                    assert alike(stored[group][function], right), (column, group, function, stored[group], right)
        every = [value for (value,) in self.database.execute("SELECT x FROM t")]
        assert alike(self.warehouse.arrow("total").to_pylist()[0]["v"], expected(every, "VAR_POP"))

    def close(self) -> None:
        self.warehouse.close()
        self.database.close()


FIRST = [
    (1, 1, 1e9, 10**15, "1.0000", "1000000000000.00"),
    (2, 1, 1e9 + 1, 10**15 + 1, "1.0001", "1000000000000.01"),
    (3, 1, 1e9 + 2, 10**15 + 2, "1.0002", "1000000000000.02"),
    (4, 2, 1e15, 5, "1", "1"),
    (5, 2, 1e15 + 1, 6, "1.5", "1.5"),
    (6, 2, 1e15 + 2, 6, "99999999.9999", "1.5"),
    (7, 3, 1e150, 1, "1", "1"),
    (8, 3, 1.0, 2, "2", "2"),
    (9, 3, 2.0, 3, "3", "3"),
    (10, 4, None, 3, "3", "3"),
    (11, 5, 1e-9, 3, "3", "3"),
    (12, 5, 2e-9, 3, "3", "3"),
]


ALL_IN_SPARK = pytest.param(("spark", "xidp"), marks=pytest.mark.soak)


@pytest.fixture(params=[("driver", "xidp"), ("spark", "xd"), ALL_IN_SPARK], ids="-".join)
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    engine, columns = request.param
    if engine == "spark":
        for module in (rounds, contents, first_content):
            monkeypatch.setattr(module, "SMALL", 0)
        monkeypatch.setattr(contents, "MOST_ON_DRIVER", 0)
        monkeypatch.setattr(input_changes, "MOST_CHANGES_ON_DRIVER", 0)
    with closing(Shop(tmp_path, spark, columns)) as made:
        yield made


def test_variances_after_insertions_and_deletions(shop: Shop) -> None:
    shop.insert(*FIRST)
    shop.create()
    shop.assert_right()
    assert [audit.view for audit in shop.warehouse.audits(*shop.views) if not audit.clean] == []
    # Of these Spark's own VAR has six digits; of squares of such times in nanoseconds no type holds the sum.
    rng = seeded(5)
    times = (1_700_000_000_000_000_000 + rng.randrange(1000) for _ in range(100))
    shop.insert(*((100 + number, 7, 1e9 + rng.random(), time, "1", "1") for number, time in enumerate(times)))
    shop.warehouse.catch_up()
    shop.assert_right()
    assert all(audit.clean for audit in shop.warehouse.audits(*shop.views[:2]))
    # Large values go, and a group is down to one row.
    shop.database.execute("DELETE FROM t WHERE id IN (1, 4, 5, 7)")
    shop.insert((20, 6, 7.0, 1, "1", "1"), (21, 1, 1e9 + 2, 10**15, "1", "1"))
    shop.warehouse.catch_up()
    shop.assert_right()
    shop.insert((30, 3, math.inf, 1, "1", "1"), (31, 5, -math.inf, 1, "1", "1"))
    shop.warehouse.catch_up()
    shop.assert_right()
    shop.database.execute("DELETE FROM t WHERE id IN (30, 31, 20)")
    shop.warehouse.catch_up()
    shop.assert_right()
    # By no group, and by one that is computed: from the values that are stored behind another table.
    right = expected([row[0] for row in shop.database.execute("SELECT x FROM t WHERE g > 1")], "VAR_SAMP")
    asked = "SELECT VAR_SAMP(x) AS v, COUNT(*) AS n FROM s.t WHERE g > 1"
    assert alike(shop.warehouse.sql(asked).collect()[0]["v"], right)
    found = shop.warehouse.sql("SELECT g > 2 AS high, STDDEV(x) AS v FROM s.t GROUP BY g > 2").collect()
    for row in found:
        own = [x for g, x in shop.database.execute("SELECT g, x FROM t") if (g > 2) == row["high"]]
        assert alike(row["v"], expected(own, "STDDEV_SAMP"))
    assert len(found) == 2


def test_an_audit_knows_what_spark_rounds(tmp_path: Path, spark: "SparkSession") -> None:
    with closing(Shop(tmp_path, spark)) as shop:
        rng = seeded(7)
        # Large beside their differences; and entries of a ledger that add up to 0.
        shop.insert(*((number, number % 2, 1e9 + rng.random(), 1, "1", "1") for number in range(400)))
        entries = [rng.uniform(-1e6, 1e6) for _ in range(1000)]
        entries += [-entry for entry in entries]
        shop.insert(*((1000 + number, 9, entry, 2, "1", "1") for number, entry in enumerate(entries)))
        shop.add_source()
        shop.warehouse.create_view(
            "CREATE MATERIALIZED VIEW cubed AS SELECT i, g, STDDEV(x) AS s FROM s.t GROUP BY CUBE(i, g)"
        )
        shop.warehouse.create_view(
            "CREATE MATERIALIZED VIEW sums AS SELECT i, SUM(x) AS s, AVG(x) AS a FROM s.t GROUP BY i"
        )
        audits = shop.warehouse.audits("cubed", "sums")
        assert [audit.view for audit in audits if not audit.clean] == []
        wrong = shop.warehouse.arrow("sums").to_pylist()
        assert all(abs(row["s"]) < 1e-3 for row in wrong if row["i"] == 2)


def test_what_an_earlier_version_stored_is_reloaded(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Shop(tmp_path, spark)) as shop, monkeypatch.context() as earlier:
        shop.insert(*FIRST)

        def only_of_double(aggregate: Aggregate, argument: Expression) -> bool:
            return aggregate.function in measures.SPREADS and argument.type == "DOUBLE"

        for module in (measures, defined):
            earlier.setattr(module, "is_spread_of_values", only_of_double)
        shop.add_source()
        shop.warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT g, VAR_POP(i) AS v FROM s.t GROUP BY g")
        assert shop.warehouse.status().halted == {}
    with closing(sqlite3.connect(tmp_path / "s.db")) as database, Warehouse.open(tmp_path / "lake", spark) as warehouse:
        warehouse.catch_up()
        assert "an earlier viewkeeper" in str(warehouse.status().halted["v"])
        warehouse.reload("v")
        assert warehouse.status().halted == {}
        database.execute("DELETE FROM t WHERE id = 1")
        database.commit()
        warehouse.catch_up()
        assert {row["g"]: row["v"] for row in warehouse.arrow("v").to_pylist()}[1] == 0.25
        assert warehouse.audit("v").clean


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [0.0, 1e9, 1e15, -1e15, 1e100, 1e-12])
def test_spreads_of_values_with_counts(seed: int, offset: float) -> None:
    rng = seeded(seed)
    rows = [
        (rng.randrange(5), offset + rng.uniform(-3, 3) * max(1.0, abs(offset) * 1e-14), rng.randrange(1, 4))
        for _ in range(60)
    ]
    places, values, counts = (pa.array(column) for column in zip(*rows, strict=True))
    found = spreads(places.cast(pa.int64()), values, counts.cast(pa.int64()), 6).to_pylist()
    for group in range(6):
        own = [value for place, value, count in rows if place == group for _ in range(count)]
        variance = expected(own, "VAR_POP")
        assert alike(found[group], None if variance is None else variance * len(own))


def test_spreads_in_spark_are_those_on_the_driver(spark: "SparkSession") -> None:
    rows = pa.table(
        {
            "g": pa.array([1, 1, 1, 2, 2, None, 3], pa.int64()),
            "v": [1e15, 1e15 + 1, 1e15 + 4, math.nan, 1.0, 5.0, None],
            "n": pa.array([1, 2, 1, 1, 1, 3, 1], pa.int64()),
        }
    )
    changed = pa.table(
        {"g": pa.array([1, 2, None, 9], pa.int64()), "v": [1e15 + 4, math.nan, 6.0, 1.0], "n": [-1, -1, 1, 1]}
    )
    wanted = pa.table({"g": pa.array([None, 2, 1, 3], pa.int64())})
    both = [
        content.spread(("g",), wanted, "v", "n", changed).to_pylist()
        for content in (ArrowContent(rows), SparkContent(frame_of_table(spark, rows), rows.num_rows))
    ]
    assert both[0] == both[1] == [0.75, 0.0, pytest.approx(2 / 3, rel=1e-12), None]
