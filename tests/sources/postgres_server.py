"""A PostgreSQL server of the tests' own: a throw-away cluster on a free port, gone when they end."""

import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psycopg
import pytest
from psycopg import sql

SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "max_connections": "60",
    "max_prepared_transactions": "10",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "autovacuum": "off",
    # A slot holds back WAL: a forgotten one must not fill the disk that the tests run on.
    "max_slot_wal_keep_size": "512MB",
}


def binaries() -> Path:
    """The folder with initdb and pg_ctl."""
    found = _binaries()
    if found is None:
        pytest.fail("these tests need PostgreSQL: `make servers` installs it, or says what to install")
    return found


def _binaries() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


def _owner() -> str | None:
    """Whom to run the server as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.fail("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class PostgresServer:
    """A running cluster; `url(database)` reaches it as its superuser."""

    folder: Path
    port: int

    def __post_init__(self) -> None:
        self._bin = binaries()
        self._owner = _owner()

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            [str(self._bin / command[0]), *command[1:]],
            user=self._owner,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{self._log()}"

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def initialize(self) -> None:
        if self._owner is not None:
            shutil.chown(self.folder, self._owner)
        self._run("initdb", "-D", "data", "-U", "keeper", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        settings = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        with (self.folder / "data" / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        hba = (
            "local all all trust\nhost all with_password 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        )
        (self.folder / "data" / "pg_hba.conf").write_text(
            hba + "local replication all trust\nhost replication all 127.0.0.1/32 trust\n"
        )

    def start(self) -> None:
        self._run("pg_ctl", "start", "-D", "data", "-l", "log", "-w")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-D", "data", "-m", mode, "-w")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def url(self, database: str = "postgres", user: str = "keeper", password: str = "") -> str:
        return f"postgresql://{user}{':' + password if password else ''}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str = "postgres") -> str:
        return f"postgresql://keeper@/{database}?host={self.folder}&port={self.port}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(database), autocommit=True)

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """A fresh database, and its URL; its slots go with it."""
        self._drop(name)
        with self.connect() as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield self.url(name)
        finally:
            self._drop(name)

    def _drop(self, name: str) -> None:
        with self.connect() as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            slots = admin.execute("SELECT slot_name FROM pg_replication_slots WHERE database = %s", (name,)).fetchall()
            for (slot,) in slots:
                _drop_slot(admin, slot)
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _drop_slot(admin: psycopg.Connection[Any], slot: str) -> None:
    for _ in range(500):
        admin.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s", (slot,))
        try:
            admin.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
            return
        except psycopg.errors.ObjectInUse:
            threading.Event().wait(0.02)
    raise AssertionError(f"the slot {slot} is still followed")


def _memory() -> str | None:
    """A folder in memory, if there is room: syncing a disk is slow, and nothing here outlives the tests."""
    memory = "/dev/shm"
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30
    return memory if roomy else None


def _started() -> PostgresServer:
    folder = Path(mkdtemp(prefix="vk-postgres-", dir=_memory()))
    try:
        server = PostgresServer(folder, _free_port())
        server.initialize()
        server.start()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return server


def _stopped(server: PostgresServer) -> None:
    try:
        server.stop("immediate")
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


@contextmanager
def private_cluster() -> Iterator[PostgresServer]:
    """A cluster that is up, and stopped and removed at the end."""
    server = _started()
    try:
        yield server
    finally:
        _stopped(server)


_shared: list[PostgresServer] = []
_users: list[object] = []


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The cluster of this process; import this fixture where it is needed. The last one to leave stops it."""
    if not _users:
        _shared.append(_started())
    _users.append(None)
    try:
        yield _shared[0]
    finally:
        _users.pop()
        if not _users:
            _stopped(_shared.pop())
