"""The demo is stopped before its time: the writers end, and its joins are at a commit."""

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from viewkeeper.demo.business import transactions
from viewkeeper.demo.demonstration import GROUP, Demonstration, make_databases
from viewkeeper.demo.views import JOINS
from viewkeeper.mediator.report import Report
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 11


def no_spark() -> NoReturn:
    raise AssertionError("changes as small as these need no Spark")


def test_stopped_before_its_time_it_is_at_a_commit(tmp_path: Path, spark: "SparkSession") -> None:
    with Warehouse.open(tmp_path / "lake", no_spark) as warehouse:
        urls = make_databases(warehouse.path / "databases", SEED)
        demonstration = Demonstration(warehouse, urls, SEED, 300)
        demonstration.add_sources()
        for name in JOINS:
            assert demonstration.create_view(name) > 1000

        def stop_when_it_works(report: Report) -> None:
            if report.groups[0].states > 2:
                demonstration.stop()

        kept = demonstration.keep_fresh(stop_when_it_works)
        assert kept.stopped
        made = sum(kept.committed.values())
        assert 2 < kept.states[GROUP] <= made < len(transactions("shop", SEED, 300))
        # The writers have ended: what was committed last can be brought in, and then there is no more.
        warehouse.catch_up()
        assert len(warehouse.states("purchases")) > made
    # An audit evaluates the text of a view by Spark.
    with Warehouse.open(tmp_path / "lake", spark) as warehouse:
        assert all(warehouse.audit(name).clean for name in JOINS)
