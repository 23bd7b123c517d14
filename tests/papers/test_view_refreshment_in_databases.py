"""The example of the view refreshment paper over two SQLite databases: a view per storage and level, in one warehouse.

R is in one database and S in the other. Each moment of the history is one transaction wherever something changes. With
'complete' each transaction is a state; with 'strong' a state has all that had come when it was made. What readers see
at a state, and what is stored for it, is that of the transactions in its vector.
"""

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from refreshment_figures import FIGURE_2_JOIN
from refreshment_history import HISTORY, NOV_15, NOV_17
from refreshment_paper import SELECT, STRUCTURES, Moment, Row, Rows

from viewkeeper.lake.log.states import State
from viewkeeper.maintenance.audits import Audit
from viewkeeper.messages import Vector
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATCH_UPS = (HISTORY[1:2], HISTORY[2:3], HISTORY[3:6], HISTORY[6:7], HISTORY[7:])
"""The moments that each catch-up finds, several or one."""
TRANSACTIONS = (2, 1, 3, 2, 3)
"""What these are at the databases: 11.17.95, the sixth and the eighth moment change both."""
VIEWS = (*((storage, "complete") for storage in STRUCTURES), ("matview", "strong"), ("viewcache", "strong"))
SHOWN = ("ra", "rb", "rc", "sa", "sb", "sc")


@dataclass
class Kept:
    """All that is seen of one view: after each catch-up, and state by state."""

    storage: str
    level: str
    read: list[Counter[Row]] = field(default_factory=list)
    states_after: list[int] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    view: list[Counter[Row]] = field(default_factory=list)
    tables: dict[str, list[Counter[Row]]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    audit: Audit | None = None

    @property
    def name(self) -> str:
        return f"{self.storage}_{self.level}".replace("-", "_")

    @property
    def sql(self) -> str:
        properties = f"'storage' = '{self.storage}', 'consistency' = '{self.level}'"
        return f"CREATE MATERIALIZED VIEW {self.name} TBLPROPERTIES ({properties}) AS {SELECT}"

    def table(self, structure: str) -> str:
        return f"_vk_{self.name}_{structure.replace(' ', '_')}"


@dataclass
class Database:
    """One relation, in a database of its own, and its contents after each transaction."""

    path: Path
    table: str
    contents: list[Rows]

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def create(self) -> None:
        with closing(self.connect()) as connection:
            connection.execute(
                f"CREATE TABLE {self.table} (tid TEXT NOT NULL PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER)"
            )
            rows = [(tid, *row) for tid, row in self.contents[0].items()]
            connection.executemany(f"INSERT INTO {self.table} VALUES (?, ?, ?, ?)", rows)

    def go_to(self, rows: Rows) -> None:
        """One transaction, if there is something to do: updates; but r5 is deleted and its key used again."""
        before = self.contents[-1]
        if before == rows:
            return
        with closing(self.connect()) as connection:
            connection.execute("BEGIN")
            for tid in before:
                if tid not in rows or (tid == "r5" and rows[tid] != before[tid]):
                    connection.execute(f"DELETE FROM {self.table} WHERE tid = ?", (tid,))
            for tid, row in rows.items():
                if tid in before and tid != "r5" and row != before[tid]:
                    connection.execute(f"UPDATE {self.table} SET a = ?, b = ?, c = ? WHERE tid = ?", (*row, tid))
                elif row != before.get(tid):
                    connection.execute(f"INSERT INTO {self.table} VALUES (?, ?, ?, ?)", (tid, *row))
            # A tuple that comes and goes within one transaction was never there.
            connection.execute(f"INSERT INTO {self.table} VALUES ('brief', 1, 0, 0)")
            connection.execute(f"DELETE FROM {self.table} WHERE tid = 'brief'")
            connection.execute("COMMIT")
        self.contents.append(rows)


@dataclass
class Played:
    """The history as a warehouse has kept it."""

    databases: dict[str, Database]
    views: dict[tuple[str, str], Kept]
    """by storage and level"""

    def moment(self, vector: Vector) -> Moment:
        """What the sources were at a vector: as it is written out by hand, if it is one moment of the history."""
        r, s = (database.contents[self._transactions(source, vector)] for source, database in self.databases.items())
        return next((one for one in HISTORY if one.r == r and one.s == s), Moment.of("in between", r, s))

    def _transactions(self, source: str, vector: Vector) -> int:
        """How many transactions of a source are in a vector, by the states of a view that misses none."""
        positions = sorted({state.vector[source] for state in self.views["viewcache", "complete"].states})
        assert len(positions) == len(self.databases[source].contents)
        return bisect_right(positions, vector[source]) - 1


@pytest.fixture(scope="module")
def played(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("refreshment")
    databases = {
        "one": Database(folder / "one.db", "r", [NOV_15.r]),
        "two": Database(folder / "two.db", "s", [NOV_15.s]),
    }
    views = {(storage, level): Kept(storage, level) for storage, level in VIEWS}
    with Warehouse.open(folder / "lake", spark=spark) as warehouse:
        for source, database in databases.items():
            database.create()
            warehouse.add_source(source, f"sqlite:///{database.path}", install=True)
        for kept in views.values():
            warehouse.create_view(kept.sql)
            look(warehouse, kept)
        for moments in CATCH_UPS:
            for moment in moments:
                databases["one"].go_to(moment.r)
                databases["two"].go_to(moment.s)
            warehouse.catch_up()
            for kept in views.values():
                look(warehouse, kept)
        for kept in views.values():
            look_back(warehouse, kept)
    return Played(databases, views)


def look(warehouse: Warehouse, kept: Kept) -> None:
    """What there is after a catch-up, looked at without Spark."""
    kept.read.append(stored(warehouse, kept.name, SHOWN))
    kept.states_after.append(len(warehouse.states(kept.name)))
    for structure, columns in STRUCTURES[kept.storage].items():
        kept.tables.setdefault(structure, []).append(stored(warehouse, kept.table(structure), columns))


def look_back(warehouse: Warehouse, kept: Kept) -> None:
    """Every state of a view, as readers see it."""
    kept.audit = warehouse.audit(kept.name)
    kept.states = warehouse.states(kept.name)
    assert [one.state for one in kept.states] == list(range(len(kept.states)))
    kept.view = all_states(warehouse, kept.name, SHOWN, len(kept.states))
    kept.hidden = {one.view for one in warehouse.status().hidden if one.view.startswith(f"_vk_{kept.name}_")}


def all_states(warehouse: Warehouse, name: str, columns: Sequence[str], states: int) -> list[Counter[Row]]:
    """The rows at each state: those of the last, and what each state before it did not have yet."""
    rows = bag(warehouse.read(name), columns)
    changes = [Counter[Row]() for _ in range(states)]
    for row in warehouse.changes(name, 0).collect():
        changes[row["_vk_state"]][picked(row, columns)] += row["_vk_weight"]
    found = [rows]
    for change in reversed(changes[1:]):
        rows = Counter(rows)
        rows.subtract(change)
        rows = Counter({row: weight for row, weight in rows.items() if weight})
        found.insert(0, rows)
    return found


def stored(warehouse: Warehouse, name: str, columns: Sequence[str]) -> Counter[Row]:
    return Counter(dict(warehouse._keeper.stored(name).keep(tuple(columns)).weights()))


def bag(frame: "DataFrame", columns: Sequence[str]) -> Counter[Row]:
    assert sorted(frame.columns) == sorted(columns)
    return Counter(picked(row, columns) for row in frame.collect())


def picked(row: Any, columns: Sequence[str]) -> Row:
    return tuple(row[column] for column in columns)


@pytest.fixture(params=VIEWS, ids="-".join)
def kept(request: pytest.FixtureRequest, played: Played) -> Kept:
    return played.views[request.param]


def test_figure_2_is_what_readers_see_on_both_days(kept: Kept) -> None:
    assert kept.read[:2] == [Counter(figure) for figure in FIGURE_2_JOIN]


def test_readers_see_the_view_after_every_catch_up(kept: Kept) -> None:
    assert kept.read == [NOV_15.shown(), *(moments[-1].shown() for moments in CATCH_UPS)]


def test_the_figures_are_what_is_stored_on_both_days(kept: Kept) -> None:
    for place, moment in enumerate((NOV_15, NOV_17)):
        for structure, expected in moment.stored(kept.storage).items():
            assert kept.tables[structure][place] == expected, f"{structure} on {moment.what}"


def test_what_is_stored_after_every_catch_up(kept: Kept) -> None:
    for place, moments in enumerate(CATCH_UPS, 1):
        for structure, expected in moments[-1].stored(kept.storage).items():
            assert kept.tables[structure][place] == expected, f"{structure}: {moments[-1].what}"


def test_every_state_is_that_of_its_vector(played: Played, kept: Kept) -> None:
    for state, of_state in enumerate(kept.states):
        moment = played.moment(of_state.vector)
        assert kept.view[state] == moment.shown(), f"the view at {state}: {moment.what}"


def test_a_state_per_transaction_if_complete_and_per_batch_if_strong(kept: Kept) -> None:
    """A batch is what has come from the databases when a refresh begins: at least one transaction."""
    made = [after - before for before, after in pairwise(kept.states_after)]
    if kept.level == "complete":
        assert made == list(TRANSACTIONS)
    else:
        assert all(1 <= states <= most for states, most in zip(made, TRANSACTIONS, strict=True)), made


def test_every_catch_up_ends_where_the_databases_are(played: Played, kept: Kept) -> None:
    ends = [played.moment(kept.states[after - 1].vector).what for after in kept.states_after]
    assert ends == [NOV_15.what, *(moments[-1].what for moments in CATCH_UPS)]


def test_nothing_else_is_kept_for_the_view(kept: Kept) -> None:
    assert kept.hidden == {kept.table(structure) for structure in STRUCTURES[kept.storage]}


def test_the_audit_at_the_end_is_clean(kept: Kept) -> None:
    assert kept.audit is not None
    assert kept.audit.clean
    assert kept.audit.rows == len(HISTORY[-1].shown())
