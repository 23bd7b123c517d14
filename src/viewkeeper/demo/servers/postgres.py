"""A private PostgreSQL with logical replication: a cluster in a folder, reached through a socket there."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.demo.servers.private import Guarded, owner, program, run, server_folder

SETTINGS = {
    "wal_level": "logical",
    "listen_addresses": "",
    "shared_buffers": "32MB",
    # Nothing of it outlives the demo.
    "fsync": "off",
    "max_slot_wal_keep_size": "512MB",
}
USER = "demo"


def postgres_programs() -> Path:
    """The folder with initdb and postgres."""
    # Debian keeps the programs of each version in a folder of its own.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parts[-2].zfill(4), reverse=True)
    return Path(program("PostgreSQL", "postgresql", ("initdb",), versions)).resolve().parent


@contextmanager
def private_postgres(database: str) -> Iterator[str]:
    """The URL of an empty database at a server that is stopped and removed at the end."""
    bin = postgres_programs()
    user = owner("postgres", "nobody")
    with server_folder("postgres", user) as folder:
        options = ["-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        run("PostgreSQL", [str(bin / "initdb"), *options], folder, user)
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            for name, value in {**SETTINGS, "unix_socket_directories": str(folder)}.items():
                settings.write(f"{name} = '{value}'\n")
        # Nobody waits for what is under way: SIGQUIT is how it is told to end at once.
        with Guarded("PostgreSQL", [str(bin / "postgres"), "-D", "data"], folder, user, signal.SIGQUIT) as server:
            server.wait_for(lambda: _created(database, folder))
            yield f"postgresql://{USER}@/{database}?host={folder}"


def _created(database: str, folder: Path) -> bool:
    """Make the database; False if the server does not answer yet."""
    import psycopg

    try:
        with psycopg.connect(f"postgresql://{USER}@/postgres?host={folder}", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}".encode())
    except psycopg.OperationalError:
        return False
    return True
