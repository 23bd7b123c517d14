"""`explain`, `plan` and creating a view accept the same definitions, and refuse the others for the same reasons.

They all carry out what `plan_view` decides. Definitions and properties are drawn at random, most of them wrong in some
way; the warehouse has views of every kind, with groups that some of them would fit.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from viewkeeper import Warehouse
from viewkeeper.clock import seeded
from viewkeeper.errors import ViewkeeperError
from viewkeeper.explaining.summary_explanation import Explanation
from viewkeeper.maintenance import spark_agreement
from viewkeeper.storage.self_maintained import STORAGES

TABLES = """
CREATE TABLE r (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
CREATE TABLE s (id INTEGER PRIMARY KEY, r_id INTEGER, v INTEGER);
CREATE TABLE t (k INTEGER, z INTEGER);
INSERT INTO r VALUES (1, 10, 'x'), (2, 20, 'y');
INSERT INTO s VALUES (1, 1, 5), (2, 2, 6), (3, 2, 7);
INSERT INTO t VALUES (1, 1), (2, 2), (2, 2);
"""
THERE = (
    "CREATE MATERIALIZED VIEW joined AS SELECT r.id, r.a, s.v FROM one.r JOIN one.s ON r.id = s.r_id",
    "CREATE MATERIALIZED VIEW own TBLPROPERTIES('group' = 'g') AS SELECT id, a FROM one.r",
    "CREATE MATERIALIZED VIEW held TBLPROPERTIES('group' = 'h', 'storage' = 'viewcache')"
    " AS SELECT r.id, s.v FROM one.r JOIN one.s ON r.id = s.r_id",
    "CREATE MATERIALIZED VIEW sums TBLPROPERTIES('group' = 'm') AS SELECT a, COUNT(*) AS n FROM one.r GROUP BY a",
    "CREATE MATERIALIZED VIEW waits TBLPROPERTIES('refresh' = 'manual')"
    " AS SELECT r_id, SUM(v) AS v FROM one.s GROUP BY r_id",
)
SELECTS = (
    "SELECT id, a, b FROM one.r",
    "SELECT k, z FROM two.t",
    "SELECT r.a, s.v FROM one.r JOIN one.s ON r.id = s.r_id",
    "SELECT r.id AS r, s.id AS s, t.z FROM one.r JOIN one.s ON r.id = s.r_id JOIN two.t ON t.k = s.v",
    "SELECT r.id, s.v FROM one.r LEFT JOIN one.s ON r.id = s.r_id",
    "SELECT r.id, t.z FROM one.r FULL JOIN two.t ON r.id = t.k",
    "SELECT id, v FROM joined WHERE v > 5",
    "SELECT joined.a, own.a AS own FROM joined JOIN own ON joined.id = own.id",
    "SELECT held.v FROM held",
    "SELECT loaded.n FROM loaded",
    "SELECT joined.a, t.z FROM joined JOIN two.t ON joined.id = t.k",
    "SELECT joined.a, own.a AS b FROM joined LEFT JOIN own ON joined.id = own.id",
    "SELECT n FROM sums",
    "SELECT a, COUNT(*) AS n, MIN(b) AS first FROM one.r GROUP BY a",
    "SELECT b, MAX(a) AS m FROM one.r GROUP BY ROLLUP(b)",
    "SELECT r.b, SUM(s.v) AS v FROM one.s JOIN one.r ON r.id = s.r_id GROUP BY r.b",
    "SELECT a, SUM(v) AS v FROM joined GROUP BY a",
    "SELECT own.a, SUM(joined.v) AS v FROM joined JOIN own ON own.id = joined.id GROUP BY own.a",
    "SELECT n, COUNT(*) AS c FROM loaded GROUP BY n",
    "SELECT nothing FROM one.r",
    "SELECT id FROM one.missing",
)
PROPERTIES = {
    "storage": ("remote", *STORAGES, "auto", "elsewhere"),
    "consistency": ("convergent", "weak", "strong", "complete", "auto", "perfect"),
    "algorithm": ("sweep", "batched-sweep", "nested-sweep", "strobe", "c-strobe", "t-strobe", "eca", "sweeep"),
    "group": ("g", "h", "m", "new", "joined"),
    "refresh": ("manual", "continuous", "every 5 minutes", "sometimes"),
    "core": ("stored", "thrown away"),
    "minmax": ("recompute", "hidden"),
    "retention": ("7 days", "long"),
    "nested_depth": ("3", "0"),
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("plans")
    for name in ("one", "two"):
        with closing(sqlite3.connect(folder / f"{name}.db")) as database:
            database.executescript(TABLES)

    def no_spark() -> Any:
        raise AssertionError("Spark was started")

    with pytest.MonkeyPatch.context() as patched, Warehouse.open(folder / "lake", no_spark) as made:
        # That Spark reads a definition as this process does is compared in Spark; other tests have that.
        patched.setattr(spark_agreement, "check_agreement", lambda *_: None)
        for name in ("one", "two"):
            made.add_source(name, f"sqlite:///{folder}/{name}.db", install=True)
        for sql in THERE:
            made.create_view(sql)
        with made.commit() as commit:
            commit.create("loaded", [("n", "INT")], group="by commits", vector={})
        yield made


def drawn(seed: int) -> str:
    rng = seeded(seed)
    select = rng.choice(SELECTS)
    names = rng.sample(sorted(PROPERTIES), rng.choice((0, 0, 1, 1, 1, 2, 2, 3)))
    written = ", ".join(f"'{name}' = '{rng.choice(PROPERTIES[name])}'" for name in names)
    called = rng.choice(("fresh", "fresh", "fresh", "fresh", "Fresh one", "joined"))
    return f"CREATE MATERIALIZED VIEW `{called}`{f' TBLPROPERTIES({written})' if written else ''} AS {select}"


def outcome(work: Callable[[], object]) -> tuple[str, str, str]:
    try:
        work()
    except ViewkeeperError as error:
        return type(error).__name__, error.detail, error.hint or ""
    return "accepted", "", ""


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.soak) for first in range(50, 2000, 50))])
def test_the_same_is_accepted_and_refused(warehouse: Warehouse, first: int) -> None:
    seen = Counter[str]()
    for seed in range(first, first + 50):
        sql = drawn(seed)
        explained = outcome(lambda sql=sql: warehouse.explain(sql))
        known = {view.casefold() for view in warehouse.views}
        name = sql.split("`")[1]
        created = outcome(lambda sql=sql: warehouse.create_view(sql))
        assert explained == created, f"seed {seed}: {sql}"
        if name.casefold() not in known:
            # Of a view that is there, `plan` says what it takes to alter it.
            if created[0] == "accepted":
                made = warehouse.explain(name)
                warehouse.drop_view(name)
                planned_as = warehouse.explain(sql)
                assert isinstance(made, Explanation)
                assert isinstance(planned_as, Explanation)
                same = "kind", "group", "algorithm", "level", "refresh", "sources", "relations", "storage"
                if "auto" not in sql:
                    assert [getattr(planned_as, one) for one in same] == [getattr(made, one) for one in same], sql
            planned = outcome(lambda sql=sql: warehouse.alteration(sql))
            assert planned == created, f"seed {seed}: {sql}"
        seen[created[0]] += 1
    assert seen["accepted"] >= 5
    assert len(seen) >= 4
