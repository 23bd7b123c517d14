"""A query maintained by its nodes, with its tables in memory; Spark says what it should be."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.adaptive import Engines
from viewkeeper.maintenance.composed.evaluating import OperatorEngine
from viewkeeper.maintenance.composed.tree_frames import tree_frames
from viewkeeper.operators.expressions import flat, flat_names
from viewkeeper.operators.plan import NodePlan
from viewkeeper.sql.catalyst.reading import read_query
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Window, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]


class HeldState:
    """Stored tables, as Z-sets."""

    def __init__(self) -> None:
        self.tables: dict[str, Any] = {}

    def matching(self, table: str, columns: Sequence[str], keys: Any) -> Any:
        on = tuple((flat(mine), theirs) for mine, theirs in zip(columns, keys.columns, strict=True))
        return self.tables[table].matching(keys, on)

    def whole(self, table: str) -> Any:
        return self.tables[table]


class Maintained:
    """A query over relations that change."""

    def __init__(
        self, spark: "SparkSession", sql: str, relations: Mapping[str, Relation], rows: Mapping[str, Iterable[Row]]
    ) -> None:
        self._spark = spark
        self._engine = OperatorEngine(Engines(lambda: spark), lambda: spark)
        self.query = read_query(spark, sql, relations)
        self.plan = NodePlan.of(self.query)
        self.relations = {name: relations[name] for name in {scan.relation for scan in self.plan.scans}}
        self.contents = {
            name: self._engine.zset(one.columns, ((row, 1) for row in rows[name]))
            for name, one in self.relations.items()
        }
        self.state = HeldState()
        with tree_frames(spark, self.contents, self.relations) as frames:
            for name, (table, node) in self.plan.tables.items():
                self.state.tables[name] = self._zset(frames.of(node.content(table)), flat_names(table.columns))
            self.rows = self._zset(frames.of(self.plan.query.root), flat_names(self.query.root.columns))

    def _zset(self, frame: Any, names: tuple[str, ...]) -> Any:
        rows = Engines(lambda: self._spark).of_frame(frame.toDF(*names))
        rows.is_empty()
        return rows

    def change(self, changes: Mapping[str, Iterable[tuple[Row, int]]]) -> None:
        """Let relations change: signed rows of each."""
        deltas = {name: self._engine.zset(one.columns, changes.get(name, ())) for name, one in self.relations.items()}
        scanned = {
            scan: deltas[scan.relation].keep(scan.fields).rename(flat_names(scan.columns)) for scan in self.plan.scans
        }
        delta, tables = self.plan.follow(scanned, self.state, self._engine)
        for name, change in tables.items():
            self.state.tables[name] = self.state.tables[name] + change
        self.rows = self.rows + delta
        self.contents = {name: rows + deltas[name] for name, rows in self.contents.items()}

    def found(self) -> "Counter[Row]":
        return Counter({_comparable(row): weight for row, weight in self.rows.weights()})

    def expected(self) -> "Counter[Row]":
        """By Spark, from the relations as they are. Rows that tie in a window have the order of the normal form."""
        windows = any(isinstance(one, Window) for one in in_order(self.query.root))
        root = self.plan.query.root if windows else self.query.root
        with tree_frames(self._spark, self.contents, self.relations) as frames:
            rows = self._zset(frames.of(root), flat_names(root.columns))
        return Counter({_comparable(row): weight for row, weight in rows.weights()})

    def wrong_tables(self) -> list[str]:
        """The stored tables that are not what they would be if they were loaded now."""
        wrong = []
        with tree_frames(self._spark, self.contents, self.relations) as frames:
            for name, (table, node) in self.plan.tables.items():
                loaded = self._zset(frames.of(node.content(table)), flat_names(table.columns))
                if not (loaded - self.state.tables[name]).is_empty():
                    wrong.append(name)
        return wrong


def _comparable(row: Row) -> Row:
    return tuple(f"{value:.9g}" if isinstance(value, float) else value for value in row)


def random_changes(
    random: Any, contents: Mapping[str, Any], new: Mapping[str, Sequence[Row]]
) -> dict[str, list[tuple[Row, int]]]:
    """Some rows deleted, some of `new` inserted."""
    made: dict[str, list[tuple[Row, int]]] = {}
    for name, rows in contents.items():
        there = [row for row, _ in rows.weights()]
        gone = random.sample(there, min(len(there), random.choice([0, 1, 3])))
        come = [random.choice(new[name]) for _ in range(random.choice([0, 1, 3]))]
        made[name] = [*((row, -1) for row in gone), *((row, 1) for row in come)]
    return made
