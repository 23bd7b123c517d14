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

from viewkeeper.errors import SourceUnfit


@contextmanager
def private_servers() -> Iterator[Mapping[str, str]]:
    """A server for the shop and one for the customers: the URLs of their databases."""
    if missing := [name for name in ("psycopg", "pymysql", "pymysqlreplication") if find_spec(name) is None]:
        raise SourceUnfit(
            f"drivers are not installed: {', '.join(missing)}", "pip install 'viewkeeper[postgres,mysql]'"
        )
    from viewkeeper.demo.servers.mariadb import private_mariadb
    from viewkeeper.demo.servers.postgres import private_postgres

    with private_postgres("shop") as shop, private_mariadb("customers") as customers:
        yield {"shop": shop, "customers": customers}
