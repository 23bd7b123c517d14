"""Two definitions of a view compared by what they mean: no warehouse, no source, no Spark."""

import pytest

from viewkeeper.planner.altering.comparison import Differences, differences
from viewkeeper.planner.canonical import Parsed
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation

TABLES = {
    "shop.orders": Relation("shop.orders", "shop", ("id", "customer", "amount"), ("BIGINT",) * 3, ("id",)),
    "crm.people": Relation("crm.people", "crm", ("id", "name", "city"), ("BIGINT", "STRING", "STRING"), ("id",)),
    "crm.old_people": Relation(
        "crm.old_people", "crm", ("id", "name", "city"), ("BIGINT", "STRING", "STRING"), ("id",)
    ),
}
JOIN = "SELECT o.id, p.name, o.amount FROM shop.orders o JOIN crm.people p ON o.customer = p.id WHERE o.amount > 1"
OUTER = "SELECT o.id, p.name FROM shop.orders o LEFT JOIN crm.people p ON o.customer = p.id"
OVER = "shop.orders o JOIN crm.people p ON o.customer = p.id"
SUM = f"SELECT city, COUNT(*) AS n, SUM(amount) + 1 AS s FROM {OVER} GROUP BY city"
CUBE = f"SELECT city, name, COUNT(*) AS n FROM {OVER} GROUP BY CUBE (city, name)"


def compared(old: str, new: str) -> Differences:
    """Each is a query, or properties, a bar and a query."""

    def parsed(text: str) -> Parsed:
        properties, _, query = text.rpartition("|")
        head = f"CREATE MATERIALIZED VIEW v {f'TBLPROPERTIES ({properties})' if properties else ''}"
        return parse_definition(f"{head} AS {query}", TABLES)

    return differences(parsed(old), parsed(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (JOIN, JOIN.lower().replace(" ", "\n  ") + " -- a comment"),
        (JOIN, JOIN.replace("o.customer = p.id", "p.id = o.customer")),
        (JOIN, JOIN.replace("o.", "x.").replace(" o ", " x ")),
        (JOIN, "SELECT o.id, name, amount FROM shop.orders o, crm.people p WHERE amount > 1 AND o.customer = p.id"),
        (JOIN, f"'consistency' = 'auto', 'algorithm' = 'auto', 'storage' = 'remote'|{JOIN}"),
        (f"'group' = 'g', 'retention' = '7 days'|{JOIN}", f"'retention' = '168 hours', 'group' = 'g'|{JOIN}"),
        (OUTER, f"'storage' = 'outerjoin'|{OUTER}"),
        (SUM, SUM.replace("o.", "x.").replace(" o ", " x ")),
        ("SELECT id, customer, COUNT(*) AS n, MAX(amount) AS m FROM shop.orders GROUP BY id, customer",
         "SELECT id, customer, COUNT(*) AS n, MAX(amount) AS m FROM shop.orders GROUP BY customer, id"),
        (f"'refresh' = 'every 60 minutes'|{SUM}", f"'refresh' = 'every 1 hour'|{SUM}"),
        (SUM, f"'refresh' = 'continuous', 'minmax' = 'node', 'core' = 'none'|{SUM}"),
        (CUBE, CUBE.replace("CUBE (city, name)", "GROUPING SETS ((city, name), (city), (name), ())")),
    ],
)  # fmt: skip
def test_the_same_meaning_is_no_difference(old: str, new: str) -> None:
    assert compared(old, new).none
    assert compared(new, old).none


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (JOIN, JOIN.replace("o.amount F", "o.id AS amount F"), "the column amount is id, and was amount"),
        (JOIN, JOIN.replace("p.name, ", ""), "the column name is gone"),
        (JOIN, JOIN.replace("p.name", "p.name, p.city"), "the column city is new"),
        (JOIN, JOIN.replace("o.id, p.name", "p.name, o.id"), "its columns are in another order"),
        (JOIN, JOIN.replace("p.name", "p.city AS name"), "the column name is city, and was name"),
        (JOIN, JOIN.replace("> 1", ">= 1"), "the conditions of its joins or of WHERE differ"),
        (JOIN, JOIN.replace("crm.people", "crm.old_people"),
         "it is over shop.orders, crm.old_people, and was over shop.orders, crm.people"),
        (JOIN, OUTER, "it is a join, and is to be an outer join"),
        (OUTER, OUTER.replace("LEFT", "FULL"), "its tables are joined in another way"),
        (JOIN, SUM, "it is a join, and is to be a summary"),
        (JOIN, OUTER.replace("p.name", "p.name, p.city"), "the column city is new"),
        (JOIN, OUTER, "the column amount is gone"),
        (SUM, CUBE, "it is a summary, and is to be a family of summaries"),
        (SUM, SUM.replace("SUM(", "MAX("), "the column s is MAX(amount) + 1, and was SUM(amount) + 1"),
        (SUM, SUM.replace("GROUP BY city", "GROUP BY city, name"), "it groups by something else"),
        (SUM, SUM + " HAVING COUNT(*) > 1", "HAVING is another"),
        (CUBE, CUBE.replace("CUBE", "ROLLUP"), "it groups by something else"),
        (CUBE, CUBE.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(amount) AS s"), "the column s is new"),
        ("SELECT COUNT(amount) - COUNT(customer) AS n FROM shop.orders GROUP BY id",
         "SELECT COUNT(customer) - COUNT(amount) AS n FROM shop.orders GROUP BY id",
         "the column n is COUNT(customer) - COUNT(amount), and was COUNT(amount) - COUNT(customer)"),
    ],
)  # fmt: skip
def test_another_query_is_told_by_its_clause(old: str, new: str, told: str) -> None:
    found = compared(old, new)
    assert told in found.query
    assert not found.properties


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (JOIN, f"'retention' = '1 day'|{JOIN}", {"retention": "the property retention is '1 day', and was not set"}),
        (f"'consistency' = 'weak'|{JOIN}", JOIN,
         {"consistency": "the property consistency is not set, and was 'weak'"}),
        (f"'refresh' = 'manual'|{SUM}", f"'refresh' = 'every 1 day'|{SUM}",
         {"refresh": "the property refresh is 'every 1 day', and was 'manual'"}),
    ],
)  # fmt: skip
def test_properties_are_told_by_name(old: str, new: str, told: dict[str, str]) -> None:
    found = compared(old, new)
    assert found.properties == told
    assert found.query == ()
