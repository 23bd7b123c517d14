"""What the demo keeps fresh: two joins, the four summary tables of the summary-delta paper, and a cube.

    purchases    sales ⋈ people ⋈ items       three databases
    at_home      sales ⋈ stores ⋈ people      two tables of one database, and one of another
    SID_sales, sCD_sales, SiC_sales, sR_sales    figure 1 of the paper; facts from the shop, items from the catalogue
    sold         CUBE (region, category)      a family of four tables

Joins are kept at the level complete: each transaction of each database becomes a state. Summaries are at the level
strong: what has come meanwhile is refreshed at once, and all tables show the same of it.
"""

from collections.abc import Mapping

JOINS: Mapping[str, str] = {
    "purchases": """SELECT s.sale_id, p.name AS customer, i.name AS item, i.category, s.date, s.qty, s.price
        FROM shop.sales s
        JOIN customers.people p ON s.customer_id = p.customer_id
        JOIN catalogue.items i ON s.item_id = i.item_id""",
    "at_home": """SELECT s.sale_id, p.name AS customer, t.city, s.date, s.qty
        FROM shop.sales s
        JOIN shop.stores t ON s.store_id = t.store_id
        JOIN customers.people p ON s.customer_id = p.customer_id AND t.city = p.city""",
}

SUMMARIES: Mapping[str, str] = {
    "sid_sales": """SELECT store_id, item_id, date, COUNT(*) AS total_count, SUM(qty) AS total_quantity
        FROM shop.sales GROUP BY store_id, item_id, date""",
    "scd_sales": """SELECT t.city, s.date, COUNT(*) AS total_count, SUM(s.qty) AS total_quantity
        FROM shop.sales s JOIN shop.stores t ON s.store_id = t.store_id GROUP BY t.city, s.date""",
    "sic_sales": """SELECT s.store_id, i.category, COUNT(*) AS total_count, MIN(s.date) AS earliest_sale,
            SUM(s.qty) AS total_quantity
        FROM shop.sales s JOIN catalogue.items i ON s.item_id = i.item_id GROUP BY s.store_id, i.category""",
    "sr_sales": """SELECT t.region, COUNT(*) AS total_count, SUM(s.qty) AS total_quantity
        FROM shop.sales s JOIN shop.stores t ON s.store_id = t.store_id GROUP BY t.region""",
}

CUBE: Mapping[str, str] = {
    "sold": """SELECT t.region, i.category, COUNT(*) AS sales, SUM(s.qty) AS quantity
        FROM shop.sales s
        JOIN shop.stores t ON s.store_id = t.store_id
        JOIN catalogue.items i ON s.item_id = i.item_id
        GROUP BY CUBE (t.region, i.category)""",
}

HOLDS: Mapping[str, str] = {
    "purchases": "each sale with its customer and its item, from three databases",
    "at_home": "sales to customers in the city where they live",
    "sid_sales": "how many were sold, by store, item and date",
    "scd_sales": "the same by city and date",
    "sic_sales": "the same by store and category, with the date of the first sale",
    "sr_sales": "the same by region",
    "sold": "a cube: by region and category, by each of the two, and in total",
}
"""Name -> what is in it, for people."""

VIEWS: Mapping[str, str] = {**JOINS, **SUMMARIES, **CUBE}
"""Name -> SELECT."""


def create(name: str) -> str:
    """The statement that creates a view."""
    level = "TBLPROPERTIES ('consistency' = 'complete') " if name in JOINS else ""
    return f"CREATE MATERIALIZED VIEW {name} {level}AS {VIEWS[name]}"
