"""How much memory Spark gets, and what is said when it has used it up. Without Spark."""

from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from viewkeeper.errors import StorageFailure
from viewkeeper.warehouse import session
from viewkeeper.warehouse.spark_files import spark_errors


class Started(Exception):
    """Stands in for a session: with what it would have been started."""


class Builder:
    def config(self, *, conf: Any) -> Any:
        raise Started(dict(conf.getAll()))


@pytest.mark.parametrize(("said", "given"), [(None, "4g"), ("", "4g"), ("8g", "8g")])
def test_the_environment_says_how_much(said: str | None, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(session.MEMORY, raising=False)
    if said is not None:
        monkeypatch.setenv(session.MEMORY, said)
    monkeypatch.setattr(session, "running_session", lambda: None)
    monkeypatch.setattr(session, "_start", lambda *_: None)
    monkeypatch.setattr(SparkSession, "builder", Builder())
    with pytest.raises(Started) as caught:
        session.local_session()
    assert caught.value.args[0]["spark.driver.memory"] == given


def test_memory_that_is_used_up_is_no_mistake_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(session.MEMORY, raising=False)
    with pytest.raises(StorageFailure) as caught, spark_errors("refreshing v"):
        raise Py4JError("An error occurred\nCaused by: java.lang.OutOfMemoryError: Java heap space")
    assert caught.value.detail == "refreshing v: Spark has used up its 4g of memory"
    assert caught.value.hint == "give it more: export VIEWKEEPER_SPARK_MEMORY=8g"
