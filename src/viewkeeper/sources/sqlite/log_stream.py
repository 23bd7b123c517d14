"""From rows of the log to transactions.

    (start, end]  of the log, cut at the ends of commits  =  transactions, each at the position of its last row

A relation of which the stream can no longer tell (its table was altered, or holds a value that is not of its type) is
disrupted: from there on its changes are left out, and the other relations go on.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.zset import Row
from viewkeeper.errors import PositionLost
from viewkeeper.messages import Change, Transaction, position
from viewkeeper.sources.base import Batch, Disruption, as_transaction
from viewkeeper.sources.layout import Alteration
from viewkeeper.sources.sqlite.change_tables import BASE, Names
from viewkeeper.sources.sqlite.known_ends import Piece
from viewkeeper.sources.sqlite.types import StoredType, canonical_prefix

ROWS_AT_ONCE = 4000


@dataclass(frozen=True)
class Logged:
    """A table of the log: the relation that it is, and how its rows are read; `types` None: they no longer can be."""

    relation: str
    columns: tuple[str, ...]
    types: tuple[StoredType, ...] | None
    places: tuple[int | None, ...]
    """for each column of the relation, which of these it is"""


class LogStream:
    """Reads the log of one source, from its beginning to its end."""

    def __init__(self, source: str, names: Names) -> None:
        self._source, self._names = source, names
        self._disrupted: set[int] = set()
        self._told: set[tuple[int, Alteration]] = set()

    def portions(self, pieces: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
        """The pieces in portions of some thousand rows; a piece is never cut."""
        portion: list[Piece] = []
        for piece in pieces:
            portion.append(piece)
            if piece.end - portion[0].start >= ROWS_AT_ONCE:
                yield portion
                portion = []
        if portion:
            yield portion

    def rows(self, connection: sqlite3.Connection, start: int, end: int) -> Sequence[Row]:
        rows = connection.execute(
            f"SELECT * FROM main.{self._names.log} WHERE seq > ? AND seq <= ? ORDER BY seq", (start, end)
        ).fetchall()
        if len(rows) != end - start:
            raise PositionLost(
                f"changes of {self._source} after {position(start)} are no longer in its log",
                "reload the views over it",
            )
        return rows

    def disrupt(
        self, flaws: Mapping[int, Sequence[Alteration]], logged: Mapping[int, Logged], at: int
    ) -> list[Disruption]:
        """Tables and columns that are found to be altered, those that are not known to be yet."""
        new = [
            (number, flaw)
            for number, several in flaws.items()
            for flaw in several
            if number in logged and number not in self._disrupted and (number, flaw) not in self._told
        ]
        self._told.update(new)
        self._disrupted.update(number for number, flaw in new if flaw.columns is None)
        # However far somebody has come: the table, or the column, is not captured any more.
        return [Disruption.of(logged[number].relation, position(at), flaw, standing=True) for number, flaw in new]

    def batch(self, pieces: Sequence[Piece], rows: Sequence[Row], logged: Mapping[int, Logged]) -> Batch:
        """The transactions of some pieces, whose rows these are."""
        converted, misfits = self._converted(rows, logged)
        events: list[Transaction | Disruption] = []
        begin = pieces[0].start
        # Almost always: then no piece need be searched for what disrupts a relation.
        all_fit = not misfits and len(converted) == len(rows)
        for piece in pieces:
            of_piece = range(piece.start - begin, piece.end - begin)
            if not all_fit:
                events += self._disruptions(piece, rows, of_piece, logged, misfits)
            changes = [
                Change(logged[rows[place][1]].relation, converted[place], rows[place][2])
                for place in of_piece
                if place in converted and rows[place][1] not in self._disrupted
            ]
            transaction = as_transaction(self._source, position(piece.end), changes, merged=not piece.exact)
            if transaction.changes or transaction.parts:
                events.append(transaction)
        return Batch(events, position(pieces[-1].end))

    def _disruptions(
        self, piece: Piece, rows: Sequence[Row], places: range, logged: Mapping[int, Logged], misfits: Mapping[int, str]
    ) -> Iterator[Disruption]:
        told: set[int] = set()
        for place in places:
            number, sign = rows[place][1], rows[place][2]
            if number in self._disrupted or number in told or number not in logged:
                continue
            table = logged[number]
            if place in misfits:
                self._disrupted.add(number)
                yield Disruption(table.relation, position(piece.end), misfits[place])
            elif sign == 0 or table.types is None:
                told.add(number)
                yield Disruption(
                    table.relation, position(piece.end), f"the table of {table.relation} was altered, and captured anew"
                )

    def _converted(self, rows: Sequence[Row], logged: Mapping[int, Logged]) -> tuple[dict[int, Row], dict[int, str]]:
        """The canonical row in each place of the log that holds one, and what is wrong where there is none."""
        places: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            if row[1] != BASE and row[2] != 0:
                places.setdefault(row[1], []).append(place)
        converted: dict[int, Row] = {}
        misfits: dict[int, str] = {}
        for number, own in places.items():
            table = logged.get(number)
            if table is None or table.types is None or number in self._disrupted:
                continue
            stored: list[Any] = [rows[place][3 : 3 + len(table.types)] for place in own]
            good, misfit = canonical_prefix(table.types, stored)
            if table.places != tuple(range(len(table.types))):
                good = [tuple(None if at is None else row[at] for at in table.places) for row in good]
            converted.update(zip(own, good, strict=False))
            if misfit is not None:
                column = table.columns[misfit.column]
                misfits[own[misfit.row]] = f"column {column} of {table.relation} holds {misfit}"
        return converted, misfits
