"""How much memory Spark gets, and what is said when it has used it up. Without Spark."""

from typing import Any
from unittest.mock import Mock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from viewkeeper.errors import BadDelta, EngineFailure, StorageFailure, may_pass
from viewkeeper.lake.tables import spark_session as session
from viewkeeper.lake.tables.spark_files import spark_errors
from viewkeeper.maintenance.summaries.lattices import Summaries


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
    assert may_pass(caught.value)


def test_a_process_that_has_ended_is_no_mistake_of_the_rows() -> None:
    with pytest.raises(EngineFailure) as caught, spark_errors("refreshing v"):
        raise Py4JNetworkError("Answer from Java side is empty")
    assert "the process of Spark has ended" in caught.value.detail
    assert may_pass(caught.value)
    with pytest.raises(BadDelta) as about_rows, spark_errors("refreshing v"):
        raise Py4JError("[CAST_INVALID_INPUT] The value 'a' cannot be cast")
    assert not may_pass(about_rows.value)


@pytest.mark.parametrize(
    "failure", [Py4JNetworkError("Answer from Java side is empty"), Py4JError("[CAST_INVALID_INPUT] 'a'")]
)
def test_only_what_is_wrong_with_rows_halts_summaries(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    halted: list[str] = []
    lattice = Mock(facts=Mock(core="core"), deferred=False, visible={"by_region": None})
    summaries = Summaries.__new__(Summaries)
    for name, made in {
        "lattices": lambda: {"one": lattice},
        "is_halted": lambda _: False,
        "halt": lambda _, reason: halted.append(reason),
        "_follow": Mock(side_effect=failure),
    }.items():
        monkeypatch.setattr(summaries, name, made, raising=False)
    commit = Mock(new_states=[Mock(group="core")], advanced={})
    if isinstance(failure, Py4JNetworkError):
        with pytest.raises(Py4JNetworkError):
            summaries.follow(commit)
        assert halted == []
    else:
        summaries.follow(commit)
        assert halted == ["refreshing by_region: Spark failed: [CAST_INVALID_INPUT] 'a'"]
