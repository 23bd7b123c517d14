"""TPC-H: its tables, its 22 queries as the specification writes them, and small tables with NULLs and duplicates."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from viewkeeper.clock import seeded
from viewkeeper.sql.relation import Relation

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "queries/tpch").glob("*.sql"))}

TABLES = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
    "s_acctbal DECIMAL(15,2), s_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
    "c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
    "p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2), ps_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), "
    "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2), "
    "l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING, "
    "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, "
    "l_shipmode STRING, l_comment STRING",
}

ROWS = {"region": 4, "nation": 8, "supplier": 12, "customer": 16, "part": 16, "partsupp": 40, "orders": 50}
_LINES = 160


def columns(table: str) -> list[tuple[str, str]]:
    """The names and types of a table's columns."""
    return [(name, kind) for name, _, kind in (one.partition(" ") for one in TABLES[table].split(", "))]


def relations(source: str = "") -> dict[str, Relation]:
    """The tables as relations, of a source or as views; without keys, since the rows here have duplicates."""
    made = {}
    for table in TABLES:
        name = f"{source}.{table}" if source else table
        names, types = zip(*columns(table), strict=True)
        made[name] = Relation(name, source, names, types)
    return made


def rows(seed: int) -> dict[str, list[tuple[object, ...]]]:
    """Rows for which the queries have answers: values that they name, few keys, NULLs, and duplicates."""
    random = seeded(seed)
    made = {}
    for table in TABLES:
        few = [
            tuple(None if random.random() < 0.04 else _value(random, name, kind) for name, kind in columns(table))
            for _ in range(ROWS.get(table, _LINES))
        ]
        made[table] = few + random.choices(few, k=len(few) // 8)
    return made


_WORDS = {
    "r_name": ["EUROPE", "ASIA", "AMERICA"],
    "n_name": ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA"],
    "s_comment": ["nothing", "Customer unhappy Complaints", "on time"],
    "c_mktsegment": ["BUILDING", "MACHINERY"],
    "c_phone": ["13-555", "31-555", "23-555", "99-555"],
    "p_name": ["green forest", "forest green", "blue"],
    "p_brand": ["Brand#12", "Brand#23", "Brand#34", "Brand#45"],
    "p_type": ["ECONOMY ANODIZED STEEL", "LARGE BRASS", "PROMO BRASS", "MEDIUM POLISHED TIN"],
    "p_container": ["SM CASE", "MED BOX", "LG PKG", "JUMBO"],
    "o_orderstatus": ["F", "O"],
    "o_orderpriority": ["1-URGENT", "2-HIGH", "5-LOW"],
    "o_comment": ["special requests", "none"],
    "l_returnflag": ["R", "N", "A"],
    "l_linestatus": ["O", "F"],
    "l_shipinstruct": ["DELIVER IN PERSON", "NONE"],
    "l_shipmode": ["AIR", "AIR REG", "MAIL", "SHIP"],
}


def _value(random: Any, name: str, kind: str) -> object:
    if name in _WORDS:
        return random.choice(_WORDS[name])
    if kind == "DATE":
        return date(random.randint(1993, 1996), random.randint(1, 12), 1) + timedelta(random.randint(0, 27))
    if name == "l_discount":
        return Decimal(random.randint(4, 8)) / 100
    if name == "l_quantity":
        return Decimal(random.choice([3, 8, 15, 22, 130, 250]))
    if kind.startswith("DECIMAL"):
        return Decimal(random.randint(-500, 90000)) / 100
    if name == "p_size":
        return random.choice([1, 3, 9, 14, 15])
    if kind == "INT":
        return random.randint(1, 40)
    if kind == "BIGINT":
        most = {"r": 3, "n": 6, "s": 8, "p": 8, "c": 12, "o": 30}
        letter = name.rpartition("_")[2][0]
        return random.randint(1, most.get(letter, 8))
    return f"{name} {random.randint(1, 3)}"
