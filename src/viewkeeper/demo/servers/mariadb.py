"""A private MariaDB with a binary log: a data directory in a folder, reached through a socket there."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX
from socket import socket as unix_socket

from viewkeeper.clock import monotonic
from viewkeeper.demo.servers.private import PATIENCE, did_not_start, environment, owner, program, run, server_folder

SETTINGS = (
    "--skip-networking",
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--character-set-server=utf8mb4",
    "--innodb-buffer-pool-size=64M",
    # Nothing of it outlives the demo.
    "--innodb-flush-log-at-trx-commit=0",
)
GLANCE = 0.05


def mariadb_programs() -> tuple[str, str]:
    """The one that makes a data directory, and the server."""
    names = (("mariadb-install-db", "mysql_install_db"), ("mariadbd", "mysqld"))
    install, daemon = (program("MariaDB", "mariadb-server", one) for one in names)
    return install, daemon


@contextmanager
def private_mariadb(database: str) -> Iterator[str]:
    """The URL of an empty database at a server that is stopped and removed at the end."""
    install, daemon = mariadb_programs()
    user = owner("mysql", "nobody")
    with server_folder("mariadb", user) as folder:
        data = f"--datadir={folder / 'data'}"
        options = ["--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"]
        run("MariaDB", [install, *options], folder, user)
        socket, log = folder / "socket", folder / "error.log"
        # It runs until it is told to stop, here: not by a Ctrl-C that is meant for the one who shows the demo.
        process = subprocess.Popen(
            [daemon, "--no-defaults", data, f"--socket={socket}", f"--log-error={log}", *SETTINGS],
            user=user,
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _create(database, process, socket, log)
            yield f"mariadb://root@localhost/{database}?unix_socket={socket}"
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _create(database: str, process: "subprocess.Popen[bytes]", socket: Path, log: Path) -> None:
    """Make the database, as soon as the server answers."""
    import pymysql

    deadline = monotonic() + PATIENCE
    while True:
        try:
            # The driver would leave a socket open if nobody listened.
            with unix_socket(AF_UNIX) as probe:
                probe.connect(str(socket))
            connection = pymysql.connect(unix_socket=str(socket), user="root")
        except (pymysql.MySQLError, OSError):
            if process.poll() is not None or monotonic() > deadline:
                raise did_not_start("MariaDB", log.read_text(errors="replace") if log.exists() else "") from None
            threading.Event().wait(GLANCE)
            continue
        with connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {database}")
        return
