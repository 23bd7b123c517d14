"""A retail lattice with its tables computed by DuckDB, from rows with every kind of gap in them.

Sales of stores that nobody knows, sales without a store, stores without a city, cities without a region, NULL and NaN
among the numbers.
"""

import math
from collections import Counter
from decimal import Decimal

import duckdb
import sqlglot

from viewkeeper.clock import seeded
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.summary.answering import StoredTables
from viewkeeper.summary.defined import defined
from viewkeeper.summary.derivation import derive
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.hierarchies import Hierarchy
from viewkeeper.summary.node import rest_column
from viewkeeper.summary.plan import changes_of
from viewkeeper.summary.statements import WEIGHT, quoted, whole_table, with_extremes


def relation(name, key, /, **columns):
    return Relation(name, name.partition(".")[0], tuple(columns), tuple(columns.values()), (key,) if key else None)


POS = relation(
    "retail.pos",
    "id",
    id="BIGINT",
    storeID="INT",
    itemID="INT",
    date="DATE",
    qty="INT",
    price="DECIMAL(10, 2)",
    weight="DOUBLE",
)
STORES = relation("retail.stores", "storeID", storeID="INT", city="STRING", region="STRING")
ITEMS = relation("retail.items", "itemID", itemID="INT", name="STRING", category="STRING", cost="DECIMAL(10, 2)")
RELATIONS = {one.name: one for one in (POS, STORES, ITEMS)}
COPIES = {"retail.stores": "copy_of_stores", "retail.items": "copy_of_items"}
CITIES = Hierarchy.chain("stores", ("storeID", "city", "region"))

VIEWS = {
    "sid": "SELECT storeID, itemID, date, COUNT(*) AS n, SUM(qty) AS q, SUM(price) AS total FROM retail.pos "
    "GROUP BY storeID, itemID, date",
    "by_city": "SELECT city, date, COUNT(*) AS n, SUM(qty) AS q, MAX(price) AS highest "
    "FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID GROUP BY city, date",
    "by_category": "SELECT storeID, category, COUNT(*) AS n, MIN(date) AS earliest, SUM(qty) AS q, "
    "COUNT(DISTINCT date) AS days FROM retail.pos p JOIN retail.items i ON p.itemID = i.itemID "
    "GROUP BY storeID, category",
    "weights": "SELECT storeID, SUM(weight) AS w, AVG(weight) AS a FROM retail.pos GROUP BY storeID",
    "large": "SELECT storeID, itemID, SUM(qty) AS q FROM retail.pos WHERE qty > 2 GROUP BY storeID, itemID "
    "HAVING COUNT(*) > 1",
}


def determined(dimension, columns):
    return CITIES.closure(columns) if dimension.relation.name == "retail.stores" and columns else frozenset()


def retail_rows(seed):
    """Rows of the three tables. Cities are in one region each, save those that are NULL."""
    rng = seeded(seed)
    regions = {"Bern": "west", "Basel": "west", "Chur": "east", "Nowhere": None}
    cities = [*regions, None]
    stores = []
    for number in range(1, 9):
        city = rng.choice(cities)
        stores.append((number, city, regions[city] if city else rng.choice(["west", "east", None])))
    items = [
        (number, f"item {number}", rng.choice(["food", "tools", None]), rng.choice([Decimal("1.25"), None]))
        for number in range(1, 6)
    ]
    sales = [
        (
            number,
            rng.choice([*range(1, 11), None]),
            rng.choice([*range(1, 7), None]),
            rng.choice(["2024-01-01", "2024-01-02", "2024-02-29", None]),
            rng.choice([0, 1, 2, 3, -4, None]),
            rng.choice([Decimal("0.10"), Decimal("12.34"), None]),
            rng.choice([0.5, -2.25, 1024.0, None] + [math.nan, math.inf] * rng.choice([0, 0, 1])),
        )
        for number in range(rng.choice([0, 3, 60, 200]))
    ]
    return {"retail.pos": sales, "retail.stores": stores, "retail.items": items}


class RetailLattice:
    """The tables of the views, stored in DuckDB; queries are run there too, on the base tables or on stored ones."""

    def __init__(self, seed=0, views=VIEWS):
        self.database = duckdb.connect()
        self.database.execute("CREATE SCHEMA retail")
        for name, rows in retail_rows(seed).items():
            one = RELATIONS[name]
            columns = ", ".join(f'"{c}" {_duckdb_type(t)}' for c, t in zip(one.columns, one.types, strict=True))
            self.database.execute(f"CREATE TABLE {name} ({columns})")
            if rows:
                self.database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(one.columns))})", rows)
        for name, copy in COPIES.items():
            self.database.execute(f"CREATE TABLE {copy} AS SELECT * FROM {name}")
        self.database.execute(f"CREATE TABLE feed AS SELECT *, 1::BIGINT AS {WEIGHT} FROM retail.pos")
        self.nodes = []
        for name, sql in views.items():
            parsed = parse_definition(sql, RELATIONS, name=name)
            for view in [member.view for member in parsed.members] if isinstance(parsed, Family) else [parsed]:
                made = with_hidden(defined(view), self.nodes, core_readable=False, recompute=False)
                new = [*(node for node, _ in made.hidden), made.node]
                self.nodes += new
                for node in new:
                    self._store(node)
        rows = {node.name: self._count(node.name) for node in self.nodes}
        self.stored = StoredTables("retail", self.nodes, rows, COPIES, determined)

    def _store(self, node):
        edge = derive(node, changes_of(POS, WEIGHT))
        copies = {one.path: COPIES[one.relation.name] for one in edge.joins}
        linear = whole_table(edge, "feed", copies)
        if node.extremes:
            by_name = {one.name: one for one in self.nodes}
            behind = {extreme.node: quoted(extreme.node) for extreme in node.extremes}
            linear = with_extremes(node, f"({linear})", behind, by_name)
        rests = [rest_column(column) for measure, column in node.measures.items() if measure.floating]
        items = ", ".join(["*", *(f"0D AS {quoted(rest)}" for rest in rests)])
        self.database.execute(f'CREATE TABLE "{node.name}" AS {in_duckdb(f"SELECT {items} FROM ({linear})")}')

    def _count(self, table):
        [(rows,)] = self.database.sql(f'SELECT COUNT(*) FROM "{table}"').fetchall()
        return rows

    def holds(self, _, pairs):
        columns = ", ".join(f'"{column}"' for column, _ in pairs.by)
        found = f"SELECT 1 FROM ({in_duckdb(pairs.sql(pairs.copy))}) GROUP BY {columns} HAVING COUNT(*) > 1"
        return not self.database.sql(found).fetchall()

    def rows(self, sql):
        """The rows of a query in Spark's dialect, in their order."""
        return [tuple(map(comparable, row)) for row in self.database.sql(in_duckdb(sql)).fetchall()]

    def bag(self, sql):
        return Counter(self.rows(sql))


def in_duckdb(sql):
    return sqlglot.transpile(sql, read=ViewDialect, write="duckdb")[0]


def comparable(value):
    """A value of which it does not matter whether DuckDB has it as a DECIMAL, an integer or a DOUBLE."""
    if isinstance(value, float | Decimal | int) and not isinstance(value, bool):
        number = float(value)
        return "NaN" if math.isnan(number) else number if math.isinf(number) else round(number, 6) + 0.0
    return value


def _duckdb_type(type):
    return {"STRING": "VARCHAR"}.get(type, type)
