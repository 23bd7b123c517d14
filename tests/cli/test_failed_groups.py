"""What fails inside a group or a summary is said by catch-up, run and status, and ends with exit code 1."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from sales_shop import call, write

from viewkeeper import Warehouse
from viewkeeper.errors import EngineFailure
from viewkeeper.maintenance.stored_states import StoredStates
from viewkeeper.maintenance.summaries.round import Rounds

ERRORS = {
    "arrow": pa.ArrowInvalid("Rescaling Decimal value would cause data loss"),
    "arrow-key": pa.ArrowKeyError("no such field"),
    "spark": AnalysisException("[UNRESOLVED_COLUMN] a column\n  at org.apache.spark"),
    "bug": KeyError("g0"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_what_fails_in_a_summary_halts_it_alone(lake: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any) -> NoReturn:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(Rounds, "propagate", fail)
        write("INSERT INTO sales VALUES (2, 'ink')")
        code, text = call("catch-up")
    assert code == 1
    assert "halted: by_item: refreshing by_item" in text
    with Warehouse.open(lake, read_only=True) as warehouse:
        status = warehouse.status()
        assert list(status.halted) == ["by_item"]
        assert status.failures == ()
        assert warehouse.arrow("joined").num_rows == 2
    assert call("catch-up")[0] == 1


@pytest.mark.parametrize("verb", [("catch-up",), ("run", "--exit-on-failure")], ids=["catch-up", "run"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_a_group_that_fails_says_so_until_it_goes_on(
    lake: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, verb: tuple[str, ...]
) -> None:
    def fail(*_: Any) -> NoReturn:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(StoredStates, "commit", fail)
        write("INSERT INTO sales VALUES (2, 'ink')")
        code, text = call(*verb)
        assert code == 1
        assert "stopped: group" in text
        assert "org.apache" not in text
        code, text = call(*verb, "--json")
        assert code == 1
        # The first that fails ends `run`.
        failed = [group["failure"] for group in json.loads(text.splitlines()[-1])["groups"]]
        assert any(failed) if verb[0] == "run" else all(failed)
        with Warehouse.open(lake) as warehouse, pytest.raises(Exception, match="group") as raised:
            warehouse.catch_up()
        assert raised.type.__module__ == "viewkeeper.errors"
    code, text = call("status")
    assert code == 0
    assert "(joined) failed" in text
    assert "(by_item) failed" in text
    failures = json.loads(call("status", "--json")[1])["failures"]
    assert sorted(failure["views"] for failure in failures) == [["by_item"], ["joined"]]
    # The next one succeeds, and nothing is left of it.
    assert call("catch-up")[0] == 0
    assert json.loads(call("status", "--json")[1])["failures"] == []


def test_what_an_engine_says_reaches_nobody_as_it_is(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> NoReturn:
        raise ERRORS["spark"]

    monkeypatch.setattr("viewkeeper.maintenance.live_views.LiveViews.reload", fail)
    with (
        Warehouse.open(lake) as warehouse,
        pytest.raises(EngineFailure, match=r"^reload: Spark failed: \[UNRESOLVED_COLUMN\] a column\n  hint"),
    ):
        warehouse.reload("joined")
