"""Names are not distinguished by case, as in Spark, and are shown as they were written when the view was created."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.cli.main import viewkeeper
from viewkeeper.errors import DefinitionError


@pytest.fixture
def database(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.executescript(
            "CREATE TABLE Orders (Id INTEGER PRIMARY KEY, Amount INTEGER);INSERT INTO Orders VALUES (1, 10), (2, 20)"
        )
        yield connection


@pytest.fixture
def warehouse(tmp_path: Path, database):
    with Warehouse.open(tmp_path / "lake") as opened:
        opened.add_source("shop", f"sqlite:///{tmp_path / 's.db'}", install=True)
        opened.create_view("CREATE MATERIALIZED VIEW Big AS SELECT ID, AMOUNT FROM SHOP.orders WHERE amount > 15")
        yield opened


def ids(warehouse: Warehouse, name: str) -> list[int]:
    return sorted(row[0] for row in zip(*warehouse.arrow(name).to_pydict().values(), strict=True))


def test_a_view_is_read_by_its_name_in_any_case(warehouse, database):
    assert warehouse.views == ("Big",)
    database.execute("INSERT INTO Orders VALUES (3, 30)")
    warehouse.catch_up()
    for name in ("Big", "big", "BIG"):
        assert ids(warehouse, name) == [2, 3]
        assert len(warehouse.states(name)) == 2
    assert warehouse.explain("bIG").view == "Big"
    assert [view.view for view in warehouse.status().views] == ["Big"]


def test_views_over_views_and_alterations_find_it(warehouse, database):
    warehouse.create_view("CREATE MATERIALIZED VIEW Above AS SELECT id FROM bIg WHERE id > 1")
    assert ids(warehouse, "ABOVE") == [2]
    changed = warehouse.alter_view("CREATE MATERIALIZED VIEW BIG AS SELECT id, amount FROM shop.Orders")
    assert (changed.view, changed.kind, changed.dependants) == ("Big", "reload", ("Above",))
    assert warehouse.views == ("Above", "Big")
    assert ids(warehouse, "above") == [2]
    database.execute("INSERT INTO Orders VALUES (4, 1)")
    warehouse.catch_up()
    assert ids(warehouse, "above") == [2, 4]
    again = "CREATE MATERIALIZED VIEW IF NOT EXISTS bIG AS SELECT id FROM shop.orders"
    assert warehouse.create_view(again) == "Big"
    with pytest.raises(DefinitionError, match="there is a view 'Big' already"):
        warehouse.create_view("CREATE MATERIALIZED VIEW big AS SELECT id FROM shop.orders")
    warehouse.drop_view("ABOVE")
    warehouse.drop_view("big")
    assert warehouse.views == ()


def test_a_view_that_would_read_itself_in_another_case_is_refused(warehouse):
    with pytest.raises(DefinitionError, match="Big would read itself"):
        warehouse.alter_view("CREATE MATERIALIZED VIEW big AS SELECT id FROM BIG")


def test_sources_are_found_in_any_case(warehouse):
    assert warehouse.doctor("SHOP") == warehouse.doctor("shop")
    warehouse.drop_view("BIG")
    warehouse.remove_source("Shop")
    assert warehouse.sources == ()


def test_what_is_declared_may_be_in_any_case(warehouse, database, tmp_path):
    database.execute("CREATE TABLE Cities (Id INTEGER PRIMARY KEY, Region TEXT)")
    warehouse.add_source(
        "geo",
        f"sqlite:///{tmp_path / 's.db'}",
        tables=["CITIES"],
        keys={"cities": "ID"},
        foreign_keys=[("geo.CITIES.id", "shop.orders.id")],
        hierarchies={"cities": ["ID", "region"]},
        install=True,
    )
    [made] = (source for source in warehouse.sources if source.name == "geo")
    assert [*made.relations] == ["geo.Cities"]
    assert made.foreign_keys == (("Cities.Id", "shop.orders.id"),)
    assert dict(made.hierarchies) == {"Cities": (("Id", "Region"),)}


def test_what_is_declared_is_added_to_and_withdrawn_in_any_case(warehouse, tmp_path):
    def declare(foreign_keys=(), **hierarchies):
        url = f"sqlite:///{tmp_path / 's.db'}"
        warehouse.add_source("shop", url, foreign_keys=foreign_keys, hierarchies=hierarchies, install=True)
        [made] = warehouse.sources
        return made.foreign_keys, dict(made.hierarchies)

    key = ("Orders.Id", "crm.people.id")
    both = ((key,), {"Orders": (("Id", "Amount"),)})
    assert declare([("orders.ID", key[1])], orders=["id", "amount"]) == both
    assert declare([("SHOP.ORDERS.id", key[1])], ORDERS=["ID", "AMOUNT"], orders=[["Id", "Amount"]]) == both
    with pytest.raises(DefinitionError, match="runs in a circle"):
        declare(orders=["amount", "id"])
    assert declare(ORDERS=[]) == ((key,), {})
    assert declare([("Shop.orders.id", "")]) == ((), {})


def test_the_command_line_takes_any_case(warehouse, tmp_path):
    warehouse.close()
    lake = str(tmp_path / "lake")
    for arguments in (["states", "-w", lake, "BIG"], ["explain", "-w", lake, "big"]):
        run = CliRunner().invoke(viewkeeper, arguments)
        assert run.exit_code == 0, (arguments, run.output)
    assert "Big" in CliRunner().invoke(viewkeeper, ["status", "-w", lake]).output
    dropped = CliRunner().invoke(viewkeeper, ["drop-view", "-w", lake, "BIG"])
    assert dropped.exit_code == 0, dropped.output
