"""The statements that `explain` shows, run in DuckDB as they are: a lattice is prepared, propagated and refreshed.

What comes of it is what the same tables are when they are recomputed.
"""

from collections import Counter
from functools import cache

import duckdb
import pytest
import sqlglot
from lattice_in_duckdb import RELATIONS, VIEWS, comparable, determined, in_duckdb, retail_rows

from viewkeeper.clock import seeded
from viewkeeper.sql.layout import laid_out
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.syntax import ViewDialect
from viewkeeper.summary.defined import defined
from viewkeeper.summary.derivation import ALSO, derive
from viewkeeper.summary.explained_refresh import refreshed
from viewkeeper.summary.explained_statements import (
    TableNames,
    carried,
    prepared,
    propagated,
    propagated_with_dimensions,
)
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.node import rest_column
from viewkeeper.summary.plan import CHANGES, Lineage, changes_of
from viewkeeper.summary.statements import WEIGHT, added_up, quoted, union_of, whole_table, with_extremes

RETAIL = {
    **VIEWS,
    "by_region": "SELECT region, COUNT(*) AS n, SUM(qty) AS q "
    "FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID GROUP BY region",
    "total": "SELECT COUNT(*) AS n, SUM(qty) AS q, MAX(price) AS highest, AVG(weight) AS w FROM retail.pos",
    "value": "SELECT region, category, SUM(qty * cost) AS v, MIN(cost) AS least, COUNT(DISTINCT city) AS cities "
    "FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID JOIN retail.items i ON p.itemID = i.itemID "
    "GROUP BY region, category",
}


FACT = changes_of(RELATIONS["retail.pos"], WEIGHT)


@cache
def lattice(recompute):
    """The nodes of all views, the ways between them, and how each is computed from the fact."""
    nodes = {}
    for name, sql in RETAIL.items():
        made = defined(parse_definition(sql, RELATIONS, name=name), recompute=recompute)
        whole = with_hidden(made, list(nodes.values()), core_readable=recompute, recompute=recompute)
        nodes |= {node.name: node for node in (*(node for node, _ in whole.hidden), whole.node)}
    lineage = Lineage(list(nodes.values()), FACT, core_readable=recompute, determined=determined)
    return nodes, lineage, {name: derive(node, FACT) for name, node in nodes.items()}


class Shown:
    """The tables of a lattice in DuckDB, before some changes and after them; only statements that are shown run."""

    def __init__(self, seed, *, recompute=False, dimensions=False):
        self.rng = seeded(seed)
        self.database = duckdb.connect()
        self._load(seed, dimensions)
        self.nodes, lineage, self.whole = lattice(recompute)
        # Whatever sizes are expected, what comes of a plan is the same.
        self.plan = lineage.plan(lambda name: self.rng.random())
        self.names = TableNames.of("retail.pos", self.nodes.values())
        self.dimensions = dimensions
        self.stored = [edge.below.name for edge in self.plan.edges if edge.below.stored]
        for name in self.stored:
            self.run(f"CREATE TABLE {quoted(name)} AS {self.computed(name, 'before')}")

    def run(self, sql):
        return self.database.execute(in_duckdb(sql)).fetchall()

    def _load(self, seed, dimensions):
        """Old and new rows of each relation; the dimensions change only if they are to."""
        old = retail_rows(seed)
        more = {**retail_rows(seed + 1000), "retail.pos": retail_rows(seed + 1000)["retail.pos"][:40]}
        self.database.execute("CREATE SCHEMA retail")
        for name, relation in RELATIONS.items():
            short = relation.name.partition(".")[2]
            new = self._changed(old[name], more[name]) if short == "pos" or dimensions else old[name]
            self._create(f"{short}_before", relation, [(*row, 1) for row in old[name]])
            self._create(f"{short}_after", relation, [(*row, 1) for row in new])
            self.run(f"CREATE VIEW retail.{short} AS SELECT * FROM {short}_after")
            signed = Counter(new)
            signed.subtract(Counter(old[name]))
            table = CHANGES if short == "pos" else f"{short}_changes"
            self._create(table, relation, [(*row, weight) for row, weight in signed.items() if weight])

    def _changed(self, old, more):
        """Some rows go, some come, some come instead of one with the same key."""
        rows = {row[0]: row for row in old if self.rng.random() > 0.3}
        rows |= {row[0]: row for row in more if self.rng.random() > 0.5}
        return list(rows.values())

    def _create(self, table, relation, rows):
        types = [*relation.types, "BIGINT"]
        columns = ", ".join(f"{quoted(c)} {t}" for c, t in zip((*relation.columns, WEIGHT), types, strict=True))
        self.run(f"CREATE TABLE {table} ({columns})")
        if rows:
            self.database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(types))})", rows)

    def computed(self, name, when):
        """A whole table over the relations as they are before or after."""

        def linear(name):
            edge = self.whole[name]
            return whole_table(edge, f"pos_{when}", {d.path: f"{d.short}_{when}" for d in edge.joins})

        node = self.nodes[name]
        behind = {one.node: f"({linear(one.node)})" for one in node.extremes}
        text = with_extremes(node, f"({linear(name)})", behind, self.nodes) if behind else linear(name)
        rests = [f"0D AS {quoted(rest_column(column))}" for one, column in node.measures.items() if one.floating]
        return f"SELECT {', '.join(['*', *rests])} FROM ({text})"

    def propagate(self):
        for edge in self.plan.edges:
            name = edge.below.name
            statement = propagated_with_dimensions(edge, self.names) if self.dimensions else None
            self.run(f"CREATE TABLE {quoted(f'sd_{name}')} AS {statement or propagated(edge, self.names)}")
            if name in self.stored:
                columns = [column for column in edge.below.columns if not column.startswith(ALSO)]
                both = union_of([quoted(name), quoted(f"sd_{name}")], columns)
                self.run(f"CREATE TABLE {quoted(f'{name}_after')} AS {both}")

    def refresh(self):
        hidden_first = sorted(self.stored, key=lambda name: bool(self.nodes[name].extremes))
        for name in hidden_first:
            add_up = bool(carried(self.plan.edge(name)))
            self.run(refreshed(self.nodes[name], self.nodes, self.names, add_up=add_up, whole=self.whole))

    def rows(self, name, sql=None):
        node = self.nodes[name]
        columns = {name: quoted(name) for name in (*node.columns, *(extreme.column for extreme in node.extremes))}
        # A sum over values that are all odd is NULL or 0, as it came about: readers see neither.
        columns |= {name: f"COALESCE({quoted(name)}, 0)" for one, name in node.measures.items() if one.floating}
        table = quoted(name) if sql is None else f"({sql})"
        found = self.run(f"SELECT {', '.join(columns.values())} FROM {table}")
        return Counter(tuple(map(comparable, row)) for row in found)


@pytest.mark.parametrize("recompute", [False, True], ids=["hidden", "recomputed"])
@pytest.mark.parametrize("dimensions", [False, True], ids=["facts", "dimensions"])
@pytest.mark.parametrize("seed", [5, 6])
def test_what_is_shown_keeps_the_tables_fresh(seed, dimensions, recompute):
    shown = Shown(seed, recompute=recompute, dimensions=dimensions)
    shown.propagate()
    shown.refresh()
    for name in shown.stored:
        assert shown.rows(name) == shown.rows(name, shown.computed(name, "after")), name


@pytest.mark.parametrize("seed", [5])
def test_prepared_changes_add_up_to_the_summary_delta(seed):
    shown = Shown(seed)
    shown.propagate()
    for name in shown.stored:
        node = shown.nodes[name]
        statements = prepared(node, FACT)
        assert list(statements) == [f"pi_{name}", f"pd_{name}", f"pc_{name}"]
        for view, sql in statements.items():
            shown.run(f"CREATE VIEW {quoted(view)} AS {sql}")

        def linear(rows, node=node):
            found = shown.run(added_up(node, f"SELECT * FROM {quoted(rows)}"))
            return Counter(tuple(map(comparable, row)) for row in found)

        assert linear(f"pc_{name}") == linear(f"sd_{name}"), name
        count = quoted(node.count)
        assert shown.run(f"SELECT COUNT(*) FROM pi_{name} WHERE {count} <= 0") == [(0,)]
        assert shown.run(f"SELECT COUNT(*) FROM pd_{name} WHERE {count} >= 0") == [(0,)]
        for extreme in node.extremes:
            behind = shown.nodes[extreme.node]
            keys = [*node.groups.values(), extreme.column]
            theirs = [behind.groups[group] for group in (*node.groups, extreme.value)]
            of_changes = shown.run(_counted(f"pc_{name}", keys, node.count))
            assert Counter(of_changes) == Counter(shown.run(_counted(f"sd_{extreme.node}", theirs, behind.count)))


def _counted(table, keys, count):
    by = ", ".join(map(quoted, keys))
    return f"SELECT {by}, SUM({quoted(count)}) FROM {quoted(table)} GROUP BY {by}"


def test_tables_that_would_be_called_the_same_are_told_apart():
    sold = parse_definition(RETAIL["by_region"], RELATIONS, name="a")
    other = {**RELATIONS, "crm.stores": _renamed(RELATIONS["retail.stores"], "crm.stores")}
    known = parse_definition(RETAIL["by_region"].replace("retail.stores", "crm.stores"), other, name="pos")
    nodes = [defined(sold).node, defined(known).node]
    assert TableNames.of("retail.pos", nodes[:1]).relations == {"retail.pos": "pos", "retail.stores": "stores"}
    assert TableNames.of("retail.pos", nodes).relations == {
        "crm.stores": "crm_stores",
        "retail.pos": "retail_pos",
        "retail.stores": "retail_stores",
    }


def _renamed(relation, name):
    return type(relation)(name, name.partition(".")[0], relation.columns, relation.types, relation.key)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `a b`, `select`, `p`.`date`, 'x`y`' AS `z`, ((a)) + -(b) AS c FROM `t` AS p WHERE (a = b) IS NULL",
        "SELECT CASE (w) WHEN 1 THEN x ELSE -(x) END AS y FROM t",
    ],
)
def test_layout_changes_nothing_but_the_looks(sql):
    def bare(text):
        tree = sqlglot.parse_one(text, dialect=ViewDialect)
        for node in tree.find_all(sqlglot.exp.Identifier):
            node.set("quoted", False)
        return tree.transform(lambda node: node.unnest() if isinstance(node.unnest(), sqlglot.exp.Column) else node)

    assert bare(laid_out(sql)) == bare(sql)
    assert "'x`y`'" in laid_out(sql) or "'x`y`'" not in sql


def test_layout_keeps_the_quotes_that_are_needed():
    assert laid_out("SELECT `a b`, `select`, `storeID` FROM `sd_x`") == (
        "SELECT\n  `a b`,\n  `select`,\n  storeID\nFROM sd_x"
    )
