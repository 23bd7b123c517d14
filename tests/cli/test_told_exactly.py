"""Small things that programs and people rely on: JSON that is JSON, a folder that is one, names looked at first."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.cli.audit import _as_json
from viewkeeper.cli.main import viewkeeper
from viewkeeper.maintenance.audits import Audit
from viewkeeper.project.finding import warehouse_of


def test_an_audit_is_json_whatever_the_rows_hold() -> None:
    audit = Audit("v", 1, {}, 2, missing=(((float("nan"), 1.5), 1),), extra=(((float("inf"), None), 1),))
    told = json.loads(json.dumps(_as_json(audit, 5), allow_nan=False))
    assert told["missing"]["sample"] == [{"row": ["nan", 1.5], "times": 1}]
    assert told["extra"]["sample"] == [{"row": ["inf", None], "times": 1}]


def test_the_warehouse_of_a_project_may_be_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "viewkeeper.yml").write_text("warehouse: ~/lake\n")
    assert warehouse_of(tmp_path / "viewkeeper.yml", {}) == tmp_path / "home" / "lake"


def test_names_are_looked_at_before_anything_is_reloaded(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with Warehouse.open(tmp_path / "lake") as warehouse:
        warehouse.add_source("s", f"sqlite:///{tmp_path / 's.db'}", install=True)
        warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT id FROM s.t")
        before = warehouse.status().commit
    result = CliRunner().invoke(viewkeeper, ["reload", "v", "typo", "-w", str(tmp_path / "lake")])
    assert result.exit_code != 0
    with Warehouse.open(tmp_path / "lake", read_only=True) as warehouse:
        assert warehouse.status().commit == before
