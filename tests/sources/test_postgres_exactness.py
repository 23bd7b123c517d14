"""Every reading of PostgreSQL is the replay of its stream, under concurrent writers."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from exactness import Recorded, matching, operand, whole
from postgres_server import PostgresServer
from postgres_tables import TWO_TABLES, Database, a_database, write

from viewkeeper.clock import monotonic, seeded
from viewkeeper.messages import Fetch
from viewkeeper.sources.base import Source


def joined(source: Source, *keys: int) -> Fetch:
    """r ⋈ s on k, for some k."""
    r, s = operand(source.relations["pg.r"], "r", 0), operand(source.relations["pg.s"], "s", 1)
    return Fetch((r, s), (*r.columns, *s.columns), (("r.k", "s.k"),), ("r.k",), tuple((key,) for key in keys))


def beyond(source: Source, *keys: int) -> Fetch:
    """The rows of s that meet rows of r with some k, each as often as it is there."""
    r, s = operand(source.relations["pg.r"], "r", 0), operand(source.relations["pg.s"], "s", 1)
    among = Fetch((r,), ("r.k",), (), ("r.k",), tuple((key,) for key in keys))
    return Fetch((s,), s.columns, (), ("s.k",), None, among)


def ask(recorded: Recorded, seed: int, deadline: float) -> int:
    random, source, count = seeded(seed), recorded.source, 0
    r, s = source.relations["pg.r"], source.relations["pg.s"]
    while monotonic() < deadline:
        keys = random.sample(range(7), 2)
        match random.randrange(6):
            case 0 | 1:
                recorded.read(matching(r, "k", *keys))
            case 2:
                recorded.read(matching(s, "id", *random.sample(range(80), 5)))
            case 3:
                recorded.read(whole(r), whole(s))
            case 4:
                recorded.read(matching(r, "k", *keys), beyond(source, *keys))
            case _:
                recorded.read(joined(source, *keys), matching(r, "k", *keys))
        count += 1
    return count


def exact_run(database: Database, seconds: float, writers: int, readers: int) -> tuple[int, int]:
    stop = threading.Event()
    with (
        database.installed("r", "s") as source,
        Recorded(source) as recorded,
        ThreadPoolExecutor(writers + readers) as pool,
    ):
        writing = [pool.submit(write, database.url, seed, stop, sync=seed % 2 == 0) for seed in range(writers)]
        reading = [pool.submit(ask, recorded, 100 + seed, monotonic() + seconds) for seed in range(readers)]
        try:
            answers = sum(one.result() for one in reading)
        finally:
            stop.set()
        assert all(one.result() > 0 for one in writing)
        recorded.catch_up()
    recorded.check()
    for name in ("r", "s"):
        assert (
            sum(recorded.contents[f"pg.{name}"].values())
            == database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        )
    return len(recorded.transactions), answers


def test_readings_are_exact_under_concurrent_writers(postgres_server: PostgresServer) -> None:
    with a_database(postgres_server, TWO_TABLES) as database:
        transactions, answers = exact_run(database, 4, writers=4, readers=3)
    assert transactions > 50
    assert answers > 50


@pytest.mark.soak
def test_readings_are_exact_for_long(postgres_server: PostgresServer) -> None:
    with a_database(postgres_server, TWO_TABLES) as database:
        transactions, answers = exact_run(database, 25, writers=8, readers=6)
    print(f"{transactions} transactions, {answers} answers")
