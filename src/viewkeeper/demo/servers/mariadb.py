"""A private MariaDB with a binary log: a data directory in a folder, reached through a socket there."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.demo.servers.private import Guarded, listens, owner, program, run, server_folder

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
        socket = folder / "socket"
        command = [daemon, "--no-defaults", data, f"--socket={socket}", *SETTINGS]
        with Guarded("MariaDB", command, folder, user, signal.SIGTERM) as server:
            server.wait_for(lambda: _created(database, socket))
            yield f"mariadb://root@localhost/{database}?unix_socket={socket}"


def _created(database: str, socket: Path) -> bool:
    """Make the database; False if the server does not answer yet."""
    import pymysql

    if not listens(socket):
        return False
    try:
        connection = pymysql.connect(unix_socket=str(socket), user="root")
    except pymysql.OperationalError:
        return False
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
    return True
