"""Delta tables as a source: a transaction per version, readings of pinned versions."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from exactness import Recorded, matching, operand, read, whole
from lake_rows import TYPES, arrow, random_row

from viewkeeper.clock import Random, seeded
from viewkeeper.errors import BadSourceUrl, PositionLost, SourceUnavailable, SourceUnfit, UnknownTable, UnsupportedType
from viewkeeper.messages import Fetch, position
from viewkeeper.sources.base import Disruption, Request
from viewkeeper.sources.delta import DeltaSource, steps

FEED = {"delta.enableChangeDataFeed": "true"}
ORDERS = pa.schema([("id", pa.int64()), ("item", pa.string())])
VACUUM = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": False}


def no_spark() -> Any:
    raise AssertionError("this is small enough without Spark")


def source_of(folder: Path, query: str = "", *, tables: tuple[str, ...] | None = None) -> DeltaSource:
    request = Request("lake", f"delta://{quote(str(folder))}?poll=5ms&{query}".rstrip("&"), "w1", tables)
    return DeltaSource(request, no_spark, folder.with_name("workspace"))


def put(path: Path, *rows: tuple[Any, ...], mode: Any = "append", **options: Any) -> None:
    write_deltalake(path, arrow(list(rows), ORDERS), mode=mode, **options)


def next_events(source: DeltaSource, after: str | None) -> list[Any]:
    """What the stream gives behind a position, up to the end."""
    stop, end, events = threading.Event(), source.end(), []
    for batch in source.transactions(after, stop):
        events.extend(batch.events)
        if batch.upto >= end:
            stop.set()
    return events


def weights(event: Any) -> dict[tuple[Any, ...], int]:
    return {change.row: change.count for change in event.changes}


# --- exactness ---


def edit(path: Path, random: Random) -> None:
    """What somebody does to a table."""
    table = DeltaTable(path)
    rows = [random_row(random, random.randrange(12)) for _ in range(random.randrange(1, 6))]
    choice = random.randrange(9)
    if choice <= 1:
        write_deltalake(path, arrow(rows), mode="append")
    elif choice == 2:
        table.delete(f"id % 3 = {random.randrange(3)}")
    elif choice == 3:
        table.update(updates={"small": "small"}, predicate="id > 4")
    elif choice == 4:
        table.update(new_values={"name": random.choice(["", "x", "ä b"])}, predicate=f"id = {random.randrange(12)}")
    elif choice == 5:
        by_key = {row[0]: row for row in rows}
        merged = table.merge(arrow(list(by_key.values())), "s.id = t.id", source_alias="s", target_alias="t")
        merged.when_matched_update_all().when_not_matched_insert_all().execute()
    elif choice == 6:
        table.optimize.compact()
    elif choice == 7:
        write_deltalake(path, arrow(rows), mode="overwrite")
    elif table.version() > 0:
        table.restore(max(0, table.version() - 2))


@pytest.mark.parametrize("partition", [None, "name", "moment", "local"])
@pytest.mark.parametrize("feed", [False, True])
def test_every_reading_is_the_replay_of_the_versions(tmp_path: Path, feed: bool, partition: str | None) -> None:
    path, random = tmp_path / "things", seeded(3 + feed)
    options: Any = {"partition_by": [partition]} if partition else {}
    rows = [random_row(random, number) for number in range(6)]
    write_deltalake(path, arrow(rows), configuration=FEED if feed else {}, **options)
    source = source_of(path)
    things = source.relations["lake.things"]
    assert dict(zip(things.columns, things.types, strict=True)) == TYPES
    with Recorded(source) as recorded:
        for _ in range(14):
            edit(path, random)
            recorded.read(whole(things), matching(things, "id", 1, 2, 3), matching(things, "name", "a", "x", "ä b"))
        recorded.catch_up()
    recorded.check()
    assert int(recorded.answers[-1].position) == DeltaTable(path).version()
    assert not any(isinstance(event, Disruption) for event in recorded.events)
    assert (path / "_change_data").is_dir() == feed
    again = Counter[Any]()
    for event in next_events(source_of(path), recorded.start[0]):
        again.update({change.row: change.count for change in event.changes})
    assert again, "a new object tells the same from the same position"


def test_an_update_to_a_row_that_is_there_already(tmp_path: Path) -> None:
    # The change data feed of this one, as delta-rs writes it, does not tell the new row.
    path = tmp_path / "orders"
    put(path, (1, "pen"), (1, "ink"), (2, "ink"), configuration=FEED)
    source = source_of(path)
    begin = source.end()
    DeltaTable(path).update(new_values={"item": "ink"}, predicate="id = 1")
    (transaction,) = next_events(source, begin)
    assert weights(transaction) == {(1, "pen"): -1, (1, "ink"): 1}


def test_several_tables_take_numbered_steps(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    put(lake / "orders", (1, "pen"))
    put(lake / "people", (1, "Ada"), configuration=FEED)
    source = source_of(lake)
    orders, people = source.relations["lake.orders"], source.relations["lake.people"]
    random = seeded(5)
    joined = Fetch(
        (operand(orders, "o", 0), operand(people, "p", 1)),
        ("o.item", "p.item"),
        (("o.id", "p.id"),),
        ("p.id",),
        ((1,),),
    )
    beyond = Fetch(
        (operand(orders, "o", 0),),
        ("o.item",),
        (),
        ("o.id",),
        None,
        Fetch((operand(people, "p", 1),), ("p.id",), (), ("p.id",), ((1,), (2,))),
    )
    with Recorded(source) as recorded:
        for number in range(12):
            put(lake / random.choice(["orders", "people"]), (number % 3, f"{number}"))
            if random.random() < 0.3:
                DeltaTable(lake / "people").delete("id = 1")
            if random.random() < 0.5:
                recorded.read(whole(orders), whole(people), joined, beyond)
        recorded.catch_up()
        recorded.read(joined)
    recorded.check()
    places = [event.position for event in recorded.transactions]
    again = source_of(lake)
    assert [event.position for event in next_events(again, None)] == places
    middle = places[len(places) // 2]
    again.acknowledge(middle)
    assert [event.position for event in next_events(source_of(lake), middle)] == places[len(places) // 2 + 1 :]
    with pytest.raises(PositionLost):
        next_events(source_of(lake), position(999))


def test_versions_of_several_tables_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    put(lake / "a", (0, ""))
    put(lake / "b", (0, ""))
    source = source_of(lake)
    begin = source.end()
    for number, name in enumerate("abbaab", 1):
        put(lake / name, (number, name))
        log = lake / name / "_delta_log" / f"{DeltaTable(lake / name).version():020d}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = number * 1000
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    events = next_events(source, begin)
    assert [list(weights(event)) for event in events] == [[(n, name)] for n, name in enumerate("abbaab", 1)]
    assert not any(event.merged for event in events)


def test_steps_of_a_table_that_joins_later(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    put(lake / "a", (1, "x"))
    begin = source_of(lake).end()
    put(lake / "b", (2, "y"))
    put(lake / "global_tx", (2, "y"))
    source = source_of(lake)
    assert set(source.relations) == {"lake.a", "lake.b"}
    _, bags = read(source, whole(source.relations["lake.b"]))
    assert bags == [Counter({(2, "y"): 1})]
    put(lake / "b", (3, "z"))
    assert [weights(event) for event in next_events(source, begin)] == [{(3, "z"): 1}]


@pytest.mark.parametrize("late", [False, True])
def test_a_kill_while_a_step_is_recorded(tmp_path: Path, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    put(lake / "a", (1, "x"))
    put(lake / "b", (1, "x"))
    begin = source_of(lake).end()
    put(lake / "b", (2, "y"))
    real = steps.durable.create_exclusive

    def dies(*args: Any) -> Any:
        if late:
            real(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps.durable, "create_exclusive", dies)
        with pytest.raises(KeyboardInterrupt):
            source_of(lake).end()
    put(lake / "a", (3, "z"))
    events = next_events(source_of(lake), begin)
    assert [(event.position, len(event.changes)) for event in events] == [(position(1), 1), (position(2), 1)]
    assert [event.position for event in next_events(source_of(lake), begin)] == [position(1), position(2)]


def test_rows_that_only_move_are_no_change(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    for number in range(3):
        put(path, (number, "pen"))
    source = source_of(path)
    begin = source.end()
    DeltaTable(path).optimize.compact()
    DeltaTable(path).optimize.z_order(["id"])
    assert source.end() > begin
    assert next_events(source, begin) == []


def test_empty_tables_nulls_and_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    DeltaTable.create(path, schema=ORDERS)
    source = source_of(path)
    orders = source.relations["lake.orders"]
    begin, bags = read(source, whole(orders))
    assert bags == [Counter()]
    put(path, (1, None), (1, None), (None, ""))
    put(path, (1, None))
    DeltaTable(path).delete("id is null")
    events = next_events(source, begin)
    assert [weights(event) for event in events] == [{(1, None): 2, (None, ""): 1}, {(1, None): 1}, {(None, ""): -1}]
    assert read(source, whole(orders))[1] == [Counter({(1, None): 3})]


def test_files_from_before_a_column_was_added(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    put(path, (1, "pen"))
    table = DeltaTable(path)
    table.alter.add_columns([Field("price", PrimitiveType("double"))])
    source = source_of(path)
    assert read(source, whole(source.relations["lake.orders"]))[1] == [Counter({(1, "pen", None): 1})]


# --- disruptions ---


def test_a_column_that_is_added_is_no_concern_of_what_was_registered(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    put(lake / "orders", (1, "pen"))
    put(lake / "people", (1, "Ada"))
    source = source_of(lake)
    begin = source.end()
    DeltaTable(lake / "orders").alter.set_table_properties({"delta.appendOnly": "false"})
    assert next_events(source, begin) == [], "a property is no column"
    DeltaTable(lake / "orders").alter.add_columns([Field("price", PrimitiveType("double"))])
    put(lake / "people", (2, "Bob"))
    put(lake / "orders", (2, "ink"), schema_mode="merge")
    first, second = next_events(source, begin)
    assert weights(first) == {(2, "Bob"): 1}
    assert weights(second) == {(2, "ink"): 1}
    assert read(source, whole(source.relations["lake.orders"]))[1] == [Counter({(1, "pen"): 1, (2, "ink"): 1})]
    renewed = source_of(lake)
    assert renewed.relations["lake.orders"].columns == ("id", "item", "price")
    assert weights(next_events(renewed, position(0))[-1]) == {(2, "ink", None): 1}


def test_a_column_that_is_gone_disrupts_those_who_read_it(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    put(path, (1, "pen"))
    source = source_of(path)
    begin = source.end()
    write_deltalake(path, pa.table({"id": [1, 2]}), mode="overwrite", schema_mode="overwrite")
    first, second = next_events(source, begin)
    assert (first.relation, first.columns) == ("lake.orders", frozenset({"item"}))
    # Those who go on do not read the column: it is NULL before and after.
    assert weights(second) == {(2, None): 1}


@pytest.mark.parametrize("feed", [False, True])
def test_a_key_that_occurs_twice(tmp_path: Path, feed: bool) -> None:
    path = tmp_path / "orders"
    put(path, (1, "pen"), (2, "ink"), configuration=FEED if feed else {})
    source = source_of(path, "key=id")
    assert source.relations["lake.orders"].key == ("id",)
    begin = source.end()
    DeltaTable(path).update(new_values={"item": "cap"}, predicate="id = 1")
    put(path, (2, "cap"))
    put(path, (3, "cap"))
    DeltaTable(path).delete("item = 'ink'")
    put(path, (4, "cap"))
    changed, disruption, last = next_events(source, begin)
    assert weights(changed) == {(1, "pen"): -1, (1, "cap"): 1}
    assert (disruption.relation, disruption.position) == ("lake.orders", position(2))
    assert disruption.reason.startswith("two rows have the key id = 2; ")
    assert weights(last) == {(4, "cap"): 1}
    assert not any(finding.fatal for finding in source.doctor())
    put(path, (4, "pen"))
    assert [finding.what for finding in source.doctor() if finding.fatal] == [
        "lake.orders: two rows have the key id = 4"
    ]


# --- what the source no longer has ---


def test_vacuumed_files_and_a_cleaned_log(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    put(path, (1, "pen"))
    source = source_of(path)
    begin = source.end()
    put(path, (2, "ink"))
    put(path, (3, "cap"), mode="overwrite")
    held = source_of(path)
    with held.reading([whole(held.relations["lake.orders"])]) as reading:
        put(path, (4, "cap"), mode="overwrite")
        DeltaTable(path).vacuum(**VACUUM)
        with pytest.raises(SourceUnavailable, match="vacuumed"):
            list(reading.rows[0])
    with pytest.raises(PositionLost, match="a file that is gone"):
        next_events(source, begin)
    assert read(source, whole(source.relations["lake.orders"]))[1] == [Counter({(4, "cap"): 1})]
    DeltaTable(path).create_checkpoint()
    for version in range(3):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(PositionLost):
        next_events(source_of(path), begin)
    assert read(source_of(path), whole(source.relations["lake.orders"]))[1] == [Counter({(4, "cap"): 1})]


def test_a_table_that_was_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    put(path, (1, "pen"))
    put(path, (2, "pen"))
    source = source_of(path)
    begin = source.end()
    path.rename(tmp_path / "old")
    with pytest.raises(SourceUnavailable):
        source.end()
    put(path, (3, "pen"))
    with pytest.raises(PositionLost):
        source.end()
    with pytest.raises(PositionLost):
        next_events(source_of(path), begin)


def test_a_table_that_was_made_anew_and_has_come_as_far(tmp_path: Path) -> None:
    """Its versions have the numbers of those that were followed, and are others."""
    path = tmp_path / "orders"
    put(path, (1, "pen"))
    source = source_of(path)
    source.install()
    put(path, (2, "pen"))
    old = source.end()
    source.acknowledge(old)
    assert next_events(source_of(path), old) == []
    path.rename(tmp_path / "old")
    for number in range(5):
        put(path, (number, "ink"))
    for opened in (source, source_of(path)):
        with pytest.raises(PositionLost, match="recreated"):
            next_events(opened, old)
        with pytest.raises(PositionLost, match="recreated"):
            read(opened, whole(opened.relations["lake.orders"]))
    again = source_of(path)
    again.install()
    place, (rows,) = read(again, whole(again.relations["lake.orders"]))
    assert (len(rows), place > old) == (5, True)
    put(path, (9, "ink"))
    assert [weights(event) for event in next_events(again, place)] == [{(9, "ink"): 1}]
    with pytest.raises(PositionLost):
        next_events(source_of(path), old)


def test_one_of_several_tables_that_was_made_anew(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for name in ("orders", "people"):
        put(lake / name, (1, "pen"))
        put(lake / name, (2, "pen"))
    source = source_of(lake)
    source.install()
    old = source.end()
    (lake / "people").rename(tmp_path / "old")
    put(lake / "people", (3, "ink"))
    with pytest.raises(PositionLost, match="recreated"):
        next_events(source_of(lake), old)
    again = source_of(lake)
    again.install()
    put(lake / "people", (4, "ink"))
    place, (rows,) = read(again, whole(again.relations["lake.people"]))
    assert (len(rows), place > old) == (2, True)
    with pytest.raises(PositionLost):
        next_events(source_of(lake), old)
    assert next_events(source_of(lake), place) == []


# --- what is refused ---


def add_action(path: Path, **action: Any) -> None:
    """A commit by some other writer."""
    log = path / "_delta_log" / f"{DeltaTable(path).version() + 1:020d}.json"
    log.write_text(json.dumps(action) + "\n")


def features(*names: str) -> dict[str, Any]:
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}


@pytest.mark.parametrize(("feature", "fix"), [("deletionVectors", "REORG TABLE"), ("columnMapping", "ALTER TABLE")])
def test_features_that_are_not_known(tmp_path: Path, feature: str, fix: str) -> None:
    path = tmp_path / "orders"
    put(path, (1, "pen"))
    source = source_of(path)
    begin = source.end()
    add_action(path, protocol=features(feature))
    (event,) = next_events(source, begin)
    assert feature in event.reason
    with pytest.raises(SourceUnfit, match=feature):
        read(source, whole(source.relations["lake.orders"]))
    with pytest.raises(SourceUnfit, match=feature) as told:
        source_of(path)
    assert fix in told.value.hint
    assert source.doctor()[0].fatal


@pytest.mark.parametrize(
    "column", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([[("k", 1)]], pa.map_("string", "int64"))]
)
def test_nested_columns_are_refused(tmp_path: Path, column: pa.Array) -> None:
    write_deltalake(tmp_path / "odd", pa.table({"id": [1], "inside": column}))
    with pytest.raises(UnsupportedType, match="odd: column inside has the type"):
        source_of(tmp_path / "odd")


MISTAKES: list[tuple[Callable[[Path], Any], type[Exception]]] = [
    (lambda lake: source_of(lake, "colour=red"), BadSourceUrl),
    (lambda lake: source_of(lake, "key=id"), BadSourceUrl),
    (lambda lake: source_of(lake, "key=orders.nr"), BadSourceUrl),
    (lambda lake: source_of(lake, tables=("nothing",)), UnknownTable),
    (lambda lake: source_of(lake / "nowhere"), SourceUnfit),
    (lambda lake: source_of(lake / "people" / "_delta_log"), SourceUnfit),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_told(tmp_path: Path, number: int) -> None:
    for name in ("orders", "people"):
        put(tmp_path / "lake" / name, (1, "pen"))
    make, error = MISTAKES[number]
    with pytest.raises(error) as told:
        make(tmp_path / "lake")
    assert told.value.hint


def test_set_up_leaves_the_table_alone(tmp_path: Path) -> None:
    path = tmp_path / "my table [1]*"
    put(tmp_path / "plain", (1, "pen"))
    (tmp_path / "plain").rename(path)
    source = source_of(path)
    source.install()
    source.install()
    assert read(source, whole(source.relations["lake.my table [1]*"]))[1] == [Counter({(1, "pen"): 1})]
    assert source.doctor() == []
    assert source.remove() == []
    assert DeltaTable(path).version() == 0
    assert not path.with_name("workspace").exists()
    source.close()
