"""SQL in, select-project-join form out."""

import logging

import pytest

from viewkeeper.errors import DefinitionError
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.view import View

# SQL, operands as "alias relation", conditions, output as "name: expression".
FORMS = [
    pytest.param(
        "SELECT id, cust FROM shop.orders",
        ["orders shop.orders"],
        [],
        ["id: `orders.id`", "cust: `orders.cust`"],
        id="one relation, without an alias",
    ),
    pytest.param(
        "SELECT o.id, p.name FROM shop.orders o JOIN crm.people p ON o.cust = p.id WHERE amount > 10 AND name = 'x'",
        ["o shop.orders", "p crm.people"],
        ["`o.cust` = `p.id`", "`o.amount` > 10", "`p.name` = 'x'"],
        ["id: `o.id`", "name: `p.name`"],
        id="ON and WHERE are conjuncts alike",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o, crm.people p WHERE (o.cust = p.id AND (p.name = 'x' OR o.amount > 1))",
        ["o shop.orders", "p crm.people"],
        ["`o.cust` = `p.id`", "`p.name` = 'x' OR `o.amount` > 1"],
        ["id: `o.id`"],
        id="a comma, and conjuncts in parentheses",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o INNER JOIN crm.people p ON o.cust = p.id AND o.cust = p.id WHERE o.cust = p.id",
        ["o shop.orders", "p crm.people"],
        ["`o.cust` = `p.id`"],
        ["id: `o.id`"],
        id="a repeated conjunct counts once",
    ),
    pytest.param(
        "SELECT id, name FROM shop.orders JOIN crm.people USING (id) WHERE id > 3",
        ["orders shop.orders", "people crm.people"],
        ["`orders.id` = `people.id`", "`orders.id` > 3"],
        ["id: `orders.id`", "name: `people.name`"],
        id="a column of USING is the left one",
    ),
    pytest.param(
        "SELECT COALESCE(o.id, p.id) AS k FROM shop.orders o JOIN crm.people p USING (id)",
        ["o shop.orders", "p crm.people"],
        ["`o.id` = `p.id`"],
        ["k: COALESCE(`o.id`, `p.id`)"],
        id="a COALESCE that the user wrote stays",
    ),
    pytest.param(
        "SELECT a.id AS a, b.id AS b FROM shop.orders a JOIN shop.orders b ON a.cust = b.cust AND a.id < b.id",
        ["a shop.orders", "b shop.orders"],
        ["`a.cust` = `b.cust`", "`a.id` < `b.id`"],
        ["a: `a.id`", "b: `b.id`"],
        id="a self-join has two operands",
    ),
    pytest.param(
        "SELECT p.*, l.qty FROM crm.people p, shop.lines l WHERE l.order_id = p.id",
        ["p crm.people", "l shop.lines"],
        ["`l.order_id` = `p.id`"],
        ["id: `p.id`", "name: `p.name`", "City: `p.City`", "score: `p.score`", "qty: `l.qty`"],
        id="the star of one relation",
    ),
    pytest.param(
        "SELECT * FROM shop.lines",
        ["lines shop.lines"],
        [],
        ["order_id: `lines.order_id`", "sku: `lines.sku`", "qty: `lines.qty`"],
        id="the star",
    ),
    pytest.param(
        "SELECT pg.public.orders.note, shop.lines.qty FROM pg.public.orders, shop.lines "
        "WHERE pg.public.orders.id = shop.lines.order_id",
        ["orders pg.public.orders", "lines shop.lines"],
        ["`orders.id` = `lines.order_id`"],
        ["note: `orders.note`", "qty: `lines.qty`"],
        id="columns qualified by their source",
    ),
    pytest.param(
        "select O.ID as OrderId, `P`.city, p.CITY || 'x' as Town from SHOP.Orders O, Crm.PEOPLE P where o.CUST = P.id",
        ["o shop.orders", "p crm.people"],
        ["`o.cust` = `p.id`"],
        ["OrderId: `o.id`", "City: `p.City`", "Town: `p.City` || 'x'"],
        id="case does not matter: aliases are lower, columns as declared, output as written",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o JOIN crm.people p ON o.cust = p.id JOIN shop.lines l ON l.order_id = o.id",
        ["o shop.orders", "p crm.people", "l shop.lines"],
        ["`o.cust` = `p.id`", "`l.order_id` = `o.id`"],
        ["id: `o.id`"],
        id="three relations",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o, crm.people p, shop.lines l WHERE o.id + p.id = l.order_id",
        ["o shop.orders", "p crm.people", "l shop.lines"],
        ["`o.id` + `p.id` = `l.order_id`"],
        ["id: `o.id`"],
        id="one condition can connect three relations",
    ),
    pytest.param(
        "SELECT upper(name) AS name, id * 2 AS twice, year(day) AS y FROM shop.orders JOIN crm.people USING (id)",
        ["orders shop.orders", "people crm.people"],
        ["`orders.id` = `people.id`"],
        ["name: UPPER(`people.name`)", "twice: `orders.id` * 2", "y: YEAR(`orders.day`)"],
        id="expressions, also those that only Spark evaluates",
    ),
    pytest.param(
        "SELECT amount AS id FROM shop.orders WHERE id > 5",
        ["orders shop.orders"],
        ["`orders.id` > 5"],
        ["id: `orders.amount`"],
        id="WHERE means the columns of the tables, not the output",
    ),
    pytest.param(
        "SELECT o.place.zip AS zip, tags[0] AS tag, transform(tags, t -> t || note) AS all FROM pg.public.orders o",
        ["o pg.public.orders"],
        [],
        ["zip: `o.place`.`zip`", "tag: `o.tags`[0]", "all: TRANSFORM(`o.tags`, `t` -> `t` || `o.note`)"],
        id="structs, arrays and lambdas",
    ),
    pytest.param(
        "SELECT /*+ BROADCAST(o), ANYTHING(1) */ o.id /* the key */ FROM shop.orders o -- all of them\n;",
        ["o shop.orders"],
        [],
        ["id: `o.id`"],
        id="hints and comments do not count",
    ),
    pytest.param(
        "SELECT * EXCEPT (day) FROM shop.orders WHERE 1 = 1 AND TRUE",
        ["orders shop.orders"],
        ["1 = 1"],
        ["id: `orders.id`", "cust: `orders.cust`", "amount: `orders.amount`"],
        id="a condition without columns, and TRUE",
    ),
    pytest.param(
        "SELECT `my o`.id FROM shop.orders `my o`",
        ["my o shop.orders"],
        [],
        ["id: `my o.id`"],
        id="an alias with a space",
    ),
]


@pytest.mark.parametrize(("sql", "operands", "conditions", "output"), FORMS)
def test_form(catalog: Catalog, sql: str, operands: list[str], conditions: list[str], output: list[str] | None) -> None:
    view = parse_view(sql, catalog)
    assert [f"{operand.alias} {operand.relation.name}" for operand in view.operands] == operands
    assert [condition.sql for condition in view.conditions] == conditions
    assert [f"{column.name}: {column.expression.sql}" for column in view.output] == output
    assert all(condition.columns <= set(_columns(view)) for condition in view.conditions)
    assert all(column.expression.columns <= set(_columns(view)) for column in view.output)


def _columns(view: View) -> list[str]:
    return [column for operand in view.operands for column in operand.columns]


def test_name_and_properties(catalog: Catalog) -> None:
    sql = """
        CREATE MATERIALIZED VIEW Sales
        TBLPROPERTIES ('consistency' = 'complete', 'Group' = 'g', nested_updates = 3, 'core' = stored)
        AS SELECT id FROM shop.orders
    """
    view = parse_view(sql, catalog, name="other")
    assert view.name == "Sales"
    assert view.properties == (("consistency", "complete"), ("group", "g"), ("nested_updates", "3"), ("core", "stored"))
    assert view.sql == sql.strip()


def test_name_of_a_bare_select(catalog: Catalog) -> None:
    assert parse_view("SELECT id FROM shop.orders", catalog).name == "v"
    assert parse_view("SELECT id FROM shop.orders", catalog, name="sales").name == "sales"


@pytest.mark.parametrize(
    ("tables", "crossings"),
    [
        ("shop.orders o JOIN crm.people p ON o.cust = p.id", ()),
        ("shop.orders o CROSS JOIN crm.people p", ((0, 1),)),
        ("shop.orders o CROSS JOIN crm.people p CROSS JOIN shop.lines l", ((0, 1), (1, 2))),
        ("shop.orders o JOIN shop.lines l ON l.order_id = o.id CROSS JOIN crm.people p", ((1, 2),)),
        ("shop.orders o CROSS JOIN crm.people p JOIN shop.lines l ON l.order_id = o.id", ((0, 1),)),
    ],
)
def test_crossings(catalog: Catalog, tables: str, crossings: tuple[tuple[int, int], ...]) -> None:
    assert parse_view(f"SELECT o.id FROM {tables}", catalog).crossings == crossings


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("id", "BIGINT"),
        ("id + 1", "BIGINT"),
        ("qty + 1", "INT"),
        ("qty = 1", "BOOLEAN"),
        ("1.50", "DECIMAL(3, 2)"),
        ("amount * 2", "DECIMAL(12, 2)"),
        ("amount + id", "DECIMAL(23, 2)"),
        ("amount - amount", "DECIMAL(11, 2)"),
        ("CASE WHEN qty = 1 THEN 1 ELSE amount END", "DECIMAL(12, 2)"),
        ("id / 2", "DOUBLE"),
        ("upper(sku)", "STRING"),
        ("day", "DATE"),
        ("DATE '2024-02-29'", "DATE"),
        ("round(amount, 1)", "DECIMAL(10, 1)"),
        ("round(1.5)", "DECIMAL(2, 0)"),
        ("round(amount, -3)", "DECIMAL(9, 0)"),
        ("round(1.5, -3)", "DECIMAL(4, 0)"),
        ("round(amount, qty)", ""),
        ("round(qty / 2, 1)", "DOUBLE"),
        ("round(qty, 1) + qty", "INT"),
        ("ceil(qty / 2)", "BIGINT"),
        ("floor(amount)", "DECIMAL(9, 0)"),
        ("ceil(CAST(amount AS DECIMAL(20, 0)))", "DECIMAL(20, 0)"),
        ("amount / 3", "DECIMAL(14, 6)"),
        ("amount / id", "DECIMAL(31, 23)"),
        ("amount / (amount * amount)", "DECIMAL(36, 24)"),
        ("id / (amount * id)", "DECIMAL(38, 16)"),
        ("CAST(sqrt(qty) AS DECIMAL(9, 3))", "DECIMAL(9, 3)"),
        ("TRY_CAST(sku AS DECIMAL)", "DECIMAL(10, 0)"),
        ("(amount / id) * (amount / id)", "DECIMAL(38, 21)"),
        ("amount / id + amount", "DECIMAL(32, 23)"),
        ("amount / id % 10", "DECIMAL(25, 23)"),
        ("-(amount / 3)", "DECIMAL(14, 6)"),
        ("sqrt(amount) * amount", "DOUBLE"),
        ("year(day) + 1", "INT"),
        ("year(day) * id", "BIGINT"),
        ("year(day) / 2", "DOUBLE"),
        ("CASE WHEN qty = 1 THEN year(day) END", "INT"),
        ("coalesce(year(day), id)", "BIGINT"),
        ("if(qty = 1, year(day), sqrt(qty))", "DOUBLE"),
        ("greatest(amount / 3, id)", ""),
        ("nullif(year(day), id)", "INT"),
        ("hash(id)", "INT"),
        ("hash(id) + 1", "INT"),
        ("try_divide(id, 2)", ""),
        ("map('a', id)['a']", "BIGINT"),
        ("year(day)", "INT"),
        ("upper(sku) = 'A'", "BOOLEAN"),
        ("date_add(day, 1)", "DATE"),
        ("CAST(sku AS INT)", "INT"),
    ],
)
def test_type(catalog: Catalog, expression: str, type: str) -> None:
    view = parse_view(f"SELECT {expression} AS x FROM shop.orders JOIN shop.lines ON order_id = id", catalog)
    assert view.output[0].expression.type == type


def test_types_that_spark_does_not_know() -> None:
    strange = Relation("s.t", "s", ("a", "b"), ("no such type", "NUMERIC(50, 2)"))
    view = parse_view("SELECT a, b FROM s.t WHERE a IS NOT NULL", {"s.t": strange})
    assert view.output[0].expression.type == ""
    assert view.output[1].expression.compile(("t.a", "t.b"))((1, 2)) == 2


def test_the_parser_logs_nothing(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(DefinitionError):
        parse_view("CREATE MATERIALIZED VIEW v REFRESH EVERY 1 HOUR AS SELECT id FROM shop.orders", catalog)
    assert not caplog.records
    logging.getLogger("sqlglot").warning("heard")
    assert [record.message for record in caplog.records] == ["heard"]
