"""A private MariaDB for the tests: on a unix socket and a free loopback port, in a folder that is removed afterwards.

    def test_something(mariadb: MariaDb) -> None: ...        # the fixture, known to every test in this folder

Folders elsewhere name it in their conftest.py, as this one does.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from viewkeeper.clock import monotonic

SETTINGS = (
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=48M",
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
)
USER, PASSWORD = "keeper", "s3cr3t:/@word"
PATIENCE = 60.0


class MariaDb:
    """A server of our own; `root` is a connection of its administrator, `url` one for the plugin."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self.socket = str(folder / "s.sock")
        self.port = _free_port()
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        install = _found("mariadb-install-db", "mysql_install_db")
        as_user = ["--user=mysql"] if os.geteuid() == 0 else []
        if as_user:
            shutil.chown(folder, "mysql", "mysql")
        self._as_user = as_user
        installed = subprocess.run(
            [
                install,
                "--no-defaults",
                f"--datadir={folder / 'data'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *as_user,
            ],
            capture_output=True,
            text=True,
            env=self._environment(),
        )
        assert installed.returncode == 0, installed.stdout + installed.stderr
        self.start()
        with self.root() as root:
            root.execute(f"CREATE USER {USER}@'%%' IDENTIFIED BY %s", (PASSWORD,))
            root.execute(f"GRANT ALL PRIVILEGES ON *.* TO {USER}@'%'")

    def _environment(self) -> dict[str, str]:
        # A server that starts removes what others of its kind left in the folder for temporary tables.
        return {**os.environ, "TMPDIR": str(self.folder)}

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                _found("mariadbd", "mysqld"),
                "--no-defaults",
                f"--datadir={self.folder / 'data'}",
                f"--socket={self.socket}",
                f"--port={self.port}",
                "--bind-address=127.0.0.1",
                f"--log-error={self.folder / 'data' / 'error.log'}",
                f"--pid-file={self.folder / 'data' / 'server.pid'}",
                *SETTINGS,
                *self._settings,
                *self._as_user,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment(),
        )
        deadline = monotonic() + PATIENCE
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(self.socket)
                self.connect("root", "").close()
                return
            except (pymysql.MySQLError, OSError):
                log = self.folder / "data" / "error.log"
                if self._process.poll() is not None or monotonic() > deadline:
                    pytest.fail(log.read_text() if log.exists() else "MariaDB did not start")
                threading.Event().wait(0.05)

    def stop(self) -> None:
        """An orderly end, of the process that was started here."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)

    def connect(self, user: str = USER, password: str = PASSWORD, db: str | None = None) -> Any:
        return pymysql.connect(
            unix_socket=self.socket, user=user, password=password, database=db, autocommit=True, charset="utf8mb4"
        )

    def root(self) -> "Session":
        return Session(self.connect("root", ""))

    def session(self, db: str) -> "Session":
        return Session(self.connect(db=db))

    def url(self, db: str, user: str = USER, password: str = "s3cr3t%3A%2F%40word") -> str:
        return f"mariadb://{user}:{password}@localhost/{db}?unix_socket={self.socket}"


class Session:
    """A connection that runs statements; leaving it closes it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def execute(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


def _found(*names: str) -> str:
    """The path of a program."""
    for name in names:
        path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if path is not None:
            return path
    pytest.fail("these tests need MariaDB: `make servers` installs it, or says what to install")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def a_server(*settings: str) -> Iterator[MariaDb]:
    # Not pytest's folder: the path of a socket is short, and the server's user may not pass through others' folders.
    folder = Path(tempfile.mkdtemp(prefix="vk-mariadb-", dir="/tmp"))
    folder.chmod(0o755)
    server: MariaDb | None = None
    try:
        server = MariaDb(folder, *settings)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """One server for the whole run; every test makes a database of its own in it."""
    yield from a_server()
