"""The key of a join, from the keys of its tables."""

import sqlite3
from collections import Counter
from itertools import product

import pytest

from viewkeeper.clock import seeded
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.render import render
from viewkeeper.sql.view_keys import key_of_view


def relation(name: str, columns: str, key: str) -> Relation:
    names = tuple(columns.split())
    types = tuple("DOUBLE" if name == "real" else "INT" for name in names)
    return Relation(name, name.partition(".")[0], names, types, tuple(key.split()) or None)


CATALOG = {
    made.name: made
    for made in [
        relation("s.sales", "id item store x", "id"),
        relation("s.items", "id category", "id"),
        relation("t.categories", "id boss", "id"),
        relation("t.prices", "item store price", "item store"),
        relation("t.logs", "id item", ""),
        relation("t.measures", "real x", "real"),
    ]
}

KEYS = [
    ("SELECT id, x FROM s.sales", ("id",)),
    ("SELECT x, id AS number, id AS again FROM s.sales WHERE x > 1", ("number",)),
    ("SELECT x FROM s.sales", None),
    ("SELECT id + 0 AS id FROM s.sales", None),
    ("SELECT id, item FROM t.logs", None),
    ("SELECT price, store, item FROM t.prices", ("item", "store")),
    ("SELECT price, store FROM t.prices", None),
    ("SELECT s.id, category FROM s.sales s JOIN s.items i ON s.item = i.id", ("id",)),
    ("SELECT s.id, category FROM s.items i JOIN s.sales s ON i.id = s.item", ("id",)),
    ("SELECT i.id, s.x FROM s.sales s JOIN s.items i ON s.item = i.id", None),
    ("SELECT s.id FROM s.sales s JOIN s.items i ON s.item = i.id AND s.x < i.category", ("id",)),
    ("SELECT s.id FROM s.sales s JOIN s.items i ON s.item < i.id", None),
    ("SELECT s.id FROM s.sales s JOIN s.items i ON s.item = i.category", None),
    ("SELECT s.id FROM s.sales s JOIN s.items i ON s.item = i.id OR s.x = 1", None),
    (
        "SELECT s.id AS k, boss FROM s.sales s, s.items i, t.categories c WHERE c.id = category AND i.id = s.item",
        ("k",),
    ),
    ("SELECT s.id, i.id AS i FROM s.sales s, s.items i, t.categories c WHERE c.id = s.x AND i.id < s.item", None),
    ("SELECT s.id, price FROM s.sales s JOIN t.prices p USING (item, store)", ("id",)),
    ("SELECT s.id, price FROM s.sales s JOIN t.prices p USING (item)", None),
    (
        "SELECT s.id, price FROM s.sales s, s.items i, t.prices p "
        "WHERE p.item = s.item AND p.store = i.id AND i.id = s.x",
        ("id",),
    ),
    ("SELECT s.id, c.id AS c FROM s.sales s, t.logs l, t.categories c WHERE s.item = l.item AND l.item = c.id", None),
    ("SELECT a.id AS a, b.id AS b FROM s.items a JOIN s.items b ON a.id = b.id", ("a",)),
    ("SELECT b.id AS b, a.category FROM s.items a JOIN s.items b ON a.id = b.category", ("b",)),
    ("SELECT a.id AS a, b.id AS b FROM s.items a CROSS JOIN s.items b", None),
    ("SELECT s.id FROM s.sales s JOIN t.measures m ON s.x = m.real", None),
    ("SELECT i.id, boss FROM s.items i, s.sales s, t.categories c WHERE i.category = s.item AND s.item = c.id", None),
    (
        "SELECT s.id FROM s.sales s, s.items a, s.items b WHERE s.x = a.category AND a.category = b.id AND a.id = b.id",
        ("id",),
    ),
]


@pytest.mark.parametrize(("sql", "key"), KEYS)
def test_key(sql: str, key: tuple[str, ...] | None) -> None:
    assert key_of_view(parse_view(sql, CATALOG)) == key


@pytest.mark.parametrize("sql", [sql for sql, key in KEYS if key])
def test_no_two_rows_share_a_key(sql: str) -> None:
    view = parse_view(sql, CATALOG)
    key = key_of_view(view)
    assert key is not None
    random = seeded(1)
    with sqlite3.connect(":memory:") as database:
        database.execute("ATTACH ':memory:' AS s")
        database.execute("ATTACH ':memory:' AS t")
        for made in CATALOG.values():
            database.execute(f"CREATE TABLE {made.name} ({', '.join(made.columns)})")
            key_columns = made.key or made.columns
            rows = list(product(*(range(6 if column in key_columns else 3) for column in made.columns)))
            random.shuffle(rows)
            unique = {made.key_of(row) if made.key else row: row for row in rows}
            marks = ", ".join("?" * len(made.columns))
            database.executemany(f"INSERT INTO {made.name} VALUES ({marks})", unique.values())
        places = [view.columns.index(column) for column in key]
        found = Counter(tuple(row[place] for place in places) for row in database.execute(render(view, "sqlite")))
    database.close()
    assert found
    assert set(found.values()) == {1}
