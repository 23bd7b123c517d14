"""What is done between the start of a process and its first commit: no more than that commit needs."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pending_changes import VIEWS, make_pending

from viewkeeper import Warehouse
from viewkeeper.lake import expiring
from viewkeeper.lake.log import source_files
from viewkeeper.planner import kept_views
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View

READ = """
import sys
from viewkeeper import Warehouse
with Warehouse.open("lake", read_only=True) as warehouse:
    warehouse.status(), [warehouse.states(view, 1) for view in warehouse.views], warehouse.selects("named")
print(*sys.modules)
"""


CATCH_UP = """
import sys
from viewkeeper import Warehouse
with Warehouse.open("lake") as warehouse:
    warehouse.catch_up()
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def pending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pending(tmp_path_factory.mktemp("pending"))


@pytest.fixture
def copy(pending: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shutil.copytree(pending, tmp_path / "copy"))
    return tmp_path / "copy"


@pytest.mark.processes
def test_what_reads_imports_nothing_that_only_a_writer_needs(pending: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READ], cwd=pending, capture_output=True, text=True, check=True)
    ours = {
        "lake.commit",
        "lake.compaction",
        "lake.tables.signed_rows",
        "lake.thread_imports",
        "lake.writer",
        "maintenance.altering.altering",
        "maintenance.keeper",
        "mediator.mediator",
    }
    # A module that was moved would be missed by nobody here.
    assert all(find_spec(f"viewkeeper.{one}") is not None for one in ours)
    unwanted = {"pyspark", "pyarrow.compute", "pyarrow.dataset", *(f"viewkeeper.{one}" for one in ours)}
    assert not unwanted & set(done.stdout.split())


@pytest.mark.parametrize("times", [1, 2], ids=["pending", "nothing pending"])
def test_catching_up_with_small_changes_imports_no_spark(copy: Path, times: int) -> None:
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", CATCH_UP], cwd=copy, capture_output=True, text=True, check=True)
    assert not {"pyspark", "py4j"} & {module.partition(".")[0] for module in done.stdout.split()}


def test_spark_stays_off_for_a_small_change(copy: Path) -> None:
    def start() -> Any:
        raise AssertionError("Spark was started")

    with Warehouse.open("lake", start, create=False) as warehouse:
        before = {view: warehouse.states(view, 1)[0].state for view in warehouse.views}
        warehouse.catch_up()
        assert not warehouse.status().halted
        assert all(warehouse.states(view, 1)[0].state > state for view, state in before.items())
        assert len(before) == len(VIEWS)


@pytest.mark.parametrize("killed", [False, True])
def test_each_definition_is_read_and_parsed_once(copy: Path, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    parsed: Counter[str] = Counter()
    decoded: Counter[bytes] = Counter()
    parse, unseal = kept_views.parse_view, source_files.unseal

    def parse_view(sql: str, relations: Mapping[str, Relation], name: str) -> View:
        parsed[name] += 1
        return parse(sql, relations, name=name)

    def unsealed(content: bytes) -> Any:
        decoded[content] += 1
        return unseal(content)

    monkeypatch.setattr(kept_views, "parse_view", parse_view)
    monkeypatch.setattr(source_files, "unseal", unsealed)
    if killed:
        os.unlink("lake/_viewkeeper/closed.json")
    with Warehouse.open("lake", create=False) as warehouse:
        warehouse.catch_up()
    assert set(parsed.values()) == {1}
    assert "named" in parsed
    assert sorted(decoded.values()) == [1, 1]


def test_run_with_a_retention_expires_states_while_it_commits(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiring, "FIRST", 0.0)
    with Warehouse.open("lake") as warehouse:
        warehouse.catch_up()
        assert len(warehouse.states("named")) > 1
        warehouse.run(0, retention="0 s", grace="0 s")
        assert len(warehouse.states("named")) == 1
        assert not warehouse.status().problems
