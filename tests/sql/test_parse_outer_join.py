"""SQL with outer joins in, steps of a left-deep tree out."""

from dataclasses import replace

import pytest

from viewkeeper.errors import DefinitionError, UnknownName, UnsupportedClause
from viewkeeper.sql.outer_join import JoinKind, OuterJoinView
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.view import View

ORDERS = "SELECT o.id FROM shop.orders o"
JOINED = ORDERS + " {} crm.people p ON o.cust = p.id"


def outer_join(sql: str, catalog: Catalog) -> OuterJoinView:
    view = parse_definition(sql, catalog)
    assert isinstance(view, OuterJoinView)
    return view


# SQL, steps as "kind alias: conditions", WHERE, output as "name: expression".
FORMS = [
    pytest.param(
        "SELECT o.id, p.name FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.id AND amount > 10 "
        "WHERE name = 'x' AND (o.id > 1 AND TRUE)",
        ["left p: `o.cust` = `p.id`, `o.amount` > 10"],
        ["`p.name` = 'x'", "`o.id` > 1"],
        ["id: `o.id`", "name: `p.name`"],
        id="ON and WHERE stay apart",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.id AND o.cust = p.id WHERE o.cust = p.id",
        ["left p: `o.cust` = `p.id`"],
        ["`o.cust` = `p.id`"],
        ["id: `o.id`"],
        id="a repeated conjunct counts once in each clause",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o RIGHT OUTER JOIN crm.people p ON p.id = o.cust "
        "INNER JOIN shop.lines l ON order_id = o.id AND (qty > 1 OR p.name IS NULL) "
        "FULL OUTER JOIN pg.public.orders q ON q.note = p.name",
        [
            "right p: `p.id` = `o.cust`",
            "inner l: `l.order_id` = `o.id`, `l.qty` > 1 OR `p.name` IS NULL",
            "full q: `q.note` = `p.name`",
        ],
        [],
        ["id: `o.id`"],
        id="all kinds, from left to right",
    ),
    pytest.param(
        "SELECT a.id AS a, b.id AS b FROM shop.orders a FULL JOIN shop.orders b ON a.cust = b.cust AND a.id < b.id",
        ["full b: `a.cust` = `b.cust`, `a.id` < `b.id`"],
        [],
        ["a: `a.id`", "b: `b.id`"],
        id="a self-join",
    ),
    pytest.param(
        "SELECT * FROM shop.lines l LEFT JOIN crm.people p ON l.order_id = p.id",
        ["left p: `l.order_id` = `p.id`"],
        [],
        [
            *("order_id: `l.order_id`", "sku: `l.sku`", "qty: `l.qty`"),
            *("id: `p.id`", "name: `p.name`", "City: `p.City`", "score: `p.score`"),
        ],
        id="the star",
    ),
    pytest.param(
        "SELECT p.* EXCEPT (score), COALESCE(o.id, p.id) AS k FROM shop.orders o LEFT JOIN crm.people p USING (id)",
        ["left p: `o.id` = `p.id`"],
        [],
        ["id: `p.id`", "name: `p.name`", "City: `p.City`", "k: COALESCE(`o.id`, `p.id`)"],
        id="the star of one relation, and a COALESCE that the user wrote",
    ),
    pytest.param(
        "SELECT ID, name FROM shop.orders o LEFT JOIN crm.people p USING (id) WHERE id > 3",
        ["left p: `o.id` = `p.id`"],
        ["`o.id` > 3"],
        ["id: `o.id`", "name: `p.name`"],
        id="USING of a left join is the left column",
    ),
    pytest.param(
        "SELECT id, name FROM shop.orders o RIGHT JOIN crm.people p USING (id) WHERE id > 3",
        ["right p: `o.id` = `p.id`"],
        ["`p.id` > 3"],
        ["id: `p.id`", "name: `p.name`"],
        id="USING of a right join is the right column",
    ),
    pytest.param(
        "SELECT ID, id + 1 AS next FROM shop.orders o FULL JOIN crm.people p USING (ID) WHERE id > 3",
        ["full p: `o.id` = `p.id`"],
        ["COALESCE(`o.id`, `p.id`) > 3"],
        ["id: COALESCE(`o.id`, `p.id`)", "next: COALESCE(`o.id`, `p.id`) + 1"],
        id="USING of a full join is whichever there is",
    ),
    pytest.param(
        "SELECT id FROM shop.orders o RIGHT JOIN crm.people p USING (id) LEFT JOIN shop.lines l ON order_id = id "
        "FULL JOIN pg.public.orders q USING (id)",
        ["right p: `o.id` = `p.id`", "left l: `l.order_id` = `p.id`", "full q: `p.id` = `q.id`"],
        [],
        ["id: COALESCE(`p.id`, `q.id`)"],
        id="a column of USING means in ON what it is up to there",
    ),
    pytest.param(
        "SELECT * FROM crm.people p FULL JOIN pg.public.orders q USING (id)",
        ["full q: `p.id` = `q.id`"],
        [],
        [
            *("id: COALESCE(`p.id`, `q.id`)", "name: `p.name`", "City: `p.City`", "score: `p.score`"),
            *("note: `q.note`", "tags: `q.tags`", "place: `q.place`"),
        ],
        id="the star has a column of USING once",
    ),
    pytest.param(
        "SELECT o.id FROM shop.orders o JOIN crm.people p ON o.cust = p.id AND TRUE LEFT JOIN shop.lines l "
        "ON l.order_id = o.id AND upper(l.sku) = p.name",
        ["inner p: `o.cust` = `p.id`", "left l: `l.order_id` = `o.id`, UPPER(`l.sku`) = `p.name`"],
        [],
        ["id: `o.id`"],
        id="an inner join before an outer one",
    ),
]


@pytest.mark.parametrize(("sql", "steps", "where", "output"), FORMS)
def test_steps(catalog: Catalog, sql: str, steps: list[str], where: list[str], output: list[str]) -> None:
    view = outer_join(sql, catalog)
    shown = [f"{step.kind} {step.operand.alias}: {', '.join(map(str, step.conditions))}" for step in view.steps]
    assert shown == steps
    assert [condition.sql for condition in view.where] == where
    assert [f"{column.name}: {column.expression.sql}" for column in view.output] == output
    assert [operand.index for operand in view.operands] == list(range(len(steps) + 1))


def test_name_and_properties(catalog: Catalog) -> None:
    sql = f"CREATE MATERIALIZED VIEW Sales TBLPROPERTIES ('storage' = 'outerjoin') AS {JOINED.format('LEFT JOIN')}"
    view = outer_join(sql, catalog)
    assert (view.name, view.sql, view.properties) == ("Sales", sql, (("storage", "outerjoin"),))
    assert view.columns == ("id",)
    assert view.sources == ("shop", "crm")
    assert list(view.relations) == ["shop.orders", "crm.people"]
    assert view.mentions(view.steps[0].conditions[0]) == {0, 1}


def test_what_it_shares_with_inner_joins(catalog: Catalog) -> None:
    view = outer_join("SELECT a.sku FROM shop.lines a LEFT JOIN shop.lines b ON a.qty = b.qty", catalog)
    assert view.keyless == ("shop.lines",)
    assert [operand.alias for operand in view.operands_of("shop.lines")] == ["a", "b"]
    assert view.with_all_columns.columns == ("a.order_id", "a.sku", "a.qty", "b.order_id", "b.sku", "b.qty")
    assert view.with_all_columns.steps == view.steps


def test_types(catalog: Catalog) -> None:
    view = outer_join("SELECT id, o.amount * 2 AS a FROM shop.orders o FULL JOIN crm.people p USING (id)", catalog)
    assert [column.expression.type for column in view.output] == ["BIGINT", "DECIMAL(12, 2)"]


def test_equalities_are_from_left_to_right(catalog: Catalog) -> None:
    view = outer_join(
        "SELECT o.id FROM shop.orders o LEFT JOIN crm.people p ON p.id = o.cust AND o.id = p.id AND o.id = o.cust "
        "AND p.id > o.id JOIN shop.lines l ON p.id = o.id AND l.order_id = p.id",
        catalog,
    )
    assert [step.equalities for step in view.steps] == [
        (("o.cust", "p.id"), ("o.id", "p.id")),
        (("p.id", "l.order_id"),),
    ]


def test_kinds_keep_rows() -> None:
    kept = {kind.value: (kind.keeps_left, kind.keeps_right, kind.is_outer) for kind in JoinKind}
    assert kept == {
        "inner": (False, False, False),
        "left": (True, False, True),
        "right": (False, True, True),
        "full": (True, True, True),
    }


def test_every_operand_but_the_first_has_a_step(catalog: Catalog) -> None:
    view = outer_join(JOINED.format("LEFT JOIN"), catalog)
    with pytest.raises(ValueError, match="one step for each operand"):
        replace(view, steps=())


def test_inner_joins_stay_views(catalog: Catalog) -> None:
    assert isinstance(parse_definition(JOINED.format("INNER JOIN"), catalog), View)


SUMMARIZED = "make the outer join a view of its own, with TBLPROPERTIES ('storage' = 'outerjoin'), and summarize that"
ORDER = "reordering"
NO_EQUALITY = "without an equality of two columns"

# SQL, what the error says, what its hint says.
REFUSED = [
    (JOINED.format("LEFT JOIN") + " CROSS JOIN shop.lines l", "CROSS JOIN is not supported beside", "JOIN ... ON"),
    (ORDERS + ", crm.people p LEFT JOIN shop.lines l ON l.order_id = p.id", "a table without ON", "JOIN ... ON"),
    (JOINED.format("LEFT JOIN") + ", shop.lines l WHERE l.order_id = o.id", "a table without ON", "JOIN ... ON"),
    (ORDERS + " LEFT JOIN crm.people p", "a table without ON", "JOIN ... ON with an equality"),
    (ORDERS + " LEFT JOIN crm.people p ON TRUE", f"p is joined to o ON TRUE, {NO_EQUALITY}", "such as o.id = p.id"),
    (
        ORDERS + " LEFT JOIN crm.people p ON o.cust < p.id",
        f"ON `o.cust` < `p.id`, {NO_EQUALITY}",
        "such as o.id = p.id",
    ),
    (ORDERS + " LEFT JOIN crm.people p ON o.cust = o.id AND p.id = 1", NO_EQUALITY, "such as o.id = p.id"),
    (ORDERS + " LEFT JOIN crm.people p ON o.cust = p.id OR o.id = p.id", NO_EQUALITY, "such as o.id = p.id"),
    (ORDERS + " LEFT JOIN crm.people p ON o.cust + 1 = p.id", NO_EQUALITY, "such as o.id = p.id"),
    (ORDERS + " LEFT JOIN crm.people p ON o.id = p.score", NO_EQUALITY, "not DOUBLE"),
    (
        JOINED.format("LEFT JOIN") + " JOIN shop.lines l ON o.id = p.id AND l.qty > 1",
        f"l is joined to o, p ON `o.id` = `p.id` AND `l.qty` > 1, {NO_EQUALITY}",
        "such as o.id = l.order_id",
    ),
    (
        "SELECT id FROM shop.orders o FULL JOIN crm.people p USING (id) LEFT JOIN pg.public.orders q USING (id)",
        f"ON COALESCE(`o.id`, `p.id`) = `q.id`, {NO_EQUALITY}",
        "make the joins before it a view of their own",
    ),
    (ORDERS + " LEFT JOIN (crm.people p JOIN shop.lines l ON p.id = l.qty) ON o.cust = p.id", "parentheses", ORDER),
    (ORDERS + " LEFT JOIN (crm.people p LEFT JOIN shop.lines l ON p.id = l.qty) ON o.cust = p.id", "paren", ORDER),
    ("SELECT o.id FROM (shop.orders o LEFT JOIN crm.people p ON o.cust = p.id)", "parentheses", "a view of its own"),
    (ORDERS + " LEFT JOIN crm.people p JOIN shop.lines l ON p.id = l.qty ON o.cust = p.id", "a join inside", ORDER),
    (ORDERS + " NATURAL LEFT JOIN crm.people p", "NATURAL LEFT JOIN", "USING (column)"),
    (JOINED.format("LEFT SEMI JOIN"), "LEFT SEMI JOIN", "on a key"),
    (JOINED.format("LEFT ANTI JOIN"), "LEFT ANTI JOIN", "subtract"),
    (JOINED.format("LEFT JOIN") + " SEMI JOIN shop.lines l ON l.order_id = o.id", "SEMI JOIN", "on a key"),
    (JOINED.format("LEFT INNER JOIN"), "LEFT INNER JOIN", "LEFT JOIN ... ON"),
    (JOINED.format("OUTER JOIN"), "OUTER JOIN", "LEFT JOIN ... ON"),
    (JOINED.format("LEFT JOIN") + " ORDER BY o.id", "ORDER BY", "the query that reads it"),
    (JOINED.format("LEFT JOIN") + " WHERE o.id IN (SELECT id FROM crm.people)", "IN (SELECT", "tables in FROM"),
    (ORDERS + " LEFT JOIN (SELECT id FROM crm.people) p ON o.cust = p.id", "a subquery in FROM", "tables in FROM"),
    (ORDERS + " LEFT JOIN crm.people p ON o.cust = p.id AND rand() < 1", "RAND", "literal"),
    (JOINED.format("LEFT JOIN") + " UNION SELECT id FROM shop.orders", "UNION", "one view per SELECT"),
    (JOINED.format("LEFT JOIN").replace("o.id", "COUNT(*) AS n", 1), "LEFT JOIN is not supported in a", SUMMARIZED),
    (JOINED.format("RIGHT JOIN").replace("o.id", "DISTINCT o.id", 1), "RIGHT JOIN is not supported in", SUMMARIZED),
    (JOINED.format("FULL OUTER JOIN") + " GROUP BY o.id", "FULL OUTER JOIN is not supported in a summ", SUMMARIZED),
]


@pytest.mark.parametrize(("sql", "detail", "hint"), REFUSED)
def test_refused(catalog: Catalog, sql: str, detail: str, hint: str) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        parse_definition(sql, catalog)
    assert detail in refused.value.detail
    assert hint in refused.value.hint


def test_parse_view_is_for_inner_joins(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        parse_view(JOINED.format("LEFT OUTER JOIN"), catalog)
    assert refused.value.detail == (
        "LEFT OUTER JOIN is not supported in a view of inner joins: a row without a partner comes and goes with the "
        "other side (line 1, column 52)"
    )
    assert refused.value.hint == "make it a view that stores the outer join: TBLPROPERTIES ('storage' = 'outerjoin')"


def test_conditions_on_tables_that_come_later(catalog: Catalog) -> None:
    with pytest.raises(DefinitionError, match="ON of p uses a column of l, which is joined after it") as refused:
        parse_definition(
            ORDERS + " LEFT JOIN crm.people p ON o.cust = p.id AND l.qty > 1 LEFT JOIN shop.lines l ON l.qty = p.id",
            catalog,
        )
    assert refused.value.hint == "move the condition into ON of l, or join l first"


def test_names(catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match="id is ambiguous"):
        parse_definition("SELECT id FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.id", catalog)
    with pytest.raises(DefinitionError, match="has no name"):
        parse_definition("SELECT o.id + 1 FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.id", catalog)
    with pytest.raises(DefinitionError, match="two output columns are called id"):
        parse_definition("SELECT * FROM shop.orders o LEFT JOIN crm.people p ON o.cust = p.id", catalog)
