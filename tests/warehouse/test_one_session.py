"""Groups that need Spark at the same moment get one session."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from viewkeeper.lake.tables import spark_session as session
from viewkeeper.warehouse import _Session
from waiting import LONG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS = 4


def asked_at_once(ask: Any) -> list[Any]:
    together = threading.Barrier(THREADS)

    def one(_: int) -> Any:
        together.wait(LONG)
        return ask()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def slow_start(started: list[object]) -> object:
    threading.Event().wait(0.05)  # long enough for all of them to come
    started.append(object())
    return started[-1]


def test_a_warehouse_starts_one() -> None:
    started: list[object] = []
    start: Any = partial(slow_start, started)
    assert set(asked_at_once(_Session(start).get)) == set(started)
    assert len(started) == 1


def test_a_process_starts_one(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(session, "_started", lambda *_, **__: slow_start(started))
    monkeypatch.setattr(session, "running_session", lambda: started[0] if started else None)
    assert set(asked_at_once(session.local_session)) == set(started)
    assert len(started) == 1


def test_every_thread_knows_the_session_that_is_there(spark: "SparkSession") -> None:
    assert set(asked_at_once(session.running_session)) == {spark}


def test_an_error_quotes_the_sql_of_the_user_and_no_line_of_ours(spark: "SparkSession") -> None:
    from viewkeeper.algebra.pyspark_names import PySparkException

    rows = spark.range(1)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO") as ours:
        rows.select(1 / rows.id).collect()
    assert "DataFrame" not in str(ours.value)
    with pytest.raises(PySparkException, match=r"== SQL \(line 1, position 8\) ==\nSELECT 1 / id FROM"):
        spark.sql("SELECT 1 / id FROM range(1)").collect()
