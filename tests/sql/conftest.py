"""A small world of four relations at three sources."""

import pytest

from viewkeeper.sql.relation import Catalog, Relation


def relation(name: str, key: str | None, /, **columns: str) -> Relation:
    return Relation(name, name.partition(".")[0], tuple(columns), tuple(columns.values()), (key,) if key else None)


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    relations = [
        relation("shop.orders", "id", id="BIGINT", cust="BIGINT", amount="DECIMAL(10, 2)", day="DATE"),
        relation("shop.lines", None, order_id="BIGINT", sku="STRING", qty="INT"),
        relation("crm.people", "id", id="BIGINT", name="STRING", City="STRING", score="DOUBLE"),
        relation("pg.public.orders", "id", id="BIGINT", note="STRING", tags="ARRAY<STRING>", place="STRUCT<zip: INT>"),
    ]
    return {made.name: made for made in relations}
