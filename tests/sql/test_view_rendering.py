"""A rendered view is the same view."""

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.errors import ExpressionError
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.render import render
from viewkeeper.sql.view import View


def same(one: View, other: View) -> bool:
    """Equal up to the text they came from."""
    return replace(one, sql="", properties=()) == replace(other, sql="", properties=())


@pytest.mark.parametrize(
    ("sql", "rendered"),
    [
        (
            "SELECT id FROM shop.orders",
            "SELECT `orders`.`id` AS `id` FROM `shop`.`orders` AS `orders`",
        ),
        (
            "SELECT o.id, name FROM shop.orders o JOIN crm.people p ON o.cust = p.id AND (amount > 1 OR name = 'x')",
            "SELECT `o`.`id` AS `id`, `p`.`name` AS `name` FROM `shop`.`orders` AS `o`, `crm`.`people` AS `p` "
            "WHERE `o`.`cust` = `p`.`id` AND (`o`.`amount` > 1 OR `p`.`name` = 'x')",
        ),
        (
            "SELECT id, city FROM pg.public.orders JOIN crm.people USING (id)",
            "SELECT `orders`.`id` AS `id`, `people`.`City` AS `City` "
            "FROM `pg`.`public`.`orders` AS `orders`, `crm`.`people` AS `people` WHERE `orders`.`id` = `people`.`id`",
        ),
        (
            "SELECT o.id AS A FROM shop.orders o CROSS JOIN crm.people p, shop.lines l WHERE qty = o.id",
            "SELECT `o`.`id` AS `A` FROM `shop`.`orders` AS `o` CROSS JOIN `crm`.`people` AS `p`, "
            "`shop`.`lines` AS `l` WHERE `l`.`qty` = `o`.`id`",
        ),
    ],
)
def test_render(catalog: Catalog, sql: str, rendered: str) -> None:
    view = parse_view(sql, catalog)
    assert render(view) == rendered
    assert same(parse_view(rendered, catalog), view)


def test_other_dialects(catalog: Catalog) -> None:
    view = parse_view("SELECT id FROM shop.orders WHERE cust <=> id AND CAST(id AS STRING) = 'it\\'s'", catalog)
    assert render(view, "sqlite") == (
        'SELECT "orders"."id" AS "id" FROM "shop"."orders" AS "orders" '
        'WHERE "orders"."cust" IS "orders"."id" AND CAST("orders"."id" AS TEXT) = \'it\'\'s\''
    )
    assert render(view, "mysql").startswith("SELECT `orders`.`id` AS `id` FROM `shop`.`orders` AS `orders`")


def test_what_a_dialect_cannot_say(catalog: Catalog) -> None:
    view = parse_view("SELECT sort_array(tags) AS tags FROM pg.public.orders", catalog)
    with pytest.raises(ExpressionError, match="sqlite cannot run v"):
        render(view, "sqlite")


def test_hidden_columns_render_too(catalog: Catalog) -> None:
    view = parse_view("SELECT name FROM shop.orders o JOIN crm.people p ON o.cust = p.id", catalog)
    with sqlite3.connect(":memory:") as database:
        for schema in ("shop", "crm"):
            database.execute(f"ATTACH ':memory:' AS {schema}")
        database.execute("CREATE TABLE shop.orders (id, cust, amount, day)")
        database.execute("CREATE TABLE crm.people (id, name, City, score)")
        database.execute("INSERT INTO shop.orders VALUES (1, 7, 2.5, NULL), (2, 8, 1, NULL)")
        database.execute("INSERT INTO crm.people VALUES (7, 'ann', 'Rome', 1.0)")
        assert database.execute(render(view.with_keys, "sqlite")).fetchall() == [("ann", 1, 7)]
        [row] = database.execute(render(view.with_all_columns, "sqlite"))
        assert row == (1, 7, 2.5, None, 7, "ann", "Rome", 1.0)
    database.close()


CATALOG = {
    name: Relation(name, name[0], ("id", "Name", "two words"), ("BIGINT", "STRING", "BIGINT"), ("id",))
    for name in ("a.r", "a.s", "b.deep.r")
}


@st.composite
def views(draw: st.DrawFn) -> str:
    """Some SELECT over two to four operands, joined in every way that is allowed."""
    relations = draw(st.lists(st.sampled_from(sorted(CATALOG)), min_size=2, max_size=4))
    aliases = [f"t{number}" for number in range(len(relations))]
    text, where = f"{relations[0]} {aliases[0]}", ["TRUE"]
    for number in range(1, len(relations)):
        other = aliases[draw(st.integers(0, number - 1))]
        on = draw(
            st.sampled_from(["{0}.id = {1}.id", "{0}.name < {1}.NAME AND {0}.id = 1", "{0}.id + {1}.`two words` > 3"])
        ).format(other, aliases[number])
        how = draw(st.sampled_from(["JOIN {0} ON {1}", "INNER JOIN {0} ON ({1})", "CROSS JOIN {0}", ", {0}"]))
        text += " " + how.format(f"{relations[number]} AS {aliases[number]}", on)
        if how.startswith(","):
            where.append(on)
    extra = ["(t0.id IS NULL OR t1.name LIKE 'a%')", "NOT (t0.id = 1 AND t1.id = 2)", "(t0.id) IN (1, 2)", "1 = 1"]
    where += draw(st.lists(st.sampled_from(extra), max_size=3))
    output = draw(st.lists(st.sampled_from(["{0}.id", "{0}.Name || 'x'", "({0}.id + 1) * 2"]), min_size=1, max_size=4))
    chosen = [f"{item.format(draw(st.sampled_from(aliases)))} AS C{number}" for number, item in enumerate(output)]
    return f"SELECT {', '.join(chosen)} FROM {text} WHERE {' AND '.join(where)}"


@settings(deadline=None)
@given(sql=views())
def test_parse_undoes_render(sql: str) -> None:
    view = parse_view(sql, CATALOG)
    assert same(parse_view(render(view), CATALOG), view)
    assert render(parse_view(render(view), CATALOG)) == render(view)
