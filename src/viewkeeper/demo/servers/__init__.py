"""Private database servers for the demo: `demo --postgres`.

    postgres    PostgreSQL with logical replication, for the shop
    mariadb     MariaDB with a binary log, for the customers
    private     what they have in common: a folder, sockets in it, an owner that is not root

They are reached through sockets in a folder that is theirs, open no port, ask for no password, and are stopped and
removed with all their data at the end.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from viewkeeper.demo.servers.mariadb import mariadb_programs, private_mariadb
from viewkeeper.demo.servers.postgres import postgres_programs, private_postgres
from viewkeeper.errors import SourceUnfit

DRIVERS = ("psycopg", "pymysql", "pymysqlreplication")


def refuse_missing() -> None:
    """SourceUnfit, with what to install, if a program or a driver is not there. Nothing is started."""
    if missing := [name for name in DRIVERS if find_spec(name) is None]:
        raise SourceUnfit(
            f"drivers are not installed: {', '.join(missing)}", "pip install 'viewkeeper[postgres,mysql]'"
        )
    postgres_programs()
    mariadb_programs()


@contextmanager
def private_servers() -> Iterator[Mapping[str, str]]:
    """A server for the shop and one for the customers: the URLs of their databases."""
    refuse_missing()
    with private_postgres("shop") as shop, private_mariadb("customers") as customers:
        yield {"shop": shop, "customers": customers}
