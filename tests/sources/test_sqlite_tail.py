"""Following the commits of a database that writes without rest: what is read, verified and given out, by counts."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from viewkeeper.sources.base import Request
from viewkeeper.sources.sqlite import SqliteSource, commit_tail, wal
from viewkeeper.sources.sqlite.commit_tail import CommitTail
from waiting import until


@pytest.fixture
def user(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=30)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INT)")
    yield connection
    connection.close()


@pytest.fixture
def source(tmp_path: Path, user: sqlite3.Connection) -> Iterator[SqliteSource]:
    source = SqliteSource(Request("s", f"sqlite:///{tmp_path / 'a.db'}", "w1"))
    source.install()
    yield source
    source.close()


def followed(source: SqliteSource, user: sqlite3.Connection, count: int) -> CommitTail:
    """A tail that has seen so many transactions, each of one row."""
    tail = source._running_tail()
    before = tail._head
    for number in range(count):
        user.execute("INSERT INTO t VALUES (?, ?)", (before + number, number))
    until(lambda: tail._head == before + count)
    return tail


def test_frames_are_summed_up_only_after_a_restart(
    source: SqliteSource, user: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has shown a state behind them, so they are valid; until the file is written from its beginning again."""
    monkeypatch.setattr(commit_tail, "HELD_FRAMES", 1 << 30)
    followed(source, user, 1)
    summed: list[int] = []
    valid = wal._valid
    monkeypatch.setattr(wal, "_valid", lambda *given: summed.append(len(given[3])) or valid(*given))
    tail = followed(source, user, 500)
    assert sum(summed) == 0
    assert len(tail._ends) >= 500
    assert all(tail._exact[-500:])


def test_pieces_are_given_out_in_portions(
    source: SqliteSource, user: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_tail, "PIECES_AT_ONCE", 7)
    tail = followed(source, user, 100)
    stop, last, sizes = threading.Event(), tail._start, []
    while pieces := tail.pieces_behind(last, 0, stop):
        sizes.append(len(pieces))
        assert [piece.start for piece in pieces] == [last, *(piece.end for piece in pieces[:-1])]
        last = pieces[-1].end
    assert last == tail._head
    assert sum(sizes) == len(tail._ends)
    assert max(sizes) <= 7


def test_what_is_forgotten_leaves_no_gap(source: SqliteSource, user: sqlite3.Connection) -> None:
    tail = followed(source, user, 50)
    whole = tail.pieces_behind(tail._start, 0, threading.Event())
    cut = whole[len(whole) // 2].end
    tail.forget(cut)
    assert len(tail._ends) == len(tail._exact) < len(whole)
    assert tail.pieces_behind(cut, 0, threading.Event()) == [piece for piece in whole if piece.start >= cut]
