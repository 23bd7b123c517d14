"""A fetch as a statement.

    SELECT columns FROM operands WHERE equal AND (matched) IN (SELECT * FROM keys)          or IN (another fetch)

The keys are put into a temporary table in memory, as values, in every form in which a column may hold them. IN gives
each row once, however many keys it matches, and uses an index over the matched columns if there is one.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from viewkeeper.algebra.zset import Row
from viewkeeper.messages import Fetch
from viewkeeper.sources.sqlite.connections import quote
from viewkeeper.sources.sqlite.types import normal_timestamp, stored_forms

ROWS_AT_ONCE = 4000
_AFFINITIES = {"BIGINT": "INTEGER", "BOOLEAN": "NUMERIC", "DOUBLE": "REAL", "STRING": "TEXT", "BINARY": "BLOB"}


class Statement:
    """The statement of one fetch; `number` tells its keys from those of the others in the same reading."""

    def __init__(self, fetch: Fetch, number: int, absent: Mapping[str, frozenset[str]] | None = None) -> None:
        """`absent` are columns of relations that their tables no longer have: they are NULL."""
        absent = absent or {}
        self.fetch = fetch
        self._keys = quote(f"_vk_keys_{number}")
        self._among = None if fetch.among is None else Statement(fetch.among, number, absent)
        self._alias = {operand.alias: f"o{place}" for place, operand in enumerate(fetch.operands)}
        self._type: dict[str, str] = {}
        self._sql: dict[str, str] = {}
        self._owner: dict[str, str] = {}
        for operand in fetch.operands:
            own = zip(operand.columns, operand.relation.columns, operand.relation.types, strict=True)
            for column, name, type in own:
                self._type[column] = type
                self._owner[column] = operand.alias
                gone = name in absent.get(operand.relation.name, ())
                self._sql[column] = "NULL" if gone else f"{self._alias[operand.alias]}.{quote(name)}"

    def ship_keys(self, connection: sqlite3.Connection) -> None:
        if self._among is not None:
            self._among.ship_keys(connection)
        if self.fetch.keys is None or not self.fetch.matched:
            return
        names = [f"k{place}" for place in range(len(self.fetch.matched))]
        columns = [
            f"{name} {_AFFINITIES.get(self._type[column], 'NUMERIC')}"
            for name, column in zip(names, self.fetch.matched, strict=True)
        ]
        connection.execute(f"DROP TABLE IF EXISTS temp.{self._keys}")
        connection.execute(
            f"CREATE TEMP TABLE {self._keys} ({', '.join(columns)}, PRIMARY KEY ({', '.join(names)})) WITHOUT ROWID"
        )
        connection.execute("BEGIN")  # or each key would be a transaction
        connection.executemany(
            f"INSERT OR IGNORE INTO temp.{self._keys} VALUES ({', '.join('?' * len(names))})", _forms(self.fetch.keys)
        )
        connection.execute("COMMIT")

    def forget_keys(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"DROP TABLE IF EXISTS temp.{self._keys}")

    def sql(self, tables: dict[str, str]) -> str:
        """The statement; `tables` gives the name of each relation's table."""
        fetch = self.fetch
        chosen = ", ".join(self._sql[column] for column in fetch.columns) or "1"
        operands = ", ".join(
            f"main.{quote(tables[operand.relation.name])} AS {self._alias[operand.alias]}" for operand in fetch.operands
        )
        conditions = [self._equal(*pair) for pair in fetch.equal]
        if fetch.keys is not None and not fetch.matched:
            conditions.append("1" if fetch.keys else "0")
        elif fetch.keys is not None:
            conditions += self._matches()
        elif self._among is not None:
            columns = ", ".join(self._sql[column] for column in fetch.matched)
            conditions.append(f"({columns}) IN ({self._among.sql(tables)})")
        return f"SELECT {chosen} FROM {operands}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")

    def _equal(self, one: str, other: str) -> str:
        types = {self._type[one], self._type[other]}
        left, right = self._sql[one], self._sql[other]
        if types == {"TIMESTAMP_NTZ"}:
            return f"{normal_timestamp(left)} = {normal_timestamp(right)}"
        if "DOUBLE" in types and len(types) > 1:  # as Spark compares them
            return f"CAST({left} AS REAL) = CAST({right} AS REAL)"
        return f"{left} = {right}"

    def _matches(self) -> Iterator[str]:
        matched = self.fetch.matched
        if len({self._owner[column] for column in matched}) > 1:
            # No index serves columns of several tables at once, but one per table may.
            for place, column in enumerate(matched):
                yield f"{self._sql[column]} IN (SELECT k{place} FROM temp.{self._keys})"
        columns = ", ".join(self._sql[column] for column in matched)
        keys = ", ".join(f"k{place}" for place in range(len(matched)))
        yield f"({columns}) IN (SELECT {keys} FROM temp.{self._keys})"


def _forms(keys: Sequence[Row]) -> Iterator[Row]:
    for key in keys:
        yield from product(*(stored_forms(value) for value in key))
