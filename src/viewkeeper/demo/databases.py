"""The chain's databases as their own programs use them: made, filled, written to. viewkeeper is not involved.

    sqlite:///path                                a file
    postgresql://user@/database?host=folder       through a socket in a folder
    mariadb://user@localhost/database?unix_socket=path

A database is opened by its URL, in whichever process wants to.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from viewkeeper.demo.business import Transaction
from viewkeeper.demo.retail import TABLES, Row, Table, first_rows


class Database(ABC):
    """An open database; close it where it was opened."""

    mark = "%s"
    """what stands for a value in its statements"""

    @abstractmethod
    def execute(self, statement: str, values: Row = ()) -> None:
        """Run a statement in the transaction that is open."""

    @abstractmethod
    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Many rows at once."""

    @abstractmethod
    def rows(self, table: Table) -> list[Sequence[Any]]:
        """All rows of a table."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def begin(self) -> None:
        """Begin a transaction that writes; most databases do so by themselves."""
        return

    def carry_out(self, transaction: Transaction) -> None:
        """All its changes, or none if this process ends meanwhile."""
        self.begin()
        for change in transaction:
            self.execute(*change.statement(self.mark))
        self.commit()

    def fill(self, name: str, seed: int) -> None:
        """Make the tables of one of the three, with what is in them at first."""
        rows = first_rows(name, seed)
        for table in TABLES[name]:
            self.execute(table.create)
        self.begin()
        for table in TABLES[name]:
            self.insert(table, rows[table.name])
        self.commit()


class _Sqlite(Database):
    mark = "?"

    def __init__(self, url: str) -> None:
        path = unquote(url.removeprefix("sqlite:///"))
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
        # As most applications set it: readers and writers do not wait for each other.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def execute(self, statement: str, values: Row = ()) -> None:
        self._connection.execute(statement, values)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(table.columns))
        self._connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)

    def rows(self, table: Table) -> list[Sequence[Any]]:
        return self._connection.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}").fetchall()

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class _Postgres(Database):
    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url)

    def execute(self, statement: str, values: Row = ()) -> None:
        self._connection.execute(statement.encode(), values or None)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        statement = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def rows(self, table: Table) -> list[Sequence[Any]]:
        found = self._connection.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}".encode()).fetchall()
        self._connection.rollback()
        return list(found)

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


class _MariaDb(Database):
    def __init__(self, url: str) -> None:
        import pymysql

        parts = urlsplit(url)
        (socket,) = parse_qs(parts.query)["unix_socket"]
        self._connection = pymysql.connect(
            unix_socket=socket, user=parts.username, database=parts.path.removeprefix("/"), charset="utf8mb4"
        )

    def execute(self, statement: str, values: Row = ()) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        marks = ", ".join(["%s"] * len(table.columns))
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({marks})", list(rows))

    def rows(self, table: Table) -> list[Sequence[Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}")
            found = list(cursor.fetchall())
        self._connection.rollback()
        return found

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


_KINDS: dict[str, type[_Sqlite | _Postgres | _MariaDb]] = {
    "sqlite": _Sqlite,
    "postgresql": _Postgres,
    "mariadb": _MariaDb,
}


def open_database(url: str) -> Database:
    """The database of a URL."""
    return _KINDS[urlsplit(url).scheme](url)
