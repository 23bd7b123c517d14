"""What is not a maintainable view is refused when it is created, with the clause, the reason and a way out."""

import pytest

from viewkeeper.errors import DefinitionError, SyntaxProblem, UnknownName, UnsupportedClause
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Catalog, Relation

JOINED = "SELECT o.id FROM shop.orders o {} crm.people p ON o.cust = p.id"

CLAUSES = [
    (JOINED.format("LEFT JOIN"), "LEFT JOIN"),
    (JOINED.format("LEFT OUTER JOIN"), "LEFT OUTER JOIN"),
    (JOINED.format("RIGHT JOIN"), "RIGHT JOIN"),
    (JOINED.format("FULL OUTER JOIN"), "FULL OUTER JOIN"),
    (JOINED.format("LEFT SEMI JOIN"), "LEFT SEMI JOIN"),
    (JOINED.format("SEMI JOIN"), "SEMI JOIN"),
    (JOINED.format("ANTI JOIN"), "ANTI JOIN"),
    (JOINED.format("ASOF JOIN"), "ASOF JOIN"),
    ("SELECT o.id FROM shop.orders o NATURAL JOIN crm.people p", "NATURAL JOIN"),
    ("SELECT o.id FROM shop.orders o NATURAL LEFT JOIN crm.people p", "NATURAL LEFT JOIN"),
    ("SELECT o.id FROM shop.orders o JOIN (crm.people p JOIN shop.lines l ON TRUE) ON TRUE", "parentheses"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p JOIN shop.lines l ON TRUE ON TRUE", "a join inside a join"),
    ("SELECT id FROM (shop.orders)", "parentheses"),
    ("SELECT id FROM shop.orders LATERAL VIEW explode(x) t AS y", "LATERAL VIEW"),
    ("SELECT id FROM shop.orders, LATERAL (SELECT 1)", "LATERAL"),
    ("SELECT id FROM shop.orders JOIN LATERAL explode(x) t", "LATERAL"),
    ("SELECT id FROM shop.orders, UNNEST(x)", "UNNEST"),
    ("SELECT x FROM VALUES (1), (2) AS t(x)", "VALUES"),
    ("SELECT id FROM range(10)", "range"),
    ("SELECT id FROM explode(array(1))", "explode"),
    ("SELECT explode(tags) AS x FROM pg.public.orders", "EXPLODE"),
    ("SELECT id FROM (SELECT id FROM shop.orders) x", "subquery in FROM"),
    ("SELECT id FROM shop.orders WHERE EXISTS (SELECT 1 FROM crm.people)", "EXISTS"),
    ("SELECT id FROM shop.orders WHERE NOT EXISTS (SELECT 1 FROM crm.people)", "EXISTS"),
    ("SELECT id FROM shop.orders WHERE id IN (SELECT id FROM crm.people)", "IN (SELECT"),
    ("SELECT id FROM shop.orders WHERE id NOT IN (SELECT id FROM crm.people)", "IN (SELECT"),
    ("SELECT id FROM shop.orders WHERE id = (SELECT MAX(id) FROM crm.people)", "subquery"),
    ("SELECT (SELECT 1) AS x FROM shop.orders", "subquery"),
    ("SELECT id FROM shop.orders WHERE id = ANY (SELECT id FROM crm.people)", "subquery"),
    ("WITH x AS (SELECT id FROM shop.orders) SELECT id FROM x", "WITH"),
    ("SELECT id FROM shop.orders UNION ALL SELECT id FROM crm.people", "UNION"),
    ("SELECT id FROM shop.orders UNION SELECT id FROM crm.people", "UNION"),
    ("SELECT id FROM shop.orders INTERSECT SELECT id FROM crm.people", "INTERSECT"),
    ("SELECT id FROM shop.orders EXCEPT SELECT id FROM crm.people", "EXCEPT"),
    ("SELECT id FROM shop.orders MINUS SELECT id FROM crm.people", "EXCEPT"),
    ("(SELECT id FROM shop.orders)", "parentheses"),
    ("SELECT id FROM shop.orders ORDER BY id", "ORDER BY"),
    ("SELECT id FROM shop.orders SORT BY id", "SORT BY"),
    ("SELECT id FROM shop.orders CLUSTER BY id", "CLUSTER BY"),
    ("SELECT id FROM shop.orders DISTRIBUTE BY id", "DISTRIBUTE BY"),
    ("SELECT id FROM shop.orders LIMIT 3", "LIMIT"),
    ("SELECT id FROM shop.orders FETCH FIRST 3 ROWS ONLY", "LIMIT"),
    ("SELECT id FROM shop.orders OFFSET 3", "OFFSET"),
    ("SELECT DISTINCT id FROM shop.orders", "DISTINCT"),
    ("SELECT cust, COUNT(*) AS n FROM shop.orders GROUP BY cust", "GROUP BY"),
    ("SELECT cust FROM shop.orders GROUP BY CUBE (cust)", "GROUP BY"),
    ("SELECT cust FROM shop.orders GROUP BY ALL", "GROUP BY"),
    ("SELECT cust FROM shop.orders HAVING cust > 1", "HAVING"),
    ("SELECT COUNT(*) AS n FROM shop.orders", "COUNT"),
    ("SELECT id FROM shop.orders WHERE id > MAX(id)", "MAX"),
    ("SELECT collect_list(id) AS x FROM shop.orders", "COLLECT_LIST"),
    ("SELECT ROW_NUMBER() OVER (ORDER BY id) AS n FROM shop.orders", "window"),
    ("SELECT ROW_NUMBER() AS n FROM shop.orders", "window"),
    ("SELECT SUM(id) OVER (PARTITION BY cust) AS n FROM shop.orders", "window"),
    ("SELECT id FROM shop.orders WINDOW w AS (ORDER BY id)", "WINDOW"),
    ("SELECT id FROM shop.orders QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1", "QUALIFY"),
    ("SELECT id FROM shop.orders TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT id FROM shop.orders PIVOT (SUM(amount) FOR cust IN (1, 2))", "PIVOT"),
    ("SELECT id FROM shop.orders VERSION AS OF 1", "AS OF"),
    ("SELECT id FROM shop.orders TIMESTAMP AS OF '2024-01-01'", "AS OF"),
    ("SELECT id FROM shop.orders@v1", "AS OF"),
    ("SELECT id FROM shop.orders FOR UPDATE", "FOR UPDATE"),
    ("SELECT p FROM shop.orders AS t(p, q)", "column list"),
    ("SELECT AS STRUCT id FROM shop.orders", "SELECT AS"),
    ("SELECT id INTO t FROM shop.orders", "INTO"),
    ("SELECT TRANSFORM(id) USING 'cat' FROM shop.orders", "TRANSFORM"),
    ("SELECT id FROM shop.orders WHERE id = :x", "parameter"),
    ("SELECT 1 AS x", "FROM"),
    ("SELECT id, rand() AS r FROM shop.orders", "RAND"),
    ("SELECT id, randn() AS r FROM shop.orders", "RANDN"),
    ("SELECT id, uuid() AS r FROM shop.orders", "UUID"),
    ("SELECT id, shuffle(tags) AS r FROM pg.public.orders", "SHUFFLE"),
    ("SELECT id, monotonically_increasing_id() AS r FROM shop.orders", "monotonically_increasing_id"),
    ("SELECT id, input_file_name() AS r FROM shop.orders", "input_file_name"),
    ("SELECT id FROM shop.orders WHERE day = current_date", "CURRENT_DATE"),
    ("SELECT id FROM shop.orders WHERE day = curdate()", "CURRENT_DATE"),
    ("SELECT id FROM shop.orders WHERE day < current_timestamp()", "CURRENT_TIMESTAMP"),
    ("SELECT id FROM shop.orders WHERE day < now()", "now"),
    ("SELECT id FROM shop.orders WHERE id < unix_timestamp()", "CURRENT_TIMESTAMP"),
    ("SELECT id, current_user() AS u FROM shop.orders", "CURRENT_USER"),
    ("SELECT id FROM shop.orders WHERE day > DATE 'Yesterday'", "'Yesterday'"),
    ("SELECT my_function(id) AS x FROM shop.orders", "my_function"),
    ("SELECT levenshtein(sku, 'a', 2) AS x FROM shop.lines", "Levenshtein"),
    ("SELECT o.id FROM shop.orders o, crm.people p", "no condition joins p to o"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p", "no condition joins p to o"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p ON TRUE", "no condition joins p to o"),
    ("SELECT o.id FROM shop.orders o, crm.people p WHERE o.id = 1 AND p.id = 1", "no condition joins p to o"),
    ("SELECT o.id FROM shop.orders o CROSS JOIN crm.people p, shop.lines l", "no condition joins l to o, p"),
    ("CREATE TABLE t AS SELECT id FROM shop.orders", "CREATE TABLE"),
    ("CREATE VIEW v AS SELECT id FROM shop.orders", "CREATE VIEW"),
    ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id FROM shop.orders", "OR REPLACE"),
    ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT id FROM shop.orders", "IF NOT EXISTS"),
    ("CREATE MATERIALIZED VIEW v (a) AS SELECT id FROM shop.orders", "column list"),
    ("CREATE MATERIALIZED VIEW v COMMENT 'x' AS SELECT id FROM shop.orders", "COMMENT"),
    ("CREATE MATERIALIZED VIEW v PARTITIONED BY (id) AS SELECT id FROM shop.orders", "PARTITIONED BY"),
]


@pytest.mark.parametrize(("sql", "clause"), CLAUSES)
def test_unsupported(catalog: Catalog, sql: str, clause: str) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        parse_view(sql, catalog)
    assert clause in refused.value.detail
    assert refused.value.hint


NOT_A_VIEW = [
    ("INSERT INTO t SELECT id FROM shop.orders", "INSERT"),
    ("DROP VIEW v", "DROP VIEW"),
    ("VALUES (1)", "VALUES"),
    ("CREATE MATERIALIZED VIEW v", "no query"),
    ("CREATE MATERIALIZED VIEW shop.v AS SELECT id FROM shop.orders", "one part"),
    ("CREATE MATERIALIZED VIEW _vk_v AS SELECT id FROM shop.orders", "_vk_"),
    ("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('group'='a', 'group'='b') AS SELECT id FROM shop.orders", "twice"),
    ("SELECT id + 1 FROM shop.orders", "id + 1"),
    ("SELECT id, cust AS ID FROM shop.orders", "ID"),
    ("SELECT o.id, p.id FROM shop.orders o JOIN crm.people p ON o.cust = p.id", "id"),
    ("SELECT * FROM shop.orders o JOIN crm.people p ON o.cust = p.id", "id"),
    ("SELECT * FROM shop.lines l JOIN shop.lines m USING (sku)", "order_id"),
    ("SELECT id AS _VK_weight FROM shop.orders", "_VK_weight"),
    ("SELECT _vk_o.id FROM shop.orders _vk_o", "_vk_o"),
    ("SELECT `o.x`.id FROM shop.orders `o.x`", "o.x"),
    ("SELECT orders.id FROM shop.orders, pg.public.orders WHERE shop.orders.id = pg.public.orders.id", "orders"),
    ("SELECT o.id FROM shop.orders o, shop.orders o", "called o"),
    ("SELECT id FROM shop.orders WHERE cust", "BIGINT"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p ON (p.name) = o.id", "o.id is a number and p.name a text"),
    ("SELECT id FROM shop.orders WHERE cust AND id = 1", "BIGINT"),
]


@pytest.mark.parametrize(("sql", "named"), NOT_A_VIEW)
def test_not_a_view(catalog: Catalog, sql: str, named: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_view(sql, catalog)
    assert named in refused.value.detail
    assert refused.value.hint


NAMES = [
    ("SELECT id FROM orders", "source.table", "shop.orders or pg.public.orders"),
    ("SELECT id FROM sales", "source.table", "shop.orders"),
    ("SELECT id FROM shop.order", "shop.order", "did you mean shop.orders"),
    ("SELECT id FROM shop.people", "shop.people", "write crm.people"),
    ("SELECT id FROM public.orders", "public.orders", "write shop.orders or pg.public.orders"),
    ("SELECT id FROM x.y", "x.y", "there is shop.orders, shop.lines, crm.people, pg.public.orders"),
    ("SELECT amout FROM shop.orders", "amout", "did you mean amount?"),
    ("SELECT o.amout FROM shop.orders o", "o has no column amout", "did you mean amount?"),
    ("SELECT xyz FROM shop.orders", "xyz", "there is id, cust, amount, day"),
    ("SELECT x.id FROM shop.orders o", "called x", "there is o"),
    ("SELECT shop.orders.id FROM shop.orders o", "called shop", "there is o"),
    ("SELECT shop.orders.id FROM pg.public.orders", "called shop", "there is orders"),
    ("SELECT id FROM shop.orders WHERE id = nme", "nme", "there is"),
    ("SELECT id + 1 AS next, next + 1 AS later FROM shop.orders", "next", "there is"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p ON o.cust = p.idd", "p has no column idd", "did you mean id?"),
    ("SELECT id FROM shop.orders o JOIN crm.people p ON o.cust = p.id", "ambiguous", "write o.id or p.id"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p USING (cust)", "p has no column cust", "there is id"),
    ("SELECT o.id FROM shop.orders o JOIN crm.people p USING (name)", "before p has a column name", "there is id"),
    (
        "SELECT o.cust FROM shop.orders o JOIN crm.people p ON o.cust = p.id JOIN pg.public.orders q USING (id)",
        "id of USING is ambiguous",
        "write ON ... = q.id",
    ),
    (
        "SELECT id FROM shop.orders o JOIN crm.people p USING (id) JOIN pg.public.orders q ON q.id = o.id",
        "ambiguous",
        "o.id",
    ),
]


@pytest.mark.parametrize(("sql", "detail", "hint"), NAMES)
def test_unknown_name(catalog: Catalog, sql: str, detail: str, hint: str) -> None:
    with pytest.raises(UnknownName) as refused:
        parse_view(sql, catalog)
    assert detail in refused.value.detail
    assert hint in refused.value.hint


SYNTAX = [
    ("", "no statement"),
    (" ; ", "no statement"),
    ("-- nothing", "no statement"),
    ("SELECT id FROM shop.orders; SELECT id FROM crm.people", "2 statements"),
    ("SELECT id FROM shop.orders WHERE", "line 1, column 28: the text ends too early, after 'WHERE'"),
    ("SELECT id\nFROM shop.orders\nWHERE id = ) 3", "line 3, column 12: something is missing near ')'"),
    ("SELECT id wrong words FROM shop.orders", "line 1, column 17: unexpected 'words'"),
    ("SELEC id FROM shop.orders", "unexpected 'FROM'"),
    ("SELECT id FROM shop.orders WHERE name = 'abc", "line 1, column 41: ' is opened"),
    ("SELECT id FROM\n`shop.orders", "line 2, column 1: ` is opened"),
    ("SELECT id /* comment FROM shop.orders", "line 1, column 11: /* is opened"),
    ("SELECT 'it''s' AS x FROM shop.orders", "line 1, column 8: two string literals side by side: 'it''s'"),
    ("CREATE MATERIALIZED VIEW v AS\n  SELEC id FROM shop.orders", "line 2, column 3: unexpected 'SELEC'"),
    ("CREATE MATERIALIZD VIEW v AS SELECT id FROM shop.orders", "line 1, column 8: unexpected 'MATERIALIZD'"),
    ("CREATE OR REPLACE MATERIALIZED v AS SELECT id FROM shop.orders", "line 1, column 32: unexpected 'v'"),
    ("CREATE MATERIALIZED VIEW v AS 3", "line 1, column 1: the definition is not understood"),
    ("SHOW TABLES", "SHOW TABLES"),
    ("EXPLAIN SELECT id FROM shop.orders", "EXPLAIN"),
    ("CREATE MATERIALIZED VIEW v REFRESH EVERY 1 HOUR AS SELECT id FROM shop.orders", "REFRESH EVERY"),
    (f"SELECT {'(' * 2000}id{')' * 2000} AS x FROM shop.orders", "nested too deeply"),
]


@pytest.mark.parametrize(("sql", "detail"), SYNTAX, ids=[detail for _, detail in SYNTAX])
def test_syntax(catalog: Catalog, sql: str, detail: str) -> None:
    with pytest.raises(SyntaxProblem) as refused:
        parse_view(sql, catalog)
    assert detail in refused.value.detail
    assert "\n" not in refused.value.detail
    assert "sqlglot" not in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("key", "hint"), [("consistensy", "did you mean consistency?"), ("delta.x", "the properties are consistency,")]
)
def test_unknown_property(catalog: Catalog, key: str, hint: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('{key}'='x') AS SELECT id FROM shop.orders", catalog)
    assert refused.value.code == "unknown-property"
    assert key in refused.value.detail
    assert hint in refused.value.hint


def test_columns_that_differ_in_case_only() -> None:
    relation = Relation("s.t", "s", ("id", "ID"), ("INT", "INT"))
    with pytest.raises(DefinitionError, match="two columns called id"):
        parse_view("SELECT id FROM s.t", {"s.t": relation})


def test_errors_say_where(catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match=r"\(line 2, column 10\)"):
        parse_view("SELECT o.id,\n       o.amout\nFROM shop.orders o", catalog)


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("SELECT id FROM shop.orders\n  LIMIT 3", "(line 2, column 3)"),
        ("SELECT id FROM shop.orders OFFSET 3", "(line 1, column 28)"),
        ("SELECT id, current_date() AS d FROM shop.orders", "(line 1, column 12)"),
        ("SELECT id,\n current_timestamp AS t FROM shop.orders", "(line 2, column 2)"),
        ("SELECT id, now() AS t FROM shop.orders", "(line 1, column 12)"),
        ("SELECT id, id FROM shop.orders", "(line 1, column 12)"),
        ("CREATE MATERIALIZED VIEW v AS SELECT id, 2 AS id FROM shop.orders", "(line 1, column 47)"),
    ],
)
def test_what_has_no_name_is_found_too(catalog: Catalog, sql: str, where: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_view(sql, catalog)
    assert refused.value.detail.endswith(where)


def test_a_definition_has_a_name(catalog: Catalog) -> None:
    """What is hinted at is what create-view and the files of a project take."""
    with pytest.raises(SyntaxProblem) as refused:
        parse_view("CREATE MATERIALIZED VIEW v AS SELEC id FROM shop.orders", catalog)
    assert refused.value.hint == (
        "did you mean SELECT? write CREATE MATERIALIZED VIEW name AS SELECT ... FROM source.table ..."
    )


def test_two_tables_that_differ_in_case_alone() -> None:
    catalog = {name: Relation(name, "pg", ("id",), ("INT",)) for name in ("pg.public.Orders", "pg.public.orders")}
    with pytest.raises(DefinitionError, match=r"pg.public.Orders and pg.public.orders differ in case alone") as refused:
        parse_view("SELECT id FROM pg.public.`Orders`", catalog)
    assert "rename one of them" in refused.value.hint
