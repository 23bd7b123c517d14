"""The history format: what is read, what is written, and what is said about a file that is not one."""

import datetime
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.checker.history import History, State
from viewkeeper.checker.judge import check
from viewkeeper.checker.values import encode
from viewkeeper.errors import HistoryError, UnknownName
from viewkeeper.levels import Level
from viewkeeper.messages import Change, GlobalPart, Transaction, position
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation


def example() -> dict[str, Any]:
    """A complete history in its JSON form."""
    return {
        "view": "SELECT r1.k, r1.a FROM s1.r1",
        "relations": {
            "s1.r1": {
                "source": "s1",
                "columns": ["k", "a"],
                "types": ["BIGINT", "STRING"],
                "key": ["k"],
                "rows": [[[1, "x"], 1]],
            },
            "s2.r2": {"source": "s2", "columns": ["k"], "types": ["BIGINT"], "key": None, "rows": []},
        },
        "deliveries": [
            {
                "source": "s1",
                "position": position(1),
                "global_id": None,
                "changes": [["s1.r1", [2, "ÿ"], 1], ["s1.r1", [1, "x"], -1]],
            },
            {
                "source": "s2",
                "position": position(1),
                "global_id": "T",
                "changes": [["s2.r2", [5], 2]],
                "participants": ["s2"],
            },
        ],
        "states": [
            {"rows": [[[1, "x"], 1]], "vector": {"s1": position(0)}},
            {"rows": [[[2, "ÿ"], 1]], "vector": {"s1": position(1)}},
            {"rows": [[[2, "ÿ"], 1]], "vector": None},
        ],
        "meta": {"seed": 7},
    }


# --- reading and writing ---


def test_reading_and_writing_are_inverse() -> None:
    assert History.from_json(example()).to_json() == example()


def test_a_file_has_a_line_for_each_thing(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    history = History.from_json(example())
    history.save(path)
    assert History.load(path) == history
    assert json.loads(path.read_text(encoding="utf-8")) == example()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line.strip(" ,") for line in lines if "ÿ" in line] == [
        json.dumps(thing, ensure_ascii=False) for thing in (example()["deliveries"][0], *example()["states"][1:])
    ]
    again = tmp_path / "again.json"
    History.load(path).save(again)
    assert again.read_bytes() == path.read_bytes()


def test_a_history_from_parsed_parts() -> None:
    relation = Relation("s1.r1", "s1", ("k",), ("BIGINT",), ("k",))
    view = parse_view("SELECT k FROM s1.r1", {"s1.r1": relation})
    transaction = Transaction("s1", position(1), (Change("s1.r1", (4,), 1),))
    states = [State(MemoryZSet(("k",)), {}), State(MemoryZSet.of(("k",), (4,)), {"s1": position(1)})]
    history = History.of(view, {}, [transaction], states)
    assert history.definition is view
    assert check(history).level is Level.COMPLETE
    assert History.from_json(json.loads(json.dumps(history.to_json()))) == history


def test_types_and_optional_keys_may_be_left_out() -> None:
    history = History.from_json(
        {
            "view": "SELECT r.i, r.f, r.t, r.b, r.n FROM s.r",
            "relations": {
                "s.r": {"source": "s", "columns": ["i", "f", "t", "b", "n"], "rows": [[[1, 1, "a", True, None], 1]]}
            },
            "deliveries": [
                {"source": "s", "position": "1", "changes": [["s.r", [None, 2.5, None, False, None], 1]]},
            ],
            "states": [{"rows": []}],
            "something": "else",
        }
    )
    relation = history.relations["s.r"].relation
    assert relation.types == ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "STRING")
    assert relation.key is None
    assert history.deliveries[0].parts == ()
    assert history.states[0].vector is None
    assert history.meta == {}


VALUES = [
    ("BOOLEAN", True, True),
    ("SMALLINT", -3, -3),
    ("DOUBLE", 1.5, 1.5),
    ("STRING", "1.5", "1.5"),
    ("DECIMAL(10, 2)", "12.50", Decimal("12.50")),
    ("DATE", "2024-02-29", datetime.date(2024, 2, 29)),
    ("TIMESTAMP_NTZ", "2024-02-29T12:00:00", datetime.datetime(2024, 2, 29, 12)),
    ("TIMESTAMP", "2024-02-29T12:00:00+00:00", datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)),
    ("BINARY", "AAH/", b"\x00\x01\xff"),
    ("BIGINT", None, None),
]


def with_column(type: str, value: Any) -> dict[str, Any]:
    """A history of one relation of one column and one row, which the view shows."""
    return {
        "view": "SELECT r.v FROM s.r",
        "relations": {"s.r": {"source": "s", "columns": ["v"], "types": [type], "key": None, "rows": [[[value], 1]]}},
        "deliveries": [],
        "states": [{"rows": [[[value], 1]], "vector": {}}],
    }


@pytest.mark.parametrize(("type", "written", "value"), VALUES, ids=[type for type, _, _ in VALUES])
def test_values(type: str, written: Any, value: Any) -> None:
    history = History.from_json(with_column(type, written))
    (held,) = (row[0] for row, _ in history.relations["s.r"].rows.weights())
    assert held == value
    assert history.to_json() == with_column(type, written)
    assert check(history).level is Level.COMPLETE


@pytest.mark.parametrize("number", [12.5, "12.5", "12.50"])
def test_a_decimal_may_be_a_number(number: Any) -> None:
    history = History.from_json(with_column("DECIMAL(10, 2)", number))
    assert history.states[0].rows.weight((Decimal("12.50"),)) == 1


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("BIGINT", "1", 'expected a whole number, found "1"'),
        ("BIGINT", True, "expected a whole number, found true"),
        ("BIGINT", 1.0, "expected a whole number, found 1.0"),
        ("BOOLEAN", 1, "expected true or false, found 1"),
        ("STRING", 1, "expected a text, found 1"),
        ("DOUBLE", "1", 'expected a number, found "1"'),
        ("DOUBLE", float("nan"), "expected a finite number, found nan"),
        ("DOUBLE", float("inf"), "expected a finite number, found inf"),
        ("DOUBLE", 10**400, "expected a number that a DOUBLE can hold"),
        ("DECIMAL(4, 1)", "a lot", 'expected a decimal number, such as "12.50", found "a lot"'),
        ("DECIMAL(4, 1)", "NaN", 'expected a decimal number, such as "12.50", found "NaN"'),
        ("DATE", "yesterday", 'expected a date, found "yesterday"'),
        ("TIMESTAMP", 12, "expected a text, found 12"),
        ("TIMESTAMP", "noon", 'expected a time, found "noon"'),
        ("BINARY", "?", 'expected base64, found "?"'),
        ("STRING", {"a": 1}, "expected a text, found an object"),
    ],
)
def test_values_of_the_wrong_type(type: str, value: Any, expected: str) -> None:
    with pytest.raises(HistoryError) as raised:
        History.from_json(with_column(type, value))
    assert f'relations["s.r"].rows[0][0][0]: {expected}' in raised.value.detail


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), object()])
def test_values_that_have_no_json(value: Any) -> None:
    with pytest.raises(HistoryError, match="cannot be written into a history"):
        encode(value)


# --- what is not a history ---

Breakage = Callable[[dict[str, Any]], None]


def put(*path: str | int, value: Any) -> Breakage:
    """Replaces what the path leads to."""

    def breakage(history: Any) -> None:
        for step in path[:-1]:
            history = history[step]
        history[path[-1]] = value

    return breakage


def drop(*path: str | int) -> Breakage:
    """Removes what the path leads to."""

    def breakage(history: Any) -> None:
        for step in path[:-1]:
            history = history[step]
        del history[path[-1]]

    return breakage


CHANGE = ("deliveries", 0, "changes", 0)
R1 = ("relations", "s1.r1")

BROKEN: list[tuple[Breakage, str]] = [
    (drop("view"), 'the history: expected the key "view", found "relations", "deliveries", "states", "meta"'),
    (put("view", value=3), "view: expected a text, found 3"),
    (drop("relations"), 'the history: expected the key "relations"'),
    (put("relations", value=[]), "relations: expected an object, found a list of 0"),
    (put(*R1, value=None), 'relations["s1.r1"]: expected an object, found null'),
    (drop(*R1, "columns"), 'relations["s1.r1"]: expected the key "columns"'),
    (put(*R1, "columns", value=["k", 1]), 'relations["s1.r1"].columns[1]: expected a text, found 1'),
    (put(*R1, "columns", value=["k", "k"]), 'relations["s1.r1"].columns: expected one or more different names'),
    (put(*R1, "types", value=["BIGINT"]), 'relations["s1.r1"].types: s1.r1 has 2 columns, found 1 types'),
    (put(*R1, "types", 0, value="WHAT?"), 'relations["s1.r1"].types[0]: expected the name of a type, found "WHAT?"'),
    (put(*R1, "key", value=["z"]), 'relations["s1.r1"].key: expected columns of s1.r1, found z'),
    (put(*R1, "rows", 0, value=[1, "x"]), 'relations["s1.r1"].rows[0][0]: expected a list, found 1'),
    (put(*R1, "rows", 0, value=[[1, "x"]]), 'relations["s1.r1"].rows[0]: expected [row, count], found a list of 1'),
    (put(*R1, "rows", 0, 0, value=[1]), 'relations["s1.r1"].rows[0][0]: a row of s1.r1 has 2 values, found 1'),
    (put(*R1, "rows", 0, 1, value=-1), 'relations["s1.r1"].rows[0][1]: expected at least 1, found -1'),
    (put(*R1, "rows", 0, 1, value=0), 'relations["s1.r1"].rows[0][1]: expected a count other than 0, found 0'),
    (put(*R1, "rows", 0, 1, value=1.5), 'relations["s1.r1"].rows[0][1]: expected a whole number, found 1.5'),
    (drop("deliveries"), 'the history: expected the key "deliveries"'),
    (put("deliveries", value={}), "deliveries: expected a list, found an object"),
    (put("deliveries", 0, value=[]), "deliveries[0]: expected an object, found a list of 0"),
    (drop("deliveries", 0, "source"), 'deliveries[0]: expected the key "source"'),
    (put("deliveries", 0, "source", value="s9"), 'deliveries[0].source: s9 has no relation in "relations"'),
    (put("deliveries", 0, "position", value=1), "deliveries[0].position: expected a text, found 1"),
    (put("deliveries", 0, "global_id", value=1), "deliveries[0].global_id: expected a text, found 1"),
    (put("deliveries", 0, "participants", value="s1"), 'deliveries[0].participants: expected a list, found "s1"'),
    (put(*CHANGE, value=["s1.r1", [2, "y"]]), "deliveries[0].changes[0]: expected [relation, row, count]"),
    (put(*CHANGE, 0, value="s9.r1"), 'deliveries[0].changes[0]: relation s9.r1 is not in "relations"'),
    (put(*CHANGE, value=["s2.r2", [1], 1]), "deliveries[0].changes[0]: s2.r2 is a relation of s2, and s1 cannot"),
    (put(*CHANGE, 1, value=[2]), "deliveries[0].changes[0][1]: a row of s1.r1 has 2 values, found 1"),
    (put(*CHANGE, 2, value=0), "deliveries[0].changes[0]: expected a count other than 0"),
    (put(*CHANGE, 2, value="+"), 'deliveries[0].changes[0][2]: expected a whole number, found "+"'),
    (put(*CHANGE, 2, value=-1), "deliveries[0].changes[0]: [2, 'ÿ'] is deleted from s1.r1 1 times, and was there 0"),
    (drop("states"), 'the history: expected the key "states"'),
    (put("states", value=[]), "states: expected at least the initial state, found none"),
    (put("states", 1, value=3), "states[1]: expected an object, found 3"),
    (drop("states", 1, "rows"), 'states[1]: expected the key "rows"'),
    (put("states", 1, "rows", 0, 0, value=[2]), "states[1].rows[0][0]: a row of the view has 2 values, found 1"),
    (put("states", 1, "rows", 0, 1, value=0), "states[1].rows[0][1]: expected a count other than 0, found 0"),
    (put("states", 1, "vector", value=[]), "states[1].vector: expected an object, found a list of 0"),
    (put("states", 1, "vector", "s1", value=1), 'states[1].vector["s1"]: expected a text, found 1'),
    (put("meta", value=3), "meta: expected an object, found 3"),
]


@pytest.mark.parametrize(("breakage", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_broken_histories(breakage: Breakage, message: str) -> None:
    history = example()
    breakage(history)
    with pytest.raises(HistoryError) as raised:
        History.from_json(history)
    assert raised.value.detail.startswith(message)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (position(1), f"deliveries[2].position: s1 already has a transaction at {position(1)}"),
        (position(0), f"deliveries[2].position: expected a position of s1 after {position(1)}, found {position(0)}"),
    ],
)
def test_positions_increase(second: str, message: str) -> None:
    history = example()
    history["deliveries"].append({"source": "s1", "position": second, "changes": []})
    with pytest.raises(HistoryError) as raised:
        History.from_json(history)
    assert raised.value.detail == message


def test_a_delivery_with_several_parts_is_read_as_it_was_written() -> None:
    history = example()
    parts = [
        {"id": "T", "participants": ["s1", "s2"], "count": 2},
        {"id": "U", "participants": [], "count": 1},
    ]
    history["deliveries"].append(
        {"source": "s2", "position": position(2), "global_parts": parts, "merged": True, "changes": []}
    )
    read = History.from_json(history)
    assert read.deliveries[2].parts == (GlobalPart("T", ("s1", "s2"), 2), GlobalPart("U"))
    assert read.deliveries[2].merged
    assert History.from_json(read.to_json()) == read


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([{"participants": ["s1"]}], "deliveries[0].global_parts[0]"),
        ([{"id": "T", "count": 0}], "deliveries[0].global_parts[0].count"),
        ("T", "deliveries[0].global_parts: expected a list"),
    ],
)
def test_parts_that_cannot_be_read_are_named(parts: object, message: str) -> None:
    history = example()
    history["deliveries"][0]["global_parts"] = parts
    with pytest.raises(HistoryError, match=re.escape(message)):
        History.from_json(history)


def test_values_of_different_types_need_a_declaration() -> None:
    history = example()
    del history["relations"]["s1.r1"]["types"]
    history["relations"]["s1.r1"]["rows"].append([[1, 2], 1])
    with pytest.raises(HistoryError, match='the values of column "a" are not of one type'):
        History.from_json(history)


@pytest.mark.parametrize("value", [[], "history", 3, None, True, {}])
def test_other_json_is_not_a_history(value: object) -> None:
    with pytest.raises(HistoryError, match="the history: expected"):
        History.from_json(value)


def test_the_view_must_fit_the_relations() -> None:
    history = example()
    history["view"] = "SELECT k FROM s1.r7"
    with pytest.raises(UnknownName):
        History.from_json(history)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON: Expecting value"),
        (b"{", "not JSON: Expecting property name"),
        (b'{"view": NaN}', "not JSON: NaN is not a JSON value"),
        (b"[" * 100_000, "not JSON: maximum recursion depth exceeded"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[]", "the history: expected an object, found a list of 0"),
    ],
)
def test_unreadable_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "history.json"
    path.write_bytes(content)
    with pytest.raises(HistoryError) as raised:
        History.load(path)
    assert raised.value.detail.startswith(str(path))
    assert message in raised.value.detail


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"cannot read .*nowhere\.json: No such file or directory"):
        History.load(tmp_path / "nowhere.json")
    with pytest.raises(HistoryError, match=r"cannot read .*: Is a directory"):
        History.load(tmp_path)


def test_a_history_in_this_process_is_checked_too() -> None:
    relation = Relation("s1.r1", "s1", ("k",), ("BIGINT",))
    view = parse_view("SELECT k FROM s1.r1", {"s1.r1": relation})
    delete = Transaction("s1", position(1), (Change("s1.r1", (4,), -1),))
    with pytest.raises(HistoryError, match=r"deliveries\[0\]\.changes\[0\]: \[4\] is deleted"):
        History.of(view, {}, [delete], [State(MemoryZSet(("k",)))])
    with pytest.raises(HistoryError, match=r'relations\["s1\.r1"\]\.rows: expected \[4\] at least once'):
        History.of(view, {"s1.r1": MemoryZSet(("k",), [((4,), -1)])}, [], [State(MemoryZSet(("k",)))])
