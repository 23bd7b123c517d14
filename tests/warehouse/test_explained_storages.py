"""Explanations of self-maintained views: what they say is stored is stored, and what they say is looked up is."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import DefinitionError
from viewkeeper.explaining.explained_storage import lookups
from viewkeeper.explaining.storage_explanation import SelfMaintained
from viewkeeper.explaining.summary_explanation import Explanation
from viewkeeper.lake.tables.cached_reads import KEPT_FROM
from viewkeeper.planner.self_maintained.automatic import Decision
from viewkeeper.planner.self_maintained.planned import supposed
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View
from viewkeeper.storage.join_tree import Columns
from viewkeeper.storage.self_maintained import STORAGES, operand_changes, refresh
from viewkeeper.storage.tables import HeldTables

TABLES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER, note TEXT);
CREATE TABLE people (person INTEGER, name TEXT);
INSERT INTO orders VALUES (1, 7, 'x'), (2, 7, 'y'), (3, 9, 'z');
INSERT INTO people VALUES (7, 'Ada'), (7, 'Bo'), (8, 'Cy');
"""
SELECT = "SELECT o.id, o.note, p.name FROM shop.orders o {} shop.people p ON o.person = p.person"
HOLDS = {
    "matview": {
        "joined_1": ("the join shop.orders ⋈ shop.people, whole rows", 4),
        "left_1": ("rows of shop.orders without a partner", 1),
        "right_1": ("rows of shop.people without a partner", 1),
    },
    "outerjoin": {"outer_1": ("the full outer join shop.orders ⟗ shop.people, whole rows", 6)},
    "viewcache": {
        "pairs_1": ("pairs of row ids: what each row of shop.orders ⋈ shop.people is made of", 4),
        "copy_0": ("a copy of the columns of shop.orders that the view needs", 3),
        "copy_1": ("a copy of the columns of shop.people that the view needs", 3),
    },
    "partial-join": {
        "joined_1": ("pairs of row ids of shop.orders ⋈ shop.people, with the compared columns", 4),
        "left_1": ("ids and compared columns of rows of shop.orders without a partner", 1),
        "right_1": ("ids and compared columns of rows of shop.people without a partner", 1),
        "copy_0": ("a copy of the columns of shop.orders that the view needs", 3),
        "copy_1": ("a copy of the columns of shop.people that the view needs", 3),
    },
    "partial-operand": {
        "pairs_1": ("pairs of row ids: what each row of shop.orders ⋈ shop.people is made of", 4),
        "operand_0": ("ids and compared columns of every row of shop.orders", 3),
        "operand_1": ("ids and compared columns of every row of shop.people", 3),
        "copy_0": ("a copy of the columns of shop.orders that the view needs", 3),
        "copy_1": ("a copy of the columns of shop.people that the view needs", 3),
    },
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("explained")
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript(TABLES)
    with Warehouse.open(folder / "lake") as warehouse:
        warehouse.add_source("shop", f"sqlite:///{folder}/shop.db", install=True)
        yield warehouse


def statement(name: str, storage: str | None, join: str = "JOIN") -> str:
    properties = f"TBLPROPERTIES ('storage' = '{storage}')" if storage is not None else ""
    return f"CREATE MATERIALIZED VIEW {name} {properties} AS {SELECT.format(join)}"


def explained(warehouse: Warehouse, text: str) -> tuple[Explanation, SelfMaintained]:
    found = warehouse.explain(text)
    assert isinstance(found, Explanation)
    assert found.kind == "self-maintained"
    assert found.self_maintained is not None
    return found, found.self_maintained


@pytest.mark.parametrize("storage", STORAGES)
def test_what_is_stored(warehouse: Warehouse, storage: str) -> None:
    name = storage.replace("-", "_")
    before, supposed_to = explained(warehouse, statement(name, storage))
    assert not before.created
    assert {one.table: one.holds for one in supposed_to.structures} == {
        f"_vk_{name}_{table}": holds for table, (holds, _) in HOLDS[storage].items()
    }
    assert {(one.rows, one.bytes) for one in supposed_to.structures} == {(None, None)}

    warehouse.create_view(statement(name, storage))
    after, found = explained(warehouse, name)
    assert (after.created, after.storage, after.level, after.group, after.state) == (True, storage, "complete", name, 0)
    assert after.storage_reasons == ("it was requested",)
    assert {one.table: (one.holds, one.rows) for one in found.structures} == {
        f"_vk_{name}_{table}": told for table, told in HOLDS[storage].items()
    }
    assert all(one.bytes for one in found.structures if one.rows)
    assert found.changes == supposed_to.changes
    assert all(change.asks == () for change in found.changes)
    assert [(one.relation, one.by, one.numbered) for one in found.identities] == [
        ("shop.orders", ("o.id",), False),
        ("shop.people", ("p._vk_id",), True),
    ]
    copies = tuple(one.table for one in found.structures if "_copy_" in one.table)
    assert (found.reading.copies, found.reading.kept_from_read) == (copies, KEPT_FROM if copies else None)
    assert (found.engines.python_up_to, found.engines.always_spark) == (2000, False)


@pytest.mark.parametrize(("join", "sign"), [("LEFT JOIN", "⟕"), ("RIGHT JOIN", "⟖"), ("FULL JOIN", "⟗")])
def test_outer_joins(warehouse: Warehouse, join: str, sign: str) -> None:
    select = f"{SELECT.format(join)} LEFT JOIN shop.orders q ON q.id = o.id"
    found, stored = explained(warehouse, f"CREATE MATERIALIZED VIEW v AS {select}")
    assert found.storage == "outerjoin"
    assert "outer join" in found.storage_reasons[0]
    assert [one.holds for one in stored.structures] == [
        "the full outer join shop.orders o ⟗ shop.people, whole rows",
        f"the full outer join shop.orders o {sign} shop.people ⟗ shop.orders q, whole rows",
    ]


def test_only_spark_evaluates_some_expressions(warehouse: Warehouse) -> None:
    sql = statement("v", "matview")
    shown = sql.replace("o.note", "soundex(o.note) AS sound")
    assert not explained(warehouse, shown)[1].engines.always_spark, "it is evaluated by who reads the view"
    compared = f"{sql} AND soundex(o.note) = soundex(p.name)"
    assert explained(warehouse, compared)[1].engines.always_spark


def test_asking_the_sources_is_said_too(warehouse: Warehouse) -> None:
    for storage, why in ((None, "nothing else was requested"), ("remote", "it was requested")):
        found = warehouse.explain(statement("v", storage))
        assert isinstance(found, Explanation)
        assert (found.kind, found.storage, found.storage_reasons) == ("join", "remote", (why,))


def test_views_whose_sources_are_asked_have_groups_of_their_own(warehouse: Warehouse) -> None:
    warehouse.create_view(statement("alone", "viewcache"))
    warehouse.create_view(statement("asking", None))
    assert [view.group for view in warehouse.status().views if view.view == "asking"] == ["asking"]
    sql = statement("other", None).replace(" AS SELECT", "TBLPROPERTIES ('group' = 'alone') AS SELECT")
    with pytest.raises(DefinitionError, match="maintained by what is stored for them"):
        warehouse.create_view(sql)


# Lookups, beside those of the algorithms

RELATIONS = {
    "a.r": Relation("a.r", "a", ("id", "k", "t"), ("BIGINT", "BIGINT", "STRING"), ("id",)),
    "a.s": Relation("a.s", "a", ("k", "l"), ("BIGINT", "BIGINT")),
    "a.q": Relation("a.q", "a", ("id", "l"), ("BIGINT", "BIGINT"), ("id",)),
}
TWO = "SELECT r.t, s.l FROM a.r r JOIN a.s s ON r.k = s.k"
THREE = "SELECT r.t, q.id FROM a.r r JOIN a.s s ON r.k = s.k JOIN a.q q ON s.l = q.l"
ROWS = {"a.r": (1, 5, "x"), "a.s": (5, 6), "a.q": (2, 6)}


class Watched(HeldTables[MemoryZSet]):
    """Tables that remember how they were looked up, if there was something to find."""

    def __init__(self, held: dict[str, MemoryZSet]) -> None:
        super().__init__(held)
        self.seen: set[tuple[str, Columns]] = set()

    def matching(self, table: str, columns: Columns, keys: MemoryZSet, wanted: Columns | None = None) -> MemoryZSet:
        if keys.size():
            self.seen.add((table, columns))
        return super().matching(table, columns, keys, wanted)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("select", [TWO, THREE], ids=["two", "three"])
def test_what_is_looked_up(storage: str, select: str) -> None:
    view = parse_definition(f"CREATE MATERIALIZED VIEW v AS {select}", RELATIONS)
    assert isinstance(view, View | OuterJoinView)
    kept = supposed(view, Decision(storage, ()))
    leaves = kept.storage.tree.leaves
    whole = {n: [(ROWS[leaf.operand.relation.name], 1)] for n, leaf in enumerate(leaves)}
    tables = Watched({one.name: MemoryZSet(one.columns) for one in kept.storage.structures})
    numbers = count()

    def change(rows: dict[int, list[tuple[tuple[object, ...], int]]]) -> None:
        given = {n: MemoryZSet(leaf.operand.columns, rows.get(n, ())).keep(leaf.given) for n, leaf in enumerate(leaves)}
        changed, _ = refresh(kept.storage, tables, operand_changes(kept.storage, tables, given, numbers), view=False)
        tables.apply(changed)

    change(whole)
    for n in range(len(leaves)):
        tables.seen.clear()
        change({n: [(whole[n][0][0], -1)]})
        change({n: whole[n]})
        told = {(lookup.table, lookup.by) for lookup in lookups(kept, n)}
        seen = {(kept.table_of(table), columns) for table, columns in tables.seen}
        assert told <= seen
        # Of a longer join the rows that pointers lead to, by their ids, are looked up besides.
        more = {columns for table, columns in seen - told}
        assert not more if select == TWO else more <= {leaf.ids for leaf in leaves}
