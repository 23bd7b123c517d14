"""The retail warehouse of the summary-delta paper: its tables, its four views, and data to run SQL on in DuckDB."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from viewkeeper.clock import Random, seeded
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.summary_view import SummaryView
from viewkeeper.summary.defined import Defined, defined
from viewkeeper.summary.derivation import Derivation, derive
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.hierarchies import Hierarchy, combined_lattice
from viewkeeper.summary.node import Extreme, Node
from viewkeeper.summary.plan import Lineage, Plan, changes_of
from viewkeeper.summary.star import Dimension
from viewkeeper.summary.statements import WEIGHT, Names, summary_delta, whole_table

POS = Relation(
    "retail.pos",
    "retail",
    ("storeID", "itemID", "date", "qty", "price"),
    ("INT", "INT", "DATE", "INT", "DECIMAL(10, 2)"),
)
STORES = Relation("retail.stores", "retail", ("storeID", "city", "region"), ("INT", "STRING", "STRING"), ("storeID",))
ITEMS = Relation(
    "retail.items",
    "retail",
    ("itemID", "name", "category", "cost"),
    ("INT", "STRING", "STRING", "DECIMAL(10, 2)"),
    ("itemID",),
)
CATALOG = {relation.name: relation for relation in (POS, STORES, ITEMS)}
CHANGES = changes_of(POS, WEIGHT)
HIERARCHIES = (
    Hierarchy.chain("stores", ("storeID", "city", "region")),
    Hierarchy.chain("items", ("itemID", "category")),
)
FIGURE_5 = combined_lattice(("storeID", "itemID", "date"), HIERARCHIES)

FIGURE_1 = {
    "SID_sales": """SELECT storeID, itemID, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM retail.pos GROUP BY storeID, itemID, date""",
    "sCD_sales": """SELECT city, date, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM retail.pos, retail.stores WHERE pos.storeID = stores.storeID GROUP BY city, date""",
    "SiC_sales": """SELECT storeID, category, COUNT(*) AS TotalCount, MIN(date) AS EarliestSale,
            SUM(qty) AS TotalQuantity
        FROM retail.pos, retail.items WHERE pos.itemID = items.itemID GROUP BY storeID, category""",
    "sR_sales": """SELECT region, COUNT(*) AS TotalCount, SUM(qty) AS TotalQuantity
        FROM retail.pos, retail.stores WHERE pos.storeID = stores.storeID GROUP BY region""",
}


# The first one is that of section 2.1; `changes` are its union of pos_ins and pos_del.
FIGURE_3 = """
    CREATE VIEW sd_SID_sales(storeID, itemID, date, sd_Count, sd_Quantity) AS
        SELECT storeID, itemID, date, SUM(_vk_weight) AS sd_Count, SUM(qty * _vk_weight) AS sd_Quantity
        FROM changes GROUP BY storeID, itemID, date;
    CREATE VIEW sd_sCD_sales(city, region, date, sd_Count, sd_Quantity) AS
        SELECT city, region, date, sum(sd_Count) AS sd_Count, sum(sd_Quantity) AS sd_Quantity
        FROM sd_SID_sales, stores WHERE sd_SID_sales.storeID = stores.storeID
        GROUP BY city, region, date;
    CREATE VIEW sd_SiC_sales(storeID, category, sd_Count, sd_EarliestSale, sd_Quantity) AS
        SELECT storeID, category, sum(sd_Count) AS sd_Count, min(date) AS sd_EarliestSale,
            sum(sd_Quantity) AS sd_Quantity
        FROM sd_SID_sales, items WHERE sd_SID_sales.itemID = items.itemID
        GROUP BY storeID, category;
    CREATE VIEW sd_sR_sales(region, sd_Count, sd_Quantity) AS
        SELECT region, sum(sd_Count) AS sd_Count, sum(sd_Quantity) AS sd_Quantity
        FROM sd_sCD_sales GROUP BY region"""
TABLE_3 = {"changes": 10_000, "SID_sales": 1_000, "sCD_sales": 100, "SiC_sales": 1_000, "sR_sales": 10}
"""rows of the changes and of the summary-deltas"""


def table(name: str, sql: str, catalog: Catalog = CATALOG) -> Defined:
    view = parse_definition(sql, catalog, name=name)
    assert isinstance(view, SummaryView)
    return defined(view)


def node(name: str, sql: str, catalog: Catalog = CATALOG) -> Node:
    """A table as the paper has it: MIN and MAX are columns like any other, with no node of their own."""
    made = table(name, sql, catalog)
    return replace(made.node, extremes=tuple(Extreme(*one, node="none") for one in made.extremes))


NODES = {name: node(name, sql) for name, sql in FIGURE_1.items()}
TRUSTING = frozenset(path for one in NODES.values() for path in one.paths)
"""the paper's assumption: every foreign key finds its row"""


def determined(dimension: Dimension, columns: frozenset[str]) -> frozenset[str]:
    hierarchy = next(one for one in HIERARCHIES if one.name == dimension.short)
    return hierarchy.closure(columns) if columns else columns


Rows = Counter[tuple[Any, ...]]


class Retail:
    """Tables in DuckDB: pos_old, pos_ins, pos_del and pos, which has these changes; stores and items; `changes`."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database

    def run(self, sql: str) -> Rows:
        """The answer to SQL as the paper writes it."""
        return Counter(self._database.execute(sql).fetchall())

    def spark(self, sql: str) -> Rows:
        """The answer to SQL as viewkeeper writes it."""
        return self.run(in_duckdb(sql))

    def view(self, name: str, sql: str) -> None:
        self._database.execute(f'CREATE VIEW "{name}" AS {in_duckdb(sql)}')

    def arrow(self, sql: str) -> pa.Table:
        return self._database.sql(in_duckdb(sql)).to_arrow_table()


@contextmanager
def retail(seed: int, quantities: Sequence[int | None] = (None, 1, 2, 3)) -> Iterator[Retail]:
    """Random sales with duplicates, and changes of them. Every foreign key finds its row."""
    random = seeded(seed)
    stores = [(number, f"city {number % 4}", f"region {number % 4 % 2}") for number in range(1, 7)]
    items = [(number, f"item {number}", f"category {number % 3}", number) for number in range(1, 6)]
    sales, inserted = ([_sale(random, quantities) for _ in range(number)] for number in (60, 15))
    with small_retail(stores, items, sales, inserted, random.sample(sales, 20)) as made:
        yield made


def _sale(random: Random, quantities: Sequence[int | None]) -> tuple[Any, ...]:
    day = date(1996, 6, 1) + timedelta(days=random.randrange(4))
    return random.randint(1, 6), random.randint(1, 5), day, random.choice(quantities), random.randint(1, 2)


@contextmanager
def small_retail(
    stores: Sequence[tuple[Any, ...]],
    items: Sequence[tuple[Any, ...]],
    sales: Sequence[tuple[Any, ...]],
    inserted: Sequence[tuple[Any, ...]] = (),
    deleted: Sequence[tuple[Any, ...]] = (),
) -> Iterator[Retail]:
    with duckdb.connect() as database:
        rows = {"pos_old": sales, "pos_ins": inserted, "pos_del": deleted, "stores": stores, "items": items}
        for name, content in rows.items():
            relation = {"stores": STORES, "items": ITEMS}.get(name, POS)
            types = ("VARCHAR" if type == "STRING" else type for type in relation.types)
            columns = ", ".join(f"{column} {type}" for column, type in zip(relation.columns, types, strict=True))
            database.execute(f"CREATE TABLE {name} ({columns})")
            if content:
                values = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in content)
                database.execute(f"INSERT INTO {name} VALUES {values}", [value for row in content for value in row])
        database.execute("CREATE VIEW pos AS (FROM pos_old EXCEPT ALL FROM pos_del) UNION ALL FROM pos_ins")
        for name, whole in (("weighted_pos_old", "pos_old"), ("weighted_pos", "pos")):
            database.execute(f"CREATE VIEW {name} AS SELECT *, 1 AS {WEIGHT} FROM {whole}")
        database.execute(
            f"CREATE VIEW changes AS SELECT *, 1 AS {WEIGHT} FROM pos_ins UNION ALL SELECT *, -1 FROM pos_del"
        )
        yield Retail(database)


def in_duckdb(sql: str) -> str:
    [text] = sqlglot.transpile(sql, read="spark", write="duckdb")
    return text


def edge_between(below: Node, above: Node = CHANGES) -> Derivation:
    edge = derive(below, above, trusting=TRUSTING | above.paths)
    assert edge is not None, f"{below.name} from {above.name}"
    return edge


def whole_sql(edge: Derivation, above: str) -> str:
    """The query of an edge over the table above, with stores and items where they are joined."""
    return whole_table(edge, above, dimension_tables(edge))


def delta_sql(edge: Derivation, above: str, *, preaggregated: bool = False) -> str:
    """The query of an edge over the summary-delta above."""
    added_up = frozenset({edge.below.name}) if preaggregated else frozenset()
    names = Names({edge.above.name: above}, old=dimension_tables(edge), preaggregated=added_up)
    return summary_delta(edge, names)


def dimension_tables(edge: Derivation) -> Mapping[str, str]:
    return {dimension.path: dimension.short for dimension in edge.joins}


def attributes(one: Node) -> list[str]:
    """What a node groups by, as the paper calls it."""
    return sorted(group.sql.strip("`").rpartition(".")[2] for group in one.groups)


def planned(nodes: list[Node]) -> Plan:
    """As the warehouse plans, with the sizes of table 3; those of hidden nodes are guessed."""
    lineage = Lineage(nodes, CHANGES, core_readable=False, determined=determined)
    return lineage.plan(lambda name: TABLE_3.get(name, 1_000))


def with_hidden_nodes() -> list[Node]:
    """The tables that a warehouse has for the four views."""
    made: list[Node] = []
    for name, sql in FIGURE_1.items():
        one = with_hidden(table(name, sql), made, core_readable=False, recompute=False)
        made += [one.node, *(hidden for hidden, _ in one.hidden)]
    return made
