"""A private PostgreSQL with logical replication: a cluster in a folder, reached through a socket there."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from viewkeeper.demo.servers.private import did_not_start, owner, program, run, server_folder
from viewkeeper.errors import SourceUnavailable

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
    """The folder with initdb and the others."""
    # Debian keeps the programs of each version in a folder of its own.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parts[-2].zfill(4), reverse=True)
    return Path(program("PostgreSQL", "postgresql", ("initdb",), versions)).resolve().parent


@contextmanager
def private_postgres(database: str) -> Iterator[str]:
    """The URL of an empty database at a server that is stopped and removed at the end."""
    bin = postgres_programs()
    user = owner("postgres", "nobody")
    with server_folder("postgres", user) as folder:

        def call(name: str, *options: str) -> None:
            run("PostgreSQL", [str(bin / name), *options], folder, user)

        call("initdb", "-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            for name, value in {**SETTINGS, "unix_socket_directories": str(folder)}.items():
                settings.write(f"{name} = '{value}'\n")
        try:
            call("pg_ctl", "start", "-D", "data", "-l", "log", "-w")
        except SourceUnavailable:
            log = folder / "log"
            raise did_not_start("PostgreSQL", log.read_text(errors="replace") if log.exists() else "") from None
        try:
            call("createdb", "-h", str(folder), "-U", USER, database)
            yield f"postgresql://{USER}@/{database}?host={folder}"
        finally:
            with suppress(SourceUnavailable):
                call("pg_ctl", "stop", "-D", "data", "-m", "immediate", "-w")
