"""What is put into a database to capture its changes: a log, and triggers that write to it.

    log     (seq, tbl, sign, c0, c1, ...)      a deleted or inserted row each; seq rises by one
    head    (one, mark, seq)                   the last seq: one page, which every commit with changes writes to the WAL
    tables  (number, name, columns, current)   what is captured, and how its columns were when capture began
    meta    (former, floor)                    the journal mode before us; up to where the log was forgotten

The columns of the log have no type, so that values stay as they are. `seq` is the largest one there and 1: the last row
of the log is never deleted. (AUTOINCREMENT would leave a table that cannot be dropped, and its counter lags
after INSERT OR FAIL.)

INSERT OR REPLACE deletes rows without a trigger (unless recursive_triggers is on). So a BEFORE trigger puts the rows
that share a unique key with NEW into a stash. When AFTER is reached NEW is in the table, so those that are no longer
there were deleted for it. A row that is updated or deleted meanwhile (by a trigger of the user, a foreign key) is
updated or deleted in the stash too. What stays there, after OR IGNORE or an upsert, is read from the table again before
it is used.

Conflict clauses of the user's statement override those of a trigger: nothing here relies on one, or can conflict.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewkeeper.sources.sqlite.connections import quote
from viewkeeper.sources.sqlite.tables import Table, UniqueKey

BASE = 0
"""The number of no table: the row with which a log begins."""


@dataclass(frozen=True)
class Names:
    """What our tables are called; they carry the identity of the warehouse and the name of the source."""

    identity: str

    def _own(self, what: str) -> str:
        return f"_vk_{self.identity}_{what}"

    @property
    def log(self) -> str:
        return quote(self._own("log"))

    @property
    def head_name(self) -> str:
        return self._own("head")

    @property
    def head(self) -> str:
        return quote(self.head_name)

    @property
    def tables(self) -> str:
        return quote(self._own("tables"))

    @property
    def meta_name(self) -> str:
        return self._own("meta")

    @property
    def meta(self) -> str:
        return quote(self.meta_name)

    def stash(self, number: int) -> str:
        return quote(self._own(f"{number}_stash"))

    def stash_index(self, number: int, place: int) -> str:
        return quote(self._own(f"{number}_stash_{place}"))

    def trigger(self, number: int, when: str) -> str:
        return self._own(f"{number}_{when}")

    def triggers(self, number: int) -> list[str]:
        return [self.trigger(number, when) for when in TRIGGERS]

    @property
    def mark(self) -> bytes:
        """What tells the page of `head` from any other."""
        return hashlib.sha256(self.identity.encode()).digest()[:16]


TRIGGERS = ("before_insert", "after_insert", "before_update", "after_update", "after_delete")


def base_tables(names: Names, begin: int) -> list[str]:
    """The statements for the tables that all captured tables share, with an empty log that begins at a number."""
    return [
        f"CREATE TABLE {names.log} (seq INTEGER PRIMARY KEY, tbl INTEGER, sign INTEGER)",
        f"CREATE TABLE {names.head} (one INTEGER PRIMARY KEY, mark BLOB, seq INTEGER)",
        f"CREATE TABLE {names.tables} (number INTEGER PRIMARY KEY, name TEXT, columns TEXT, current INTEGER)",
        f"CREATE TABLE {names.meta} (former TEXT, floor INTEGER)",
        f"INSERT INTO {names.log} VALUES ({begin}, {BASE}, 0)",
        f"INSERT INTO {names.head} VALUES (1, x'{names.mark.hex()}', {begin})",
    ]


class Capture:
    """The stash and the triggers of one table."""

    def __init__(self, names: Names, number: int, table: Table) -> None:
        self._names, self._number, self._table = names, number, table
        self._base, self._stash = quote(table.name), names.stash(number)
        self._places = {column.name: place for place, column in enumerate(table.columns)}
        self._fallbacks = {column.name: column.fallback for column in table.columns}
        own = UniqueKey(((table.rowid, "BINARY"),)) if table.rowid else table.primary
        assert own is not None, f"{table.name} has neither rowid nor primary key"
        self._row = own
        self._keys = tuple(dict.fromkeys((own, *table.unique)))

    # --- the statements ---

    def statements(self) -> list[str]:
        """All that this table needs, beyond the tables that are shared."""
        return [*self._stash_table(), *self.triggers().values()]

    def _stash_table(self) -> Iterator[str]:
        key = ["k"] if self._table.rowid else []
        yield f"CREATE TABLE {self._stash} ({', '.join([*key, *self._logged()])})"
        for place, unique in enumerate(self._keys):
            parts = ", ".join(f"{self._stashed(column)} COLLATE {how}" for column, how in unique.columns)
            yield f"CREATE INDEX {self._names.stash_index(self._number, place)} ON {self._stash} ({parts})"

    def triggers(self) -> dict[str, str]:
        """Each trigger by name."""
        bodies = {
            "before_insert": self._before(of_old=False),
            "after_insert": [*self._replaced(self._same_row("NEW")), self._log(1, self._values("NEW")), self._headed()],
            "before_update": self._before(of_old=True),
            "after_update": [
                *self._replaced(f"{self._same_row('NEW')} AND NOT ({self._same_row('OLD')})", but_old=True),
                self._restash(),
                self._log(-1, self._values("OLD")),
                self._log(1, self._values("NEW")),
                self._headed(),
            ],
            "after_delete": [
                f"DELETE FROM {self._stash} WHERE {self._same_row('OLD')}",
                self._log(-1, self._values("OLD")),
                self._headed(),
            ],
        }
        triggers = {}
        for when, body in bodies.items():
            name = self._names.trigger(self._number, when)
            event = when.replace("_", " ").upper()
            triggers[name] = (
                f"CREATE TRIGGER {quote(name)} {event} ON {self._base} BEGIN\n  " + ";\n  ".join(body) + ";\nEND"
            )
        return triggers

    # --- the bodies ---

    def _before(self, *, of_old: bool) -> list[str]:
        """Stash the rows that share a unique key with NEW; what was stashed of them before may be out of date."""
        key = [f"{self._base}.{self._table.rowid}"] if self._table.rowid else []
        chosen = ", ".join([*key, *self._values(self._base)])
        absent = f"NOT EXISTS (SELECT 1 FROM {self._stash} WHERE {self._same_row(self._base)})"
        outdated = f"({self._shares_key(with_fallback=True)})" + (
            f" AND NOT ({self._same_row('OLD')})" if of_old else ""
        )
        besides = f" AND NOT ({self._is_old()})" if of_old else ""
        statements = [f"DELETE FROM {self._stash} WHERE {outdated}"]
        for unique in self._keys:
            equal = " AND ".join(
                f"{self._column(self._base, column)} COLLATE {how} = {self._new(column, True)}"
                for column, how in unique.columns
            )
            where = f" AND ({unique.where})" if unique.where else ""
            statements.append(
                f"INSERT INTO {self._stash} SELECT {chosen} FROM {self._base} "
                f"WHERE {equal}{where}{besides} AND {absent}"
            )
        return statements

    def _replaced(self, replaced: str, *, but_old: bool = False) -> list[str]:
        """Log the stashed rows that are gone: NEW has come in their place, or they are not in the table."""
        gone = f"NOT EXISTS (SELECT 1 FROM {self._base} WHERE {self._row_in_base()})"
        if but_old:
            gone = f"{gone} AND NOT ({self._same_row('OLD')})"
        chosen = f"({self._shares_key(with_fallback=False)}) AND ({replaced} OR {gone})"
        logged = ", ".join(self._logged())
        comma = ", " if logged else ""
        return [
            f"INSERT INTO {self._names.log} (tbl, sign{comma}{logged}) "
            f"SELECT {self._number}, -1{comma}{logged} FROM {self._stash} WHERE {chosen}",
            f"DELETE FROM {self._stash} WHERE {chosen}",
        ]

    def _restash(self) -> str:
        key = [f"k = NEW.{self._table.rowid}"] if self._table.rowid else []
        values = [f"{to} = {value}" for to, value in zip(self._logged(), self._values("NEW"), strict=True)]
        return f"UPDATE {self._stash} SET {', '.join([*key, *values])} WHERE {self._same_row('OLD')}"

    def _log(self, sign: int, values: Sequence[str]) -> str:
        columns = ", ".join(["tbl", "sign", *self._logged()])
        return (
            f"INSERT INTO {self._names.log} ({columns}) VALUES ({', '.join([str(self._number), str(sign), *values])})"
        )

    def _headed(self) -> str:
        return set_head(self._names)

    # --- expressions ---

    def _logged(self) -> list[str]:
        return [f"c{place}" for place in range(len(self._places))]

    def _values(self, of: str) -> list[str]:
        return [f"{of}.{quote(column)}" for column in self._places]

    def _column(self, of: str, column: str) -> str:
        return f"{of}.{column}" if column not in self._places else f"{of}.{quote(column)}"

    def _stashed(self, column: str) -> str:
        return f"c{self._places[column]}" if column in self._places else "k"

    def _new(self, column: str, with_fallback: bool) -> str:
        value, fallback = self._column("NEW", column), self._fallbacks.get(column)
        return f"ifnull({value}, {fallback})" if with_fallback and fallback is not None else value

    def _shares_key(self, *, with_fallback: bool) -> str:
        """Whether a stashed row has a unique key of NEW. The + takes away a type that would keep the index unused."""
        return " OR ".join(
            "("
            + " AND ".join(
                f"{self._stash}.{self._stashed(column)} COLLATE {how} = +{self._new(column, with_fallback)}"
                for column, how in unique.columns
            )
            + ")"
            for unique in self._keys
        )

    def _same_row(self, of: str) -> str:
        """Whether a stashed row is OLD or NEW or a row of the table."""
        return " AND ".join(
            f"{self._stash}.{self._stashed(column)} COLLATE {how} = +{self._column(of, column)}"
            for column, how in self._row.columns
        )

    def _row_in_base(self) -> str:
        """The same, so that the table is searched for a stashed row."""
        return " AND ".join(
            f"{self._column(self._base, column)} COLLATE {how} = {self._stash}.{self._stashed(column)}"
            for column, how in self._row.columns
        )

    def _is_old(self) -> str:
        return " AND ".join(
            f"{self._column(self._base, column)} COLLATE {how} = {self._column('OLD', column)}"
            for column, how in self._row.columns
        )


def set_head(names: Names) -> str:
    """The statement that follows every change of the log."""
    return f"UPDATE {names.head} SET seq = (SELECT max(seq) FROM {names.log})"
