"""Files and Delta tables that get other columns: what a view does not read is no concern of it, what it reads and is
gone halts it alone, and a wider type goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from viewkeeper.errors import UnknownName
from viewkeeper.warehouse import Warehouse

Write = Callable[..., None]


def write_csv(folder: Path, **columns: list[object]) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "orders.csv").write_text("\n".join(lines) + "\n")


def write_parquet(folder: Path, **columns: list[object]) -> None:
    pq.write_table(_table(columns), folder / "orders.parquet")


def write_delta(folder: Path, **columns: list[object]) -> None:
    write_deltalake(folder / "orders", _table(columns), mode="overwrite", schema_mode="overwrite")


def _table(columns: dict[str, list[object]]) -> pa.Table:
    """Whole numbers in 32 bits, where they fit."""
    arrays = {}
    for name, values in columns.items():
        small = all(isinstance(value, int) and value < 1 << 31 for value in values)
        arrays[name] = pa.array(values, pa.int32()) if small else pa.array(values)
    return pa.table(arrays)


KINDS = {"csv": ("files", write_csv), "parquet": ("files", write_parquet), "delta": ("delta", write_delta)}


@pytest.fixture(params=list(KINDS))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Write]:
    """The URL of a folder with a table, and what replaces the table."""
    kind, write = KINDS[request.param]
    folder = tmp_path / "source"
    folder.mkdir()
    write(folder, id=[1, 2], amount=[10, 20], item=["a", "b"])
    poll = "?poll=10ms&quiet=5ms" if kind == "files" else ""
    return f"{kind}://{folder}{poll}", lambda **columns: write(folder, **columns)


@pytest.fixture
def warehouse(lake: tuple[str, Write], tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "lake") as made:
        made.add_source("shop", lake[0], install=True)
        made.create_view("CREATE MATERIALIZED VIEW amounts AS SELECT id, amount FROM shop.orders")
        made.create_view("CREATE MATERIALIZED VIEW items AS SELECT id, item FROM shop.orders")
        made.create_view(
            "CREATE MATERIALIZED VIEW per_item AS SELECT item, COUNT(*) AS n FROM shop.orders GROUP BY item"
        )
        yield made


def halted(warehouse: Warehouse) -> dict[str, str]:
    return {one.view: one.halted.reason for one in warehouse.status().views if one.halted}


def shown(warehouse: Warehouse, view: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in warehouse.arrow(view).to_pylist())


def test_a_column_that_is_added_halts_nothing_and_can_be_used(lake: tuple[str, Write], warehouse: Warehouse) -> None:
    _, write = lake
    write(id=[1, 2, 3], amount=[10, 20, 30], item=["a", "b", "b"], note=["x", "y", "z"])
    warehouse.catch_up()
    assert not halted(warehouse)
    assert shown(warehouse, "amounts") == [(1, 10), (2, 20), (3, 30)]
    assert shown(warehouse, "per_item") == [("a", 1), ("b", 2)]
    warehouse.close()
    with Warehouse.open(warehouse.path) as again:
        write(id=[1, 2, 4], amount=[10, 21, 30], item=["a", "b", "d"], note=["x", "y", "w"])
        again.catch_up()
        assert not halted(again)
        again.create_view("CREATE MATERIALIZED VIEW notes AS SELECT id, note FROM shop.orders")
        assert shown(again, "notes") == [(1, "x"), (2, "y"), (4, "w")]
        write(id=[1, 5], amount=[10, 50], item=["a", "e"], note=["x", "v"])
        again.catch_up()
        assert not halted(again)
        assert shown(again, "notes") == [(1, "x"), (5, "v")]
        assert shown(again, "amounts") == [(1, 10), (5, 50)]
        assert shown(again, "per_item") == [("a", 1), ("e", 1)]


def test_a_column_that_is_gone_halts_the_views_that_read_it_alone(
    lake: tuple[str, Write], warehouse: Warehouse
) -> None:
    _, write = lake
    write(id=[1, 2, 3], item=["a", "b", "c"])
    warehouse.catch_up()
    assert set(halted(warehouse)) == {"amounts"}
    assert "viewkeeper reload amounts" in halted(warehouse)["amounts"]
    assert shown(warehouse, "items") == [(1, "a"), (2, "b"), (3, "c")]
    warehouse.close()
    with Warehouse.open(warehouse.path) as again:
        write(id=[1, 4], item=["a", "d"])
        again.catch_up()
        assert set(halted(again)) == {"amounts"}
        with pytest.raises(UnknownName, match="amount"):
            again.reload("amounts")
        assert shown(again, "items") == [(1, "a"), (4, "d")]
        write(id=[1, 5], item=["a", "e"], amount=[11, 51])
        again.catch_up()
        again.reload("amounts")
        write(id=[1, 6], item=["a", "f"], amount=[11, 61])
        again.catch_up()
        assert not halted(again)
        assert shown(again, "amounts") == [(1, 11), (6, 61)]
        assert shown(again, "per_item") == [("a", 1), ("f", 1)]


def test_a_wider_type_goes_on(lake: tuple[str, Write], warehouse: Warehouse) -> None:
    _, write = lake
    write(id=[1, 2], amount=[10, 5_000_000_000], item=["a", "b"])
    warehouse.catch_up()
    assert not halted(warehouse)
    assert shown(warehouse, "amounts") == [(1, 10), (2, 5_000_000_000)]
    write(id=[1, 2], amount=[10, 6_000_000_000], item=["a", "c"])
    warehouse.catch_up()
    assert not halted(warehouse)
    assert shown(warehouse, "amounts") == [(1, 10), (2, 6_000_000_000)]
    assert shown(warehouse, "items") == [(1, "a"), (2, "c")]
