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


@pytest.fixture(scope="session")
def retail() -> Catalog:
    """The tables of the summary-delta paper, with columns of other types for what it does not have."""
    relations = [
        relation(
            "retail.pos",
            None,
            storeID="INT",
            itemID="INT",
            date="DATE",
            qty="INT",
            price="DECIMAL(10, 2)",
            weight="DOUBLE",
            gift="BOOLEAN",
            note="STRING",
            extra="MAP<STRING, INT>",
        ),
        relation("retail.stores", "storeID", storeID="INT", city="STRING", region="STRING"),
        relation("retail.items", "itemID", itemID="INT", name="STRING", category="STRING", cost="DECIMAL(36, 4)"),
    ]
    return {made.name: made for made in relations}
