"""Adding a source: what is installed is written down first, and a doctor leaves out what cannot be captured."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from viewkeeper.errors import DefinitionError, SourceUnfit
from viewkeeper.sources.sqlite.source import SqliteSource
from viewkeeper.warehouse import Warehouse


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
        shop.execute("CREATE TABLE shapes (id INTEGER PRIMARY KEY, shape POINT)")
    return tmp_path / "shop.db"


def installed(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as shop:
        found = shop.execute(r"SELECT name FROM sqlite_master WHERE name LIKE '\_vk\_%' ESCAPE '\'").fetchall()
    return [name for (name,) in found]


def test_a_name_that_is_too_long_is_refused_before_anything_is_installed(database: Path, tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "lake") as warehouse:
        with pytest.raises(DefinitionError, match="at most 60 characters"):
            warehouse.add_source("s" * 250, f"sqlite:///{database}", ["orders"], install=True)
        assert not installed(database)
        assert not warehouse.sources


def test_what_is_installed_is_written_down_first(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SqliteSource.install

    def killed(source: SqliteSource) -> None:
        put(source)
        raise KeyboardInterrupt

    with Warehouse.open(tmp_path / "lake") as warehouse:
        monkeypatch.setattr(SqliteSource, "install", killed)
        with pytest.raises(KeyboardInterrupt):
            warehouse.add_source("shop", f"sqlite:///{database}", ["orders"], install=True)
        monkeypatch.undo()
        assert installed(database)
        warehouse.remove_source("shop")
        assert not installed(database)


def test_what_cannot_be_installed_leaves_nothing(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SqliteSource.install

    def refused(source: SqliteSource) -> None:
        put(source)
        raise SourceUnfit("no", "never")

    with Warehouse.open(tmp_path / "lake") as warehouse:
        monkeypatch.setattr(SqliteSource, "install", refused)
        with pytest.raises(SourceUnfit, match="no"):
            warehouse.add_source("shop", f"sqlite:///{database}", ["orders"], install=True)
        assert not installed(database)
        assert not warehouse.sources


def test_the_doctor_leaves_out_a_table_that_cannot_be_captured(database: Path, tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "lake") as warehouse:
        first, *others = warehouse.doctor(f"sqlite:///{database}", "shop")
        assert first.relations == ("shop.shapes",)
        assert "shapes is left out" in first.what
        assert "POINT" in first.what
        assert any("nothing captures" in finding.what for finding in others)
