"""Views whose definition is changed: readers see the old one or the new one, and the rest of the warehouse goes on."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crash_orders import SOME_OR_EVERY, crasher, records_made, where_to_kill
from full_disk import FullDisk
from images import copy
from stored_content import Stored

from viewkeeper.errors import DefinitionError, SourceUnavailable, StateGone, StorageFailure, UsageError
from viewkeeper.lake.supposed_writer import SupposedWriter
from viewkeeper.maintenance import creating
from viewkeeper.planner.altering.alteration import Alteration
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "orders": "id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER",
    "people": "id INTEGER PRIMARY KEY, name TEXT, city TEXT",
}
JOINED = "shop.orders o JOIN crm.people p ON o.customer = p.id"
NAMED = f"SELECT o.id, p.name, o.amount FROM {JOINED}"
LARGE = f"SELECT o.id, p.name, p.city, o.amount FROM {JOINED} WHERE o.amount > 20"
BIG = "SELECT id, amount FROM shop.orders WHERE amount > 20"
VIP = "SELECT n.name, b.amount FROM named n JOIN big b ON n.id = b.id"
PER_NAME = "SELECT name, COUNT(*) AS n, MAX(amount) AS most FROM named GROUP BY name"
CITIES = f"SELECT city, COUNT(*) AS n, MAX(amount) AS most FROM {JOINED} GROUP BY city"

NAMES = f"SELECT city, name, COUNT(*) AS n, MAX(amount) AS most FROM {JOINED} GROUP BY city, name"


class World:
    """Two databases, a warehouse over them, and the views that should be in it."""

    def __init__(self, folder: Path, spark: "SparkSession | None" = None) -> None:
        self.folder, self.root, self.views = folder, folder / "lake", dict[str, str]()
        self.commits = 0
        for name, table in (("shop", "orders"), ("crm", "people")):
            with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
                connection.execute(f"CREATE TABLE {table} ({TABLES[table]})")
        self.write("crm", "INSERT INTO people VALUES (7, 'Ann', 'Bern'), (8, 'Bo', 'Chur'), (9, 'Cy', 'Bern')")
        self.write("shop", "INSERT INTO orders VALUES (1, 7, 40), (2, 8, 60), (3, 9, 5)")
        self.warehouse = Warehouse.open(self.root, spark, compaction=None)
        for name in ("shop", "crm"):
            self.warehouse.add_source(name, f"sqlite:///{folder}/{name}.db", install=True)

    def write(self, database: str, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / f"{database}.db")) as connection, connection:
            connection.execute(statement)

    def sell(self) -> None:
        """Something changes at both sources."""
        self.commits += 1
        self.write("shop", f"INSERT INTO orders VALUES ({100 + self.commits}, 7, {20 + self.commits})")
        self.write("crm", f"UPDATE people SET city = 'town {self.commits}' WHERE id = 9")

    def create(self, **views: str) -> None:
        for name, query in views.items():
            self.warehouse.create_view(statement(name, query))
            self.views[name] = query

    def alter(self, name: str, query: str, properties: str = "", also: dict[str, str] | None = None) -> Alteration:
        """What was foretold is done, and everything follows the next changes."""
        definitions = [statement(other, sql) for other, sql in (also or {}).items()]
        foretold = self.warehouse.alteration(statement(name, query, properties), definitions)
        done = self.warehouse.alter_view(statement(name, query, properties), definitions)
        assert done == foretold
        self.views |= {name: query, **(also or {})}
        self.sell()
        self.check()
        return done

    def check(self) -> None:
        """Every view is what its query gives over the databases now."""
        self.warehouse.catch_up()
        for view in self.warehouse.status().views:
            assert view.halted is None, view
            if view.refresh is not None and view.refresh != "continuous":
                self.warehouse.refresh(view.view)
        for name in self.views:
            assert self.rows(name) == self.expected(name), name

    def rows(self, view: str) -> "Counter[tuple[Any, ...]]":
        return bag(self.warehouse, view)

    def expected(self, view: str) -> "Counter[tuple[Any, ...]]":
        """Asked from SQLite, with the views that it reads as views of its own."""
        with closing(sqlite3.connect(self.folder / "shop.db")) as connection:
            connection.execute(f"ATTACH '{self.folder}/crm.db' AS crm")
            connection.execute("ATTACH ':memory:' AS memory")
            for name, query in self.views.items():
                connection.execute(f"CREATE TEMP VIEW {name} AS {query.replace('shop.', 'main.')}")
            return Counter(connection.execute(f"SELECT * FROM {view}").fetchall())

    def states(self, view: str) -> list[int]:
        return [state.state for state in self.warehouse.states(view)]


def statement(name: str, query: str, properties: str = "") -> str:
    return f"CREATE MATERIALIZED VIEW {name} {f'TBLPROPERTIES ({properties})' if properties else ''} AS {query}"


def bag(warehouse: Warehouse, view: str) -> "Counter[tuple[Any, ...]]":
    return Counter(tuple(row.values()) for row in warehouse.arrow(view).to_pylist())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.warehouse:
        yield made


# --- what is done ---


def test_a_view_that_is_not_there_is_created_and_one_that_is_the_same_is_kept(world: World) -> None:
    assert world.alter("big", BIG).kind == "create"
    commit, states = world.warehouse.status().commit, world.states("big")
    assert world.warehouse.alter_view(f"-- big ones\ncreate materialized view big as {BIG}").kind == "keep"
    assert world.warehouse.status().commit == commit
    assert world.states("big") == states


def test_how_a_view_is_kept_is_altered_without_reading_a_source(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create(big=BIG)
    cities = "TBLPROPERTIES ('group' = 'c', 'refresh' = 'manual')"
    world.warehouse.create_view(f"CREATE MATERIALIZED VIEW cities {cities} AS {CITIES}")
    world.warehouse.create_view(statement("joined", NAMED, "'storage' = 'matview'"))
    world.views |= {"cities": CITIES, "joined": NAMED}
    world.sell()
    world.check()
    with monkeypatch.context() as patch:
        for name in ("shop", "crm"):
            patch.setattr(world.warehouse._known_sources.source(name), "read", out_of_reach, raising=False)
        for name, query, properties in (
            ("big", BIG, "'retention' = '1 day'"),
            ("big", BIG, "'algorithm' = 'nested-sweep', 'nested_updates' = '3', 'consistency' = 'strong'"),
            ("big", BIG, "'group' = 'big', 'consistency' = 'complete'"),
            ("joined", NAMED, "'storage' = 'matview', 'consistency' = 'strong', 'retention' = '1 day'"),
            ("cities", CITIES, "'group' = 'c', 'refresh' = 'every 2 days', 'retention' = '1 day'"),
        ):
            before = world.states(name)
            alteration = world.warehouse.alter_view(statement(name, query, properties))
            assert (alteration.kind, alteration.dependants) == ("alter", ())
            assert world.states(name) == before
            assert world.warehouse.alteration(statement(name, query, properties)).kind == "keep"
    world.sell()
    world.check()
    told = {view.view: view for view in world.warehouse.status().views}
    assert (told["big"].algorithm, told["joined"].consistency) == ("batched-sweep", "strong")
    assert told["cities"].refresh == "every 2 days"
    # The retention is one that vacuum keeps to.
    vacuumed = world.warehouse.vacuum(0, grace=0)
    assert (vacuumed.oldest["joined"], vacuumed.oldest["cities"]) == (0, 0)
    assert vacuumed.oldest["big"] == world.states("big")[-1]


def out_of_reach(*_: Any, **__: Any) -> Any:
    raise SourceUnavailable("nobody answers", "wait")


def test_a_reload_takes_those_that_read_the_view_along(world: World) -> None:
    world.create(named=NAMED, big=BIG, vip=VIP, per_name=PER_NAME)
    world.create(per_vip="SELECT name, SUM(amount) AS s FROM vip GROUP BY name")
    before = {view: world.states(view)[-1] for view in world.views}
    done = world.alter("named", LARGE)
    assert (done.kind, done.dependants) == ("reload", ("vip", "per_name", "per_vip"))
    assert "the column city is new" in done.reasons
    # Numbers go on, and what is before the change cannot be read by mistake.
    for view in ("named", "vip", "per_name", "per_vip"):
        assert world.states(view)[0] > before[view]
        with pytest.raises(StateGone):
            world.warehouse.arrow(view, before[view])
        with pytest.raises(StateGone):
            world.warehouse.changes(view, before[view])
    assert world.states("big")[0] == 0


def test_those_that_read_a_view_stand_in_its_way_or_are_redefined_with_it(world: World) -> None:
    world.create(named=NAMED, big=BIG, vip=VIP, per_name=PER_NAME)
    commit = world.warehouse.status().commit
    for query in ("SELECT id, city FROM crm.people", CITIES):
        with pytest.raises(DefinitionError, match=r"vip, per_name cannot be over the new named"):
            world.warehouse.alter_view(statement("named", query))
    for query, told in (("SELECT name FROM vip", "which reads named"), ("SELECT id FROM named", "read itself")):
        with pytest.raises(DefinitionError, match=told):
            world.warehouse.alter_view(statement("named", query))
    assert world.warehouse.status().commit == commit
    world.check()
    others = {
        "vip": "SELECT n.city, b.amount FROM named n JOIN big b ON n.id = b.id",
        "per_name": "SELECT city, COUNT(*) AS n FROM named GROUP BY city",
    }
    done = world.alter("named", f"SELECT o.id, p.city FROM {JOINED}", also=others)
    assert done.dependants == ("vip", "per_name")


def test_every_kind_of_view_becomes_any_other(world: World) -> None:
    world.create(big=BIG, changing=NAMED)
    for query, properties in (
        (NAMED, "'storage' = 'viewcache'"),
        (LARGE, "'storage' = 'viewcache'"),
        (NAMED, "'algorithm' = 'c-strobe', 'consistency' = 'convergent'"),
        (NAMED.replace("JOIN", "LEFT JOIN"), ""),
        (CITIES, ""),
        (CITIES, "'refresh' = 'manual'"),
        (NAMED, ""),
        (NAMED, "'group' = 'another'"),
        (CITIES, "'minmax' = 'recompute', 'core' = 'stored'"),
        (NAMED, "'storage' = 'matview'"),
    ):
        before = world.states("changing")[-1]
        assert world.alter("changing", query, properties).kind == "reload"
        assert world.states("changing")[0] > before
        assert world.warehouse.alteration(statement("changing", query, properties)).kind == "keep"
    world.warehouse.drop_view("changing")
    assert world.warehouse.views == ("big",)
    assert [name for name in Stored(world.root).views if name.startswith("_vk_")] == []


def test_a_summary_leaves_the_others_of_its_lattice_what_they_rest_on(world: World) -> None:
    world.create(names=NAMES, cities=CITIES)
    assert world.alter("names", NAMES.replace("MAX", "MIN")).dependants == ()
    world.alter("names", NAMES.replace("city, name", "name").replace("MAX", "MIN"))
    world.alter("names", NAMES)
    world.alter("cities", CITIES.replace("MAX", "MIN"))
    assert all(lattice.name == "shop.orders summaries" for lattice in world.warehouse.lattice())


def test_a_summary_beside_one_that_recomputes_its_extremes(world: World) -> None:
    """That one has a summary-delta of what the other groups by, and no table of it."""
    properties = "'core' = 'stored', 'group' = 'g'"
    world.alter("cities", CITIES, f"{properties}, 'minmax' = 'recompute'")
    world.alter("amounts", f"SELECT city, amount, COUNT(*) AS n FROM {JOINED} GROUP BY city, amount", properties)


def test_a_family_is_altered_by_its_name_and_its_tables_are_not(world: World) -> None:
    def cube(groups: str) -> str:
        return statement("cube", f"SELECT city, name, COUNT(*) AS n FROM {JOINED} GROUP BY {groups}")

    world.create(cities=CITIES)
    world.warehouse.create_view(cube("CUBE (city, name)"))
    done = world.warehouse.alter_view(cube("ROLLUP (name, city)"))
    assert (done.view, done.kind) == ("cube", "reload")
    world.sell()
    world.check()
    tables = {view.view for view in world.warehouse.status().views if view.family == "cube"}
    assert tables == {"cube_name_city", "cube_name", "cube_total"}
    assert sum(row["n"] for row in world.warehouse.arrow("cube").to_pylist()) == 3 * 4
    with pytest.raises(UsageError, match="change the definition of cube"):
        world.warehouse.alter_view(statement("cube_name", BIG))


def test_what_sql_says_of_a_view_that_is_there(world: World) -> None:
    world.create(big=BIG)
    replaced = statement("big", "SELECT id FROM shop.orders")
    assert world.warehouse.create_view(replaced.replace("VIEW", "VIEW IF NOT EXISTS")) == "big"
    world.check()
    assert world.warehouse.create_view(replaced.replace("CREATE", "CREATE OR REPLACE")) == "big"
    world.views["big"] = "SELECT id FROM shop.orders"
    world.check()
    assert world.warehouse.alteration(replaced).kind == "keep"
    assert world.warehouse.create_view(statement("small", BIG).replace("VIEW", "VIEW IF NOT EXISTS")) == "small"


def test_a_halted_view_is_mended_by_another_definition(world: World) -> None:
    world.create(big=BIG)
    world.warehouse.create_view(statement("cents", "SELECT id, amount * 100000000000000 AS tiny FROM shop.orders"))
    world.write("shop", "INSERT INTO orders VALUES (50, 7, 1000000)")
    world.warehouse.catch_up()
    assert [view.view for view in world.warehouse.status().views if view.halted] == ["cents"]
    world.alter("cents", "SELECT id, amount * 100 AS tiny FROM shop.orders")


def test_a_halted_lattice_is_made_anew_as_a_whole(world: World) -> None:
    total = (
        "SELECT customer, SUM(amount * 1000000000000000000) AS s FROM shop.orders WHERE amount < 6 GROUP BY customer"
    )
    per_customer = "SELECT customer, COUNT(*) AS n FROM shop.orders GROUP BY customer"
    world.create(total=total, per_customer=per_customer)
    world.write("shop", "INSERT INTO orders VALUES (50, 9, 5), (51, 7, 2)")
    world.warehouse.catch_up()
    assert {view.view for view in world.warehouse.status().views if view.halted} == {"total", "per_customer"}
    done = world.alter("total", total.replace("amount * 1000000000000000000", "amount"))
    assert (done.kind, done.dependants) == ("reload", ("per_customer",))


# --- what readers see ---


def test_readers_see_the_old_view_until_the_new_one_is_complete(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create(named=NAMED, per_name=PER_NAME)
    seen: list[Any] = []
    come_true = SupposedWriter.come_true_as

    def looked_at_before(writer: SupposedWriter, metrics: Any) -> None:
        with Warehouse.open(world.root, read_only=True) as other:
            seen.append({view: (bag(other, view), other.status().commit) for view in other.views})
        come_true(writer, metrics)

    monkeypatch.setattr(SupposedWriter, "come_true_as", looked_at_before)
    old, commit = {view: world.rows(view) for view in world.views}, world.warehouse.status().commit
    with world.warehouse.snapshot() as before, Warehouse.open(world.root, read_only=True) as other:
        pinned = other.snapshot()
        world.warehouse.alter_view(statement("named", LARGE))
        assert seen == [{view: (rows, commit) for view, rows in old.items()}]
        assert world.warehouse.status().commit == commit + 1
        # Whoever has a snapshot goes on seeing what it is of, for as long as it holds it.
        world.warehouse.vacuum(0, grace=0)
        for snapshot in (before, pinned):
            for view, rows in old.items():
                assert Counter(tuple(row.values()) for row in snapshot.arrow(view).to_pylist()) == rows
        pinned.close()
        assert bag(other, "named") == world.rows("named") != old["named"]
    world.views["named"] = LARGE
    world.check()


# --- when it goes wrong ---


def test_a_source_that_fails_leaves_the_old_view_maintained(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create(named=NAMED, big=BIG, vip=VIP, per_name=PER_NAME)
    world.sell()
    world.check()
    commit, files = world.warehouse.status().commit, Stored(world.root).files
    for statement_, told in (
        (
            statement("named", NAMED.replace("o.amount F", "o.amount * 1000000000000000000 AS amount F")),
            "out of the range",
        ),
        (statement("named", LARGE), "nobody answers"),
    ):
        if told == "nobody answers":
            # Only the last of those that are recreated: everything before it is written.
            real = creating.create_summary
            monkeypatch.setattr(creating, "create_summary", out_of_reach)
        with pytest.raises(Exception, match=told):
            world.warehouse.alter_view(statement_)
        assert world.warehouse.status().commit == commit
        assert Stored(world.root).files == files
    monkeypatch.setattr(creating, "create_summary", real)
    world.sell()
    world.check()
    world.alter("named", LARGE)


def test_a_disk_that_is_full_at_any_step_changes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = _with_a_dependant(place / "full")
    altered = statement("named", LARGE)
    disk = FullDisk(monkeypatch)
    with Warehouse.open(copy(world.root), compaction=None) as warehouse:
        disk.fill(at=10**9)
        warehouse.alter_view(altered)
        disk.make_room()
        new = {view: bag(warehouse, view) for view in warehouse.views}
    # Up to the record, and that its name is on the disk.
    steps = len(disk.steps) + 1 - disk.steps[::-1].index("os.link")
    for at in sorted({*range(0, steps, 13), *range(steps - 4, steps)}):
        with Warehouse.open(root := copy(world.root), compaction=None) as warehouse:
            old = {view: bag(warehouse, view) for view in warehouse.views}
            disk.fill(at, times=1)
            with pytest.raises(StorageFailure):
                warehouse.alter_view(altered)
            disk.make_room()
            if warehouse.status().commit == 2:
                assert {view: bag(warehouse, view) for view in warehouse.views} == old
                assert leftovers(root) == set()
                warehouse.alter_view(altered)
            assert {view: bag(warehouse, view) for view in warehouse.views} == new


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_a_process_that_is_killed_at_any_step_leaves_the_old_views_or_the_new_ones(place: Path, every: bool) -> None:
    world = _with_a_dependant(place / f"killed {every}")
    (world.folder / "definition.sql").write_text(statement("named", LARGE))
    old = {view: world.rows(view) for view in ("named", "per_name")}
    with crasher() as writer:
        steps = writer.steps("alter_view", copy(world.root))
        (record,) = records_made(steps)
        for at in where_to_kill(steps, every=every):
            writer.kill("alter_view", root := copy(world.root), at)
            with Warehouse.open(root, compaction=None) as warehouse:
                assert leftovers(root) == set(), steps[at]
                found = {view: bag(warehouse, view) for view in warehouse.views}
                world.views["named"] = LARGE if at > record else NAMED
                assert found == {view: world.expected(view) for view in old}, steps[at]
                assert (found == old) is (at <= record), steps[at]
                warehouse.catch_up()


def leftovers(root: Path) -> set[str]:
    """What no commit knows, the sources aside."""
    return {name for name in Stored(root).leftovers() if not name.startswith("_viewkeeper/sources/")}


def _with_a_dependant(folder: Path) -> World:
    """A warehouse that nobody writes to: make copies."""
    folder.mkdir()
    world = World(folder)
    with world.warehouse:
        world.create(named=NAMED, per_name=PER_NAME)
    return world


# --- on Spark ---


def test_large_views_are_made_anew_on_spark(tmp_path: Path, spark: "SparkSession") -> None:
    """Everything that is computed there, is read back from the files of a commit that is not true yet."""
    world = World(tmp_path, spark)
    with world.warehouse as warehouse:
        warehouse._keeper.engines.most_rows = 1
        warehouse._keeper.engines.most_bytes = 0
        warehouse.create_view(statement("named", NAMED, "'storage' = 'matview'"))
        world.views["named"] = NAMED
        world.create(per_name=PER_NAME)
        with warehouse.snapshot() as before:
            old = before.read("named")
            assert world.alter("named", LARGE, "'storage' = 'viewcache'").dependants == ("per_name",)
            assert {row["name"] for row in old.collect()} == {"Ann", "Bo", "Cy"}
        for view in ("named", "per_name"):
            assert warehouse.audit(view).clean
            assert Counter(map(tuple, warehouse.read(view).collect())) == world.expected(view)


# --- several at once ---


def alter_together(world: World, properties: str = "", **views: str) -> None:
    """By one commit, and everything follows the next changes."""
    before = world.warehouse.status().commit
    world.warehouse.alter_views([statement(name, query, properties) for name, query in views.items()])
    assert world.warehouse.status().commit == before + 1
    world.views |= views
    world.sell()
    world.check()


def test_views_that_fit_each_other_only_when_all_have_changed(world: World) -> None:
    world.create(named=NAMED, big=BIG, vip=VIP, per_name=PER_NAME)
    world.sell()
    world.check()
    last = {name: world.states(name)[-1] for name in world.views}
    alter_together(
        world,
        vip="SELECT n.who, b.amount, t.city FROM named n JOIN big b ON n.id = b.number JOIN towns t ON n.who = t.name",
        per_name="SELECT who, COUNT(*) AS n FROM named GROUP BY who",
        towns=f"SELECT p.name, p.city, o.id FROM {JOINED}",
        big="SELECT id AS number, amount FROM shop.orders WHERE amount > 30",
        named=f"SELECT o.id, p.name AS who FROM {JOINED}",
    )
    assert all(world.states(name)[0] > state for name, state in last.items())


def test_a_reader_that_has_no_new_definition_and_needs_one_is_named(world: World) -> None:
    world.create(named=NAMED, big=BIG, per_name=PER_NAME)
    before = world.warehouse.status().commit
    with pytest.raises(DefinitionError, match="per_name, which reads named, cannot be recreated with it"):
        world.warehouse.alter_views([statement("named", f"SELECT o.id FROM {JOINED}"), statement("big", BIG)])
    assert world.warehouse.status().commit == before
    world.sell()
    world.check()


def test_what_waits_in_a_lattice_that_a_new_summary_is_in_is_applied_first(world: World) -> None:
    manual = "'refresh' = 'manual'"
    world.create(named=NAMED)
    world.warehouse.create_view(statement("cities", CITIES, manual))
    world.views["cities"] = CITIES
    world.sell()
    world.warehouse.catch_up()
    before = world.warehouse.status().commit
    # The fact of `names` is there; one that reads a new view cannot even be parsed before that is.
    world.warehouse.alter_views(
        [
            statement("per_id", "SELECT number, COUNT(*) AS n FROM narrow GROUP BY number", manual),
            statement("names", NAMES, manual),
            statement("narrow", "SELECT id AS number FROM shop.orders"),
        ]
    )
    assert world.warehouse.status().commit > before + 1, "what has waited is a commit of its own"
    world.views |= {
        "narrow": "SELECT id AS number FROM shop.orders",
        "names": NAMES,
        "per_id": "SELECT number, COUNT(*) AS n FROM narrow GROUP BY number",
    }
    world.sell()
    world.check()
