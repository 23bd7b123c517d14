"""`status --check`, `run` and `catch-up` end with 1 when something is wrong, and say what and the way out."""

import json
from pathlib import Path
from typing import Any

import pytest
from sales_shop import call, write

from viewkeeper import Warehouse
from viewkeeper.errors import StorageFailure
from viewkeeper.maintenance.stored_states import StoredStates
from viewkeeper.maintenance.summaries.round import Rounds
from viewkeeper.mediator import mediator as mediator_module
from viewkeeper.mediator import retries
from viewkeeper.mediator.report import Report
from viewkeeper.serving import running


def problems(*words: str, code: int = 1) -> list[tuple[str, str]]:
    """The kinds and names of what a verb finds; it exits with this code."""
    found, text = call(*words, "--json")
    assert found == code, text
    told = json.loads(text.splitlines()[-1])["problems"]
    assert all(one["detail"] and one["hint"] for one in told)
    return [(one["kind"], one["name"]) for one in told]


def failing(error: Exception) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail


def test_all_is_well(lake: Path) -> None:
    write("INSERT INTO sales VALUES (2, 'ink')")
    for words in (("status",), ("status", "--check"), ("catch-up",), ("run", "--seconds", "0")):
        assert problems(*words, code=0) == []
    with Warehouse.open(lake, read_only=True) as warehouse:
        assert warehouse.problems() == ()


def test_a_halted_view(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Rounds, "propagate", failing(KeyError("g0")))
        write("INSERT INTO sales VALUES (2, 'ink')")
        # Halted by its own refresh and not by a group: a line of the log says so, too.
        code, log = call("run", "--exit-on-failure")
    assert code == 1
    said = [line.partition(" ")[2] for line in log.splitlines()]
    assert [line for line in said if line.startswith("view ")] == [
        "view by_item: halted: refreshing by_item failed: KeyError('g0'); the way out: viewkeeper reload by_item"
    ]
    for words in (("status", "--check"), ("catch-up",), ("run", "--seconds", "0")):
        assert problems(*words) == [("halted", "by_item")]
    assert problems("status", code=0) == [("halted", "by_item")]
    # One that was halted before does not end it.
    stopped = []

    def watch(_: Report) -> None:
        if stopped:
            warehouse.stop()
        stopped.append(True)

    with Warehouse.open(lake) as warehouse:
        report = warehouse.run(watch=watch, exit_on_failure=True)
    assert len(stopped) > 1
    assert list(report.halted) == ["by_item"]


def test_every_view_is_halted(lake: Path) -> None:
    write("DROP TABLE sales; CREATE TABLE sales (id INTEGER PRIMARY KEY, other TEXT)")
    assert {kind for kind, _ in problems("catch-up")} == {"halted"}
    assert sorted(problems("catch-up")) == sorted(problems("run")) == [("halted", "by_item"), ("halted", "joined")]
    code, text = call("run")
    assert (code, text.splitlines()[0]) == (1, "every view is halted")
    assert "the way out: viewkeeper reload joined" in text


@pytest.mark.parametrize("harm", ["missing", "shorter"])
def test_a_file_that_is_not_what_was_written(lake: Path, harm: str) -> None:
    write("INSERT INTO sales VALUES (2, 'ink')")
    assert call("catch-up")[0] == 0
    folder = lake / "views" / "joined"
    file = max(path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)
    if harm == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    for words in (("status", "--check"), ("catch-up",), ("run", "--seconds", "0")):
        assert problems(*words) == [("missing", str(file))]
    assert f"missing: {file}" in call("status")[1]
    assert call("status")[0] == 0


def test_a_source_that_is_out_of_reach(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shop.db").rename("elsewhere.db")
    monkeypatch.setattr(mediator_module.Mediator.catch_up, "__defaults__", (0.1, lambda: None))
    for words in (("status", "--check"), ("status", "--check", "--patience", "60")):
        assert problems(*words) == [("unreachable", "shop")]
    assert problems("status", code=0) == []
    assert ("unreachable", "shop") in problems("catch-up")
    code, text = call("status", "--check")
    assert code == 1
    assert "unreachable: " in text
    code, text = call("status", "--check", "--patience", "0")
    assert code == 1
    assert "shop has not answered within 0 seconds" in text or "unreachable: " in text


def test_a_group_that_fails_is_tried_again_and_said(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.2)
    monkeypatch.setattr(running, "EVERY", 0.0)
    write("INSERT INTO sales VALUES (2, 'ink')")
    real, failures = StoredStates.commit, []

    def commit(self: StoredStates, group: str, *rest: Any) -> None:
        if len(failures) < 3:
            failures.append(group)
            raise StorageFailure("the disk is full")
        real(self, group, *rest)

    monkeypatch.setattr(StoredStates, "commit", commit)
    said: list[str] = []

    def watch(report: Report) -> None:
        if any(group.failure and group.retry_in for group in report.groups) and not said:
            said.append(call("status")[1])
            assert "; tried again in" in said[0] or "; being tried again" in said[0]
            assert ("failed", failures[0]) in problems("status", "--check")
        if len(failures) == 3 and not any(group.failure for group in report.groups):
            warehouse.stop()

    with Warehouse.open(lake) as warehouse:
        report = warehouse.run(watch=watch)
        assert warehouse.arrow("joined").num_rows == 2
        assert warehouse.arrow("by_item").to_pydict() == {"item": ["pen", "ink"], "n": [1, 1]}
    assert sum(group.transactions for group in report.groups) == 2
    assert "(joined) failed" in said[0] or "(by_item) failed" in said[0]
    assert problems("status", "--check", code=0) == []
