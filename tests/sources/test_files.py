"""The folder as a source: copies, differences, readings exact at the number of a copy."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exactness import Recorded, matching, operand, read, whole
from lake_rows import TYPES, WRITTEN, arrow, random_row, write

from viewkeeper.clock import Random, seeded
from viewkeeper.errors import (
    BadSourceUrl,
    PositionLost,
    SourceUnavailable,
    SourceUnfit,
    UnknownTable,
    UnsupportedType,
)
from viewkeeper.messages import Fetch, GlobalPart, position
from viewkeeper.sources.base import Batch, Disruption, Request
from viewkeeper.sources.files import FilesSource, snapshots
from viewkeeper.sources.lake.workshop import Workshop

ORDERS = pa.schema([("id", pa.int64()), ("item", pa.string())])


def no_spark() -> Any:
    raise AssertionError("this is small enough without Spark")


def source_of(
    folder: Path, query: str = "", *, tables: tuple[str, ...] | None = None, workspace: Path | None = None, **keys: Any
) -> FilesSource:
    options = "&".join(part for part in (query, "poll=20ms", "quiet=5ms") if part)
    request = Request("shop", f"files://{quote(str(folder))}?{options}", "w1", tables, keys)
    return FilesSource(request, no_spark, workspace or folder.with_name("workspace"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "lake"
    made.mkdir()
    return made


def csv(path: Path, text: str) -> None:
    """Write a file that appears at once."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text)
    unfinished.replace(path)


def next_events(source: FilesSource, after: str) -> list[Any]:
    """What the stream gives behind a position, up to the end."""
    stop, end, events = threading.Event(), source.end(), []
    for batch in source.transactions(after, stop):
        events.extend(batch.events)
        if batch.upto >= end:
            stop.set()
    return events


def weights(event: Any) -> dict[tuple[str, tuple[Any, ...]], int]:
    return {(change.relation, change.row): change.count for change in event.changes}


# --- exactness ---


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_every_reading_is_the_replay_of_the_differences(folder: Path, ending: str) -> None:
    random = seeded(7)
    (folder / "parts").mkdir()
    schema = quote(WRITTEN)
    write(folder / f"things.{ending}", arrow([random_row(random, 0)]))
    write(folder / "parts" / f"first.{ending}", arrow([random_row(random, 0)]))
    source = source_of(folder, f"key=things.id&format={ending}&schema.things={schema}&schema.parts={schema}")
    things, parts = source.relations["shop.things"], source.relations["shop.parts"]
    assert dict(zip(things.columns, things.types, strict=True)) == TYPES
    assert (things.key, parts.key) == (("id",), None)
    with Recorded(source) as recorded:
        for _ in range(15):
            edit(folder, ending, random)
            if random.random() < 0.5:
                recorded.catch_up()
            recorded.read(whole(things), matching(parts, "id", *range(3)), matching(parts, "name", "a", "", "🦆"))
        recorded.catch_up()
        recorded.read(whole(things), whole(parts))
    recorded.check()
    assert len(recorded.transactions) >= 7


def edit(folder: Path, ending: str, random: Random) -> None:
    """What somebody does to a folder: replace, add, delete, rename, touch."""
    pool = [random_row(seeded(number), number % 4) for number in range(6)]
    by_key = {row[0]: row for row in random.sample(pool, random.randrange(len(pool)))}
    write(folder / f"things.{ending}", arrow(list(by_key.values())))
    parts = sorted((folder / "parts").glob(f"*.{ending}"))
    choice = random.randrange(4)
    if choice == 0 and parts:
        random.choice(parts).unlink()
    elif choice == 1 and parts:
        parts[0].rename(folder / "parts" / f"renamed {random.randrange(100)}.{ending}")
    elif choice == 2 and parts:
        os.utime(parts[0])
    else:
        write(folder / "parts" / f"{random.randrange(5)}.{ending}", arrow(random.choices(pool, k=random.randrange(9))))


def test_differences_by_arrow_are_those_of_python(folder: Path) -> None:
    random = seeded(13)
    pool = [random_row(seeded(number), number % 5) for number in range(12)]
    pool += [(*pool[0][:4], -0.0, *pool[0][5:]), (*pool[0][:4], 0.0, *pool[0][5:])]
    write(folder / "a.parquet", arrow(pool))
    source = source_of(folder)
    begin = source.end()
    for _ in range(10):
        write(folder / "a.parquet", arrow(random.choices(pool, k=random.randrange(10, 15))))
        source.end()
    expected = next_events(source, begin)
    # Two rows are small to it, and forty fit the driver.
    source._snapshots._workshop = Workshop(no_spark, folder, small=2)
    found = next_events(source, begin)
    assert [weights(event) for event in found] == [weights(event) for event in expected]
    assert len(found) == 10


def test_a_bag_counts_its_rows(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n1,pen\n2,\n")
    source = source_of(folder)
    begin = source.end()
    assert read(source, whole(source.relations["shop.orders"]))[1] == [Counter({(1, "pen"): 2, (2, None): 1})]
    csv(folder / "orders.csv", 'id,item\n1,pen\n2,""\n2,""\n')
    (transaction,) = next_events(source, begin)
    assert weights(transaction) == {
        ("shop.orders", (1, "pen")): -1,
        ("shop.orders", (2, None)): -1,
        ("shop.orders", (2, "")): 2,
    }
    assert [change.count for change in transaction.changes] == [-1, -1, 2], "deletions come first"


def test_two_files_with_the_same_bytes_are_two(folder: Path) -> None:
    (folder / "orders").mkdir()
    csv(folder / "orders" / "a.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    begin = source.end()
    csv(folder / "orders" / "b.csv", "id,item\n1,pen\n")
    (transaction,) = next_events(source, begin)
    assert weights(transaction) == {("shop.orders", (1, "pen")): 1}
    assert read(source, whole(source.relations["shop.orders"]))[1] == [Counter({(1, "pen"): 2})]


def test_tables_of_one_difference_are_one_transaction(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    csv(folder / "people.csv", "id,name\n1,Ada\n")
    csv(folder / "global_tx.csv", "participants,gid,source\n")
    source = source_of(folder)
    assert set(source.relations) == {"shop.orders", "shop.people"}
    begin = source.end()
    source_lock = source._snapshots._taking
    with source_lock:
        csv(folder / "orders.csv", "id,item\n")
        csv(folder / "people.csv", "id,name\n1,Bob\n")
        csv(folder / "global_tx.csv", 'participants,gid,source\n"shop,crm",g7,shop\n')
    (transaction,) = next_events(source, begin)
    assert transaction.parts == (GlobalPart("g7", ("shop", "crm")),)
    assert len(transaction.changes) == 3
    assert not transaction.merged


def test_a_look_at_files_has_every_global_id_that_was_added(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    csv(folder / "global_tx.csv", "participants,gid,source\n")
    source = source_of(folder)
    begin = source.end()
    with source._snapshots._taking:
        csv(folder / "orders.csv", "id,item\n1,pen\n2,ink\n")
        csv(folder / "global_tx.csv", 'participants,gid,source\n"shop,crm",g7,shop\n"shop,geo",g8,shop\n')
    (transaction,) = next_events(source, begin)
    assert set(transaction.parts) == {GlobalPart("g7", ("shop", "crm")), GlobalPart("g8", ("shop", "geo"))}
    assert transaction.merged


def test_the_join_of_several_tables(folder: Path) -> None:
    csv(folder / "orders.csv", "id,person,item\n1,7,pen\n2,7,ink\n3,8,pen\n4,,cap\n5,9,pen\n")
    csv(folder / "people.csv", "id,name,boss\n7,Ada,8\n8,Bob,\n")
    source = source_of(folder, "key=orders.id,people.id")
    orders = operand(source.relations["shop.orders"], "o", 0)
    people = operand(source.relations["shop.people"], "p", 1)
    bosses = operand(source.relations["shop.people"], "b", 2)
    joined = Fetch((orders, people), ("o.id", "p.name"), (("o.person", "p.id"),))
    with Recorded(source) as recorded:
        assert recorded.read(joined).bags == [Counter({(1, "Ada"): 1, (2, "Ada"): 1, (3, "Bob"): 1})]
        recorded.read(Fetch((orders, people), ("p.name", "o.id"), joined.equal, ("p.name",), (("Ada",), ("Eve",))))
        recorded.read(Fetch((orders, people), ("p.name",), joined.equal, ("o.item", "p.id"), (("pen", 7), ("ink", 8))))
        recorded.read(
            Fetch((orders, people), ("p.name",)), Fetch((orders, people), ("o.id",), joined.equal, ("o.id",), ())
        )
        recorded.read(
            Fetch((orders, people, bosses), ("o.id", "b.name"), (*joined.equal, ("p.boss", "b.id")), ("o.id",), ((1,),))
        )
        first = Fetch((orders,), ("o.person",), (), ("o.id",), ((1,), (2,), (4,)))
        second = Fetch((people,), ("p.boss",), (), ("p.id",), None, first)
        found = recorded.read(second, Fetch((bosses,), ("b.name",), (), ("b.id",), None, second))
        assert found.bags == [Counter({(8,): 1}), Counter({("Bob",): 1})]
    recorded.check()


def test_many_keys_and_keys_of_other_types(folder: Path) -> None:
    rows = [(number, f"item {number % 100}") for number in range(20_000)]
    write(folder / "orders.parquet", arrow(rows, ORDERS))
    source = source_of(folder)
    orders = source.relations["shop.orders"]
    _, bags = read(source, matching(orders, "id", *range(5_000, 40_000)), whole(orders))
    assert bags == [Counter(rows[5_000:]), Counter(rows)]
    _, bags = read(source, matching(orders, "id", 3.0, 4.5, 2**70), matching(orders, "item", "item 3"))
    assert bags == [Counter([rows[3]]), Counter(row for row in rows if row[1] == "item 3")]


# --- noticing changes ---


def test_the_same_size_and_time_of_modification(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    begin, about = source.end(), (folder / "orders.csv").stat()
    csv(folder / "orders.csv", "id,item\n1,ink\n")
    os.utime(folder / "orders.csv", ns=(about.st_atime_ns, about.st_mtime_ns))
    (transaction,) = next_events(source, begin)
    assert len(transaction.changes) == 2


def test_what_means_nothing_is_no_new_copy(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    begin = source.end()
    os.utime(folder / "orders.csv")
    csv(folder / ".orders.csv.swp", "x")
    csv(folder / "_SUCCESS", "")
    assert source.end() == begin
    csv(folder / "orders.csv", "id,item\n1,pen")
    assert source.end() > begin
    assert next_events(source, begin) == []


def test_a_file_that_is_being_written_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    begin = source.end()
    pieces = ["id,item\n", "2,i", "nk\n", "3,cap\n"]
    real = snapshots.Folder.look

    def look(self: Any, places: Any) -> Any:
        # Before each look somebody has written a little more.
        if pieces:
            with open(folder / "orders.csv", "a" if len(pieces) < 4 else "w") as file:
                file.write(pieces.pop(0))
        return real(self, places)

    monkeypatch.setattr(snapshots.Folder, "look", look)
    (transaction,) = next_events(source, begin)
    assert {change.row for change in transaction.changes if change.count > 0} == {(2, "ink"), (3, "cap")}


@pytest.mark.parametrize("what", ["replaced", "deleted"])
def test_a_file_that_changes_while_it_is_copied(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "orders").mkdir()
    csv(folder / "orders" / "a.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    begin = source.end()
    csv(folder / "orders" / "b.csv", "id,item\n2,pen\n")
    real, happened = snapshots.typed_batches, []

    def batches(path: Path, *rest: Any) -> Iterator[Any]:
        if not happened:
            happened.append(what)
            if what == "deleted":
                path.unlink()
            else:
                csv(path, "id,item\n2,ink\n")
        yield from real(path, *rest)

    monkeypatch.setattr(snapshots, "typed_batches", batches)
    events = next_events(source, begin)
    assert happened
    expected = [] if what == "deleted" else [{("shop.orders", (2, "ink")): 1}]
    assert [weights(event) for event in events] == expected
    assert len(source._copies.numbers()) == 1 + len(expected)


def test_a_folder_that_is_never_quiet(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    real = snapshots.Folder.look

    def look(self: Any, places: Any) -> Any:
        os.utime(folder / "orders.csv")
        return real(self, places)

    monkeypatch.setattr(snapshots.Folder, "look", look)
    monkeypatch.setattr(snapshots, "PATIENCE", 0.1)
    with pytest.raises(SourceUnavailable, match="has been changing"):
        source.end()


# --- crashes, resuming, retention ---

CRASH_AT = ["sha256", "write_parquet", "move_into_place", "create_exclusive", "after"]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("at", CRASH_AT)
def test_a_kill_while_a_copy_is_taken(folder: Path, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    begin = source_of(folder).end()
    csv(folder / "orders.csv", "id,item\n2,ink\n")
    with monkeypatch.context() as patch:
        kill(patch, at)
        with pytest.raises(Killed):
            source_of(folder).end()
    source = source_of(folder)
    orders = source.relations["shop.orders"]
    before = read(source, whole(orders))
    assert before in [(begin, [Counter({(1, "pen"): 1})]), (position(2), [Counter({(2, "ink"): 1})])]
    (transaction,) = next_events(source, begin)
    assert (transaction.position, len(transaction.changes)) == (position(2), 2)
    source.acknowledge(source.end())
    kept = [path.name for path in source._copies._data.iterdir()]
    assert len(kept) == 1, "what the crash left is swept"


def kill(patch: pytest.MonkeyPatch, at: str) -> None:
    def dies(*_: Any, **__: Any) -> Any:
        raise Killed

    if at == "sha256":
        patch.setattr(snapshots.hashlib, "sha256", dies)
    elif at == "write_parquet":

        def half(path: Path, schema: Any, batches: Any) -> Any:
            path.write_bytes(b"PAR1 half")
            raise Killed

        patch.setattr(snapshots, "write_parquet", half)
        patch.setattr(Path, "unlink", dies)
    elif at == "move_into_place":
        patch.setattr(snapshots.durable, "move_into_place", dies)
        patch.setattr(Path, "unlink", dies)
    elif at == "create_exclusive":
        patch.setattr(snapshots.durable, "create_exclusive", dies)
    else:
        real = snapshots.durable.create_exclusive

        def late(*args: Any) -> Any:
            real(*args)
            raise Killed

        patch.setattr(snapshots.durable, "create_exclusive", late)


def test_a_stream_goes_on_from_a_position_in_a_new_object(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    places = [source.end()]
    for number in range(2, 6):
        csv(folder / "orders.csv", f"id,item\n{number},pen\n")
        places.append(source.end())
    again = source_of(folder)
    csv(folder / "orders.csv", "id,item\n9,pen\n")
    events = next_events(again, places[2])
    assert [event.position for event in events] == [places[3], places[4], position(6)]
    again.acknowledge(places[3])
    assert [event.position for event in next_events(again, places[3])] == [places[4], position(6)]
    for gone in (places[2], position(7)):
        with pytest.raises(PositionLost):
            next_events(again, gone)
    with pytest.raises(PositionLost):
        next(again.transactions(None, threading.Event()))


def test_a_copy_stays_while_it_is_read(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    source.install()
    with source.reading([whole(source.relations["shop.orders"])]) as reading:
        csv(folder / "orders.csv", "id,item\n2,ink\n")
        source.acknowledge(source.end())
        assert [row for rows in reading.rows[0] for row in rows] == [(1, "pen")]
    size = source.retained()
    source.acknowledge(source.end())
    assert source.retained() < size
    assert source._copies.numbers() == [2]


def test_copies_share_what_did_not_change(folder: Path) -> None:
    (folder / "orders").mkdir()
    for number in range(4):
        write(folder / "orders" / f"{number}.parquet", arrow([(number, "pen")], ORDERS))
    source = source_of(folder)
    source.install()
    write(folder / "orders" / "2.parquet", arrow([(20, "pen")], ORDERS))
    source.install()
    assert len(list(source._copies._data.iterdir())) == 5


def test_removal_leaves_the_folder_alone(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    source.install()
    source.install()
    before = sorted(folder.iterdir())
    assert source.remove() == []
    assert not folder.with_name("workspace").exists()
    assert sorted(folder.iterdir()) == before
    assert source_of(folder).end() == position(1)


def test_a_table_that_joins_later(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    begin = source_of(folder).end()
    csv(folder / "people.csv", "id,name\n1,Ada\n")
    source = source_of(folder)
    people = source.relations["shop.people"]
    joined, bags = read(source, whole(people))
    assert (joined > begin, bags) == (True, [Counter({(1, "Ada"): 1})])
    csv(folder / "people.csv", "id,name\n1,Ada\n2,Bob\n")
    (transaction,) = next_events(source, begin)
    assert weights(transaction) == {("shop.people", (2, "Bob")): 1}


# --- what does not fit ---

DRIFTS: dict[str, tuple[str, str]] = {
    "other columns": ("number,thing\n1,pen\n", "it has none of the columns id, item"),
    "a text for a number": ("item,id\npen,one\n", "column id: Row #2: CSV conversion error"),
    "a short line": ("id,item\n1\n", "Expected 2 columns"),
    "nothing at all": ("", "no header"),
    "a column twice": ("id,item,id\n1,pen,1\n", "there twice"),
    "a key twice": ("id,item\n1,pen\n1,ink\n", "two rows have the key id = 1"),
    "a key that is NULL": ("id,item\n,pen\n", "no value in its key"),
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_drift_disrupts_its_relation_alone(folder: Path, drift: str) -> None:
    text, reason = DRIFTS[drift]
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    csv(folder / "people.csv", "id,name\n1,Ada\n")
    source = source_of(folder, "key=orders.id")
    begin = source.end()
    csv(folder / "orders.csv", text)
    broken = source.end()
    (disruption,) = next_events(source, begin)
    assert isinstance(disruption, Disruption)
    assert (disruption.relation, disruption.position) == ("shop.orders", broken)
    assert reason in disruption.reason
    assert "orders.csv" in disruption.reason or "key" in drift
    orders, people = source.relations["shop.orders"], source.relations["shop.people"]
    with pytest.raises(SourceUnfit, match=r"shop\.orders cannot be read"):
        read(source, whole(orders))
    assert any("shop.orders cannot be read" in finding.what for finding in source.doctor())
    csv(folder / "people.csv", "id,name\n1,Bob\n")
    (transaction,) = next_events(source, broken)
    assert len(transaction.changes) == 2
    csv(folder / "orders.csv", "id,item\n5,pen\n")
    assert next_events(source, transaction.position) == []
    fixed, bags = read(source, whole(orders), whole(people))
    assert bags == [Counter({(5, "pen"): 1}), Counter({(1, "Bob"): 1})]
    csv(folder / "orders.csv", "id,item\n6,pen\n")
    assert len(next_events(source, fixed)[0].changes) == 2


def test_a_column_more_is_passed_over_and_a_column_less_disrupts_those_who_read_it(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder, "key=orders.id")
    begin = source.end()
    csv(folder / "orders.csv", "id,item,price\n1,pen,2\n2,ink,3\n")
    (transaction,) = next_events(source, begin)
    assert weights(transaction) == {("shop.orders", (2, "ink")): 1}
    assert source.found["shop.orders"].columns == ("id", "item", "price")
    csv(folder / "orders.csv", "id\n1\n")
    disruption, transaction = next_events(source, transaction.position)
    assert (disruption.relation, disruption.columns) == ("shop.orders", frozenset({"item"}))
    assert "orders.csv: the column item is gone" in disruption.reason
    assert weights(transaction) == {
        ("shop.orders", (1, "pen")): -1,
        ("shop.orders", (2, "ink")): -1,
        ("shop.orders", (1, None)): 1,
    }


def test_a_table_that_is_gone_and_a_disk_that_is(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    csv(folder / "people.csv", "id,name\n1,Ada\n")
    source = source_of(folder)
    begin = source.end()
    (folder / "orders.csv").unlink()
    (event,) = next_events(source, begin)
    assert (event.relation, event.position) == ("shop.orders", position(2))
    assert event.reason.startswith("orders.csv is gone; ")
    (folder / "people.csv").unlink()
    for _ in range(2):
        with pytest.raises(SourceUnavailable) as lost:
            source.end()
        assert lost.value.detail == (
            f"{folder} does not have any of its tables: orders.csv (the table orders), people.csv (the table people)"
        )
        if folder.exists():
            folder.rmdir()
    assert [finding.fatal for finding in source.doctor()] == [True]
    with pytest.raises(SourceUnavailable):
        source_of(folder)


def test_a_parquet_file_that_is_none(folder: Path) -> None:
    write(folder / "orders.parquet", arrow([(1, "pen")], ORDERS))
    source = source_of(folder)
    begin = source.end()
    csv(folder / "orders.parquet", "PAR1 and then nothing")
    (event,) = next_events(source, begin)
    assert "orders.parquet" in event.reason


def test_types_that_are_kept_and_types_that_are_not(folder: Path) -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1], pa.uint64()),
            "ns": pa.array([1_000], pa.timestamp("ns", tz="Europe/Berlin")),
            "d": pa.array(["x"], pa.dictionary(pa.int8(), pa.string())),
            "a.b": pa.array([b"\x00\xff"], pa.large_binary()),
            "f": pa.array([1.5], pa.float32()),
        }
    )
    pq.write_table(table, folder / "kept.parquet")
    source = source_of(folder)
    kept = source.relations["shop.kept"]
    assert kept.types == ("DECIMAL(20, 0)", "TIMESTAMP", "STRING", "BINARY", "FLOAT")
    _, (bag,) = read(source, whole(kept))
    ((u, ns, d, b, f),) = bag
    assert (u, ns.isoformat(), d, b, f) == (2**64 - 1, "1970-01-01T00:00:00.000001+00:00", "x", b"\x00\xff", 1.5)
    assert read(source, matching(kept, "a.b", b"\x00\xff"))[1] == [bag]
    for column in (
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.decimal256(50)),
        pa.array([None], pa.null()),
    ):
        pq.write_table(pa.table({"odd": column}), folder / "refused.parquet")
        with pytest.raises(UnsupportedType, match="refused: column odd has the type"):
            source_of(folder)


@pytest.mark.parametrize("value", [pa.array([1], pa.timestamp("ns")), pa.array([-(2**30)], pa.date32())])
def test_values_that_cannot_be_kept(folder: Path, value: pa.Array) -> None:
    pq.write_table(pa.table({"odd": value}), folder / "things.parquet")
    source = source_of(folder)
    with pytest.raises(SourceUnfit, match=r"things.parquet: column odd"):
        read(source, whole(source.relations["shop.things"]))


def test_types_are_guessed_once_and_then_fixed(folder: Path) -> None:
    (folder / "a").mkdir()
    csv(folder / "a" / "1.csv", "n,zip,big,mixed,empty,at\n1,01234,99999999999999999999,1,,2020-01-01T00:00:00Z\n")
    csv(folder / "a" / "2.csv", "n,zip,big,mixed,empty,at\n2.5,5,1,x,,2020-01-01T00:00:00Z\n")
    source = source_of(folder)
    relation = source.relations["shop.a"]
    assert relation.types == ("DOUBLE", "STRING", "STRING", "STRING", "STRING", "TIMESTAMP")
    (guess,) = source.doctor()
    assert not guess.fatal
    assert "schema.a=n DOUBLE, zip STRING" in guess.fix
    source.install()
    assert source.doctor() == []
    csv(folder / "a" / "1.csv", "n,zip,big,mixed,empty,at\n")
    csv(folder / "a" / "2.csv", "n,zip,big,mixed,empty,at\n")
    assert source_of(folder).relations["shop.a"] == relation
    with pytest.raises(SourceUnfit, match="was registered as"):
        source_of(folder, "schema.a=" + quote("n BIGINT"))


# --- tables, names, options ---


def test_odd_names(folder: Path) -> None:
    csv(folder / "my orders (1).csv", "id,the item\n1,pen\n")
    csv(folder / "100%.csv", "id,`x\n1,pen\n")
    (folder / "ünï[x]*").mkdir()
    csv(folder / "ünï[x]*" / "a?b#c.csv", "id,item\n1,pen\n")
    source = source_of(folder, tables=None)
    assert set(source.relations) == {"shop.my orders (1)", "shop.100%", "shop.ünï[x]*"}
    for relation in source.relations.values():
        assert read(source, whole(relation))[1] == [Counter({(1, "pen"): 1})]


def test_formats_and_what_is_ignored(folder: Path) -> None:
    csv(folder / "orders.csv", "id;item\n1;pen\n")
    csv(folder / "orders.json", '{"id": 1}\n')
    csv(folder / "read.me", "x")
    (folder / "mixed").mkdir()
    csv(folder / "mixed" / "a.csv", "id\n1\n")
    csv(folder / "mixed" / "b.json", '{"id": 1}\n')
    source = source_of(folder, "delimiter=%3B", tables=("orders",))
    assert source.relations["shop.orders"].columns == ("id", "item")
    told = " / ".join(finding.what for finding in source.doctor() if not finding.fatal)
    assert "read.me is no table" in told
    assert "mixed has files of several formats" in told
    assert "orders.json is the table orders again" in told
    assert source_of(folder, "format=json").relations["shop.mixed"].columns == ("id",)


def test_an_empty_folder_is_an_empty_table_with_a_schema(folder: Path) -> None:
    (folder / "orders").mkdir()
    with pytest.raises(SourceUnfit, match="holds no table"):
        source_of(folder)
    source = source_of(folder, "schema.orders=" + quote("id BIGINT, item STRING"))
    begin = source.end()
    assert read(source, whole(source.relations["shop.orders"]))[1] == [Counter()]
    write(folder / "orders" / "a.parquet", arrow([(1, "pen")], ORDERS))
    (transaction,) = next_events(source, begin)
    assert weights(transaction) == {("shop.orders", (1, "pen")): 1}
    (folder / "orders" / "a.parquet").unlink()
    (transaction,) = next_events(source, transaction.position)
    assert weights(transaction) == {("shop.orders", (1, "pen")): -1}


MISTAKES: list[tuple[Callable[[Path], Any], type[Exception]]] = [
    (lambda folder: source_of(folder, "format=xml"), BadSourceUrl),
    (lambda folder: source_of(folder, "colour=red"), BadSourceUrl),
    (lambda folder: source_of(folder, "poll=soon"), BadSourceUrl),
    (lambda folder: source_of(folder, "key=id"), BadSourceUrl),
    (lambda folder: source_of(folder, "key=orders.nr"), BadSourceUrl),
    (lambda folder: source_of(folder, "schema.orders=id"), BadSourceUrl),
    (lambda folder: source_of(folder, "schema.orders=id%20STRUCT<a:INT>"), UnsupportedType),
    (lambda folder: source_of(folder, tables=("nothing",)), UnknownTable),
    (lambda folder: source_of(folder / "nowhere"), SourceUnfit),
    (lambda folder: source_of(folder, nothing=("id",)), BadSourceUrl),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_told(folder: Path, number: int) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    csv(folder / "people.csv", "id,name\n1,Ada\n")
    make, error = MISTAKES[number]
    with pytest.raises(error) as told:
        make(folder)
    assert told.value.hint


def test_the_stream_ends_when_it_is_told(folder: Path) -> None:
    csv(folder / "orders.csv", "id,item\n1,pen\n")
    source = source_of(folder)
    stop = threading.Event()
    stream = source.transactions(None, stop)
    assert next(stream) == Batch((), position(1))
    stop.set()
    assert list(stream) == []
    source.close()
