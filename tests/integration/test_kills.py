"""Processes are killed, databases restarted and connections cut, while everyone writes.

Nothing is lost and nothing is applied twice, and no state that a reader has seen disappears or changes.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from mariadb_server import PASSWORD, MariaDb
from postgres_server import PostgresServer
from three_databases import THREE_WAY, WITHIN, ThreeDatabases, three_databases

from viewkeeper.clock import Random, monotonic, now, seeded
from viewkeeper.lake.log.commit_log import CommitLog
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.warehouse import Warehouse
from waiting import LONG


@pytest.fixture
def databases(
    postgres_server: PostgresServer, mariadb: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThreeDatabases]:
    # The warehouse does not store it.
    monkeypatch.setenv("VIEWKEEPER_PASSWORD_CRM", PASSWORD)
    with three_databases(postgres_server, mariadb, tmp_path, "kills") as made:
        yield made


class Keeper:
    """The process that maintains the warehouse."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.process = self._started()

    def _started(self) -> "subprocess.Popen[str]":
        script = Path(__file__).with_name("keeper_process.py")
        started = subprocess.Popen(
            [sys.executable, str(script), str(self._folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert started.stdout is not None
        if (said := started.stdout.readline()) != "running\n":
            started.kill()
            raise AssertionError(said + started.communicate()[0])
        return started

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.process = self._started()

    def stop(self) -> str:
        self.process.terminate()
        try:
            said, _ = self.process.communicate(timeout=LONG)
        finally:
            self.process.kill()
        assert self.process.returncode == 0, said
        return said


class Reader:
    """Sees every state that appears, and that none of them ever changes or goes."""

    def __init__(self, folder: Path, view: str) -> None:
        self._folder, self._view = folder, view
        self.seen: dict[int, dict[str, str]] = {}

    def look(self) -> None:
        with Warehouse.open(self._folder, read_only=True) as warehouse:
            states = {state.state: dict(state.vector) for state in warehouse.states(self._view)}
        for number, vector in self.seen.items():
            assert states.get(number) == vector, f"state {number} was {vector} and is {states.get(number)}"
        self.seen = states


def faults(databases: ThreeDatabases, keeper: Keeper) -> list[Callable[[], None]]:
    def cut_postgres() -> None:
        with psycopg.connect(databases.urls["shop"], autocommit=True) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid()"
            )

    def cut_mariadb() -> None:
        with databases.mariadb.root() as root:
            for (connection,) in root.execute(
                "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user <> 'system user'"
            ):
                root.execute(f"KILL SOFT {connection}")

    def restart_mariadb() -> None:
        databases.mariadb.stop()
        databases.mariadb.start()

    return [
        keeper.kill,
        lambda: databases.postgres.restart("fast"),
        restart_mariadb,
        cut_postgres,
        lambda: databases.postgres.restart("immediate"),
        cut_mariadb,
    ]


def survive(databases: ThreeDatabases, folder: Path, rounds: int, random: Random) -> None:
    lake, quiet = folder / "lake", threading.Event()
    with Warehouse.open(lake) as warehouse:
        databases.add_to(warehouse)
        warehouse.create_view(f"CREATE MATERIALIZED VIEW three AS {THREE_WAY}")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW within AS {WITHIN}")
        strong = "TBLPROPERTIES('consistency' = 'strong', 'algorithm' = 'nested-sweep')"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW strong {strong} AS {THREE_WAY}")
    keeper, readers = Keeper(lake), [Reader(lake, view) for view in ("three", "strong")]
    writers = databases.writers(3600, 5, 0.2)
    try:
        for number in range(rounds):
            for _ in range(random.randint(4, 12)):
                quiet.wait(0.2)
                for reader in readers:
                    reader.look()
            made = faults(databases, keeper)
            made[number % len(made) if rounds <= len(made) else random.randrange(len(made))]()
            assert keeper.process.poll() is None, keeper.process.communicate()
        quiet.wait(2)
    finally:
        writers.kill()
        writers.wait(LONG)
        said = keeper.stop()
    with Warehouse.open(lake) as warehouse:
        warehouse.catch_up()
        for reader in readers:
            reader.look()
        for view in ("three", "within", "strong"):
            audit = warehouse.audit(view)
            assert audit.clean, f"{view}: {audit}\n{said}"
        assert not [view.halted for view in warehouse.status().views if view.halted]
        steps = warehouse.states("three")
    # Each state goes on from the one before, at one source or more, and none goes back.
    for before, after in pairwise(steps):
        assert after.vector != before.vector
        assert all(after.vector[name] >= place for name, place in before.vector.items())
    assert len(steps) > rounds


def test_three_faults_in_a_row(databases: ThreeDatabases, tmp_path: Path) -> None:
    survive(databases, tmp_path, 3, seeded(3))


ALL_KINDS = {
    "three": f"CREATE MATERIALIZED VIEW three AS {THREE_WAY}",
    "strong": f"CREATE MATERIALIZED VIEW strong TBLPROPERTIES('algorithm' = 'nested-sweep') AS {THREE_WAY}",
    "held": f"CREATE MATERIALIZED VIEW held TBLPROPERTIES('storage' = 'matview') AS {WITHIN}",
    "partial": f"CREATE MATERIALIZED VIEW partial TBLPROPERTIES('storage' = 'partial-join') AS {WITHIN}",
    "by_cust": "CREATE MATERIALIZED VIEW by_cust AS SELECT cust, COUNT(*) AS n, SUM(amount) AS amount, MIN(amount) AS"
    " least, MAX(amount) AS most FROM shop.orders GROUP BY cust",
    "by_region": "CREATE MATERIALIZED VIEW by_region AS SELECT region, COUNT(*) AS n FROM crm.people GROUP BY region",
    "items": "CREATE MATERIALIZED VIEW items AS SELECT item, COUNT(*) AS n FROM shop.lines GROUP BY item",
}
"""joins over several sources, self-maintained views and summaries"""


LIVES = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0)
"""seconds after which a process is killed"""
MOST_WITHOUT = 10
"""lives in a row without a commit, after which the next one is left alone until it makes one"""


@dataclass
class Figures:
    """What a soak of kills came to."""

    kills: int = 0
    lives_with_a_commit: int = 0
    most_lives_without: int = 0
    shortest_life_with: float | None = None
    longest_life_without: float = 0.0
    commits: int = 0
    states: int = 0
    longest_stretch_without_s: float = 0.0
    """between two commits of states, also while no process was alive"""

    def lived(self, seconds: float, states: int, without: int) -> None:
        self.kills += 1
        self.lives_with_a_commit += states > 0
        self.states += states
        self.most_lives_without = max(self.most_lives_without, without)
        if states:
            self.shortest_life_with = min(self.shortest_life_with or seconds, seconds)
        else:
            self.longest_life_without = max(self.longest_life_without, seconds)


def installed(folder: Path) -> dict[str, str]:
    """The environment of a package that is installed: its modules are compiled once, and not by each process."""
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**rest, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def reached(lake: Path) -> int:
    """How many states all groups have: a commit that only puts right what a dead process left makes none."""
    return sum(group.last for group in CommitLog(LocalStore(lake)).last().groups.values())


def killed_in_a_row(databases: ThreeDatabases, folder: Path, kills: int, random: Random) -> None:
    """`viewkeeper run` is killed, again and again, each time after some seconds or less, while everyone writes."""
    lake, quiet = folder / "lake", threading.Event()
    with Warehouse.open(lake) as warehouse:
        databases.add_to(warehouse)
        for sql in ALL_KINDS.values():
            warehouse.create_view(sql)
    log, environment = folder / "run.log", installed(folder)
    # Compiles the modules, which no life has to do then.
    subprocess.run([sys.executable, "-m", "viewkeeper", "catch-up", "-w", str(lake)], env=environment, check=True)
    readers = [Reader(lake, view) for view in ("three", "partial", "by_cust")]
    figures, without, first = Figures(), 0, CommitLog(LocalStore(lake)).last().commit
    writers, states = databases.writers(24 * 3600, 7, 0.2), reached(lake)
    try:
        for kill in range(1, kills + 1):
            with log.open("a") as out:
                command = [sys.executable, "-m", "viewkeeper", "run", "-w", str(lake)]
                process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
            begin, life = monotonic(), random.choice(LIVES)
            quiet.wait(life)
            while without >= MOST_WITHOUT and reached(lake) == states:
                assert monotonic() - begin < 300, f"stuck after {without} lives: {log.read_text()}"
                quiet.wait(0.1)
            assert process.poll() is None, log.read_text()
            process.kill()
            process.wait(LONG)
            lived = monotonic() - begin
            assert writers.poll() is None
            for reader in readers:
                reader.look()
            with Warehouse.open(lake, read_only=True) as warehouse:
                status = warehouse.status()
            assert not status.problems, status.problems
            new = reached(lake) - states
            states, without = states + new, 0 if new else without + 1
            figures.lived(lived, new, without)
            told = f"{new} new states, commit {status.commit}, {without} lives without a state"
            print(f"kill {kill} of {kills} after {lived:.1f} s: {told}", flush=True)
        ended = now()
    finally:
        writers.kill()
        writers.wait(LONG)
    log_of_commits = CommitLog(LocalStore(lake))
    records = [log_of_commits.record(number) for number in range(first, status.commit + 1)]
    made = [one for one in records if one.commit == first or any(group.steps for group in one.groups.values())]
    times = [*(datetime.fromisoformat(one.time) for one in made), ended]
    figures.commits = len(made) - 1
    figures.longest_stretch_without_s = max((after - before).total_seconds() for before, after in pairwise(times))
    with Warehouse.open(lake) as warehouse:
        warehouse.catch_up()
        for audit in warehouse.audits(*ALL_KINDS):
            assert audit.clean, audit
        assert not warehouse.problems()
        for view in ALL_KINDS:
            steps = warehouse.states(view)
            for before, after in pairwise(steps):
                assert after.state == before.state + 1, f"{view}: state {after.state} follows {before.state}"
                assert all(after.vector[name] >= place for name, place in before.vector.items())
    assert "Error" not in log.read_text(), log.read_text()
    print(json.dumps(asdict(figures)), flush=True)


@pytest.mark.soak
def test_many_kills_in_a_row(databases: ThreeDatabases, tmp_path: Path) -> None:
    killed_in_a_row(databases, tmp_path, int(os.environ.get("VIEWKEEPER_SOAK_KILLS", "200")), seeded(200))


@pytest.mark.soak
def test_twenty_faults_in_a_row(databases: ThreeDatabases, tmp_path: Path) -> None:
    survive(databases, tmp_path, 20, seeded(20))
