"""'storage' = 'auto': which storage the facts lead to, why, and where the facts come from. Without Spark."""

from dataclasses import replace

import pytest

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.lake.log.record import GroupState, Record
from viewkeeper.lake.log.source_files import SourceDefinition
from viewkeeper.planner.self_maintained.automatic import BUSY, SMALL_FAN_OUT, WIDE, JoinFacts, RelationFacts, decide
from viewkeeper.planner.self_maintained.change_rates import SHORTEST, transactions_per_hour
from viewkeeper.planner.self_maintained.choosing import storage_for
from viewkeeper.planner.self_maintained.facts import bytes_of, facts_of, with_sizes
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View
from viewkeeper.storage.self_maintained import STORAGES

LEFT = RelationFacts("a.r", "a", "sqlite", True, (), row_bytes=24, pointer_bytes=16, rows=1000)
RIGHT = replace(LEFT, name="b.s", source="b", kind="postgres")
BY_KEYS = JoinFacts((LEFT, RIGHT), rows=1000)


def given(left: dict[str, object] | None = None, **view: object) -> JoinFacts:
    """A join by keys of two databases, but for what is given."""
    relation = replace(LEFT, **(left or {}))  # type: ignore[arg-type]
    return replace(BY_KEYS, relations=(relation, RIGHT), **view)  # type: ignore[arg-type]


SCANNED = {"scanned_by": ("r.a",)}
FILES = {"kind": "files", "quick": False}
CASES = {
    "by keys": (given(), "remote", "looked up by its key"),
    "rates unknown": (given(), "remote", "how often a and b change is not known yet"),
    "one rate known": (given({"transactions_per_hour": 7.0}), "remote", "7 transactions an hour; how often b changes"),
    "calm": (given({"transactions_per_hour": BUSY}), "remote", "3,600 transactions an hour"),
    "busy": (given({"transactions_per_hour": BUSY + 1}), "matview", "3,601 transactions an hour"),
    "a scan": (given(SCANNED), "matview", "a.r would be looked up by r.a, which is not its key"),
    "files": (given(FILES), "matview", "source a is a folder of files: each question to it takes a job"),
    "a lake": (given({"kind": "delta", "quick": False}), "matview", "source a is a Delta lake"),
    "some fan-out": (given(SCANNED, rows=1200), "matview", "1.2 rows for each of its largest relation"),
    "more fan-out": (given(SCANNED, rows=1300), "viewcache", "1.3 rows for each of its largest relation"),
    "fan-out of the largest": (given({**SCANNED, "rows": 5000}, rows=6000), "matview", "1.2 rows"),
    "size of a relation unknown": (given({**SCANNED, "rows": None}), "viewcache", "sizes are not known"),
    "size of the view unknown": (given(SCANNED, rows=None), "viewcache", "it becomes a matview"),
    "empty": (given({**SCANNED, "rows": 0}, rows=0), "matview", "0 rows for each"),
    "wide": (given({**SCANNED, "row_bytes": 200}), "partial-operand", "rows are wide, 7.0 times"),
    "wide, with fan-out": (given({**SCANNED, "row_bytes": 200}, rows=9000), "partial-operand", "rows are wide"),
    "outer": (given(outer=True), "outerjoin", "outer join"),
    "outer, without equalities": (given(FILES, outer=True, equalities=False), "outerjoin", "outer join"),
    "no equality": (given(FILES, equalities=False), "remote", "no equality"),
    "over views": (given(SCANNED, over_views=True), "remote", "it reads views"),
    "an algorithm": (given(SCANNED, algorithm="strobe"), "remote", "it asks for strobe"),
    "one table": (JoinFacts((replace(LEFT, **FILES),)), "remote", "over one table"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CASES)
def test_decisions(name: str) -> None:
    facts, storage, because = CASES[name]
    decision = decide(facts)
    assert decision.storage == storage
    assert because in "; ".join(decision.reasons)


def test_thresholds_are_where_they_are_said_to_be() -> None:
    edge = given({**SCANNED, "row_bytes": WIDE * 32 - 24}, rows=round(1000 * SMALL_FAN_OUT))
    assert decide(edge).storage == "partial-operand"
    narrower = given({**SCANNED, "row_bytes": WIDE * 32 - 25}, rows=round(1000 * SMALL_FAN_OUT))
    assert decide(narrower).storage == "matview"


def test_what_is_excluded_is_never_chosen() -> None:
    facts, left = given(SCANNED), set(STORAGES)
    assert decide(facts, frozenset({"matview"})).storage == "viewcache"
    assert "matview would be for that" in decide(facts, frozenset({"matview"})).reasons[-1]
    while left:
        chosen = decide(facts, frozenset(STORAGES) - left).storage
        assert chosen in left
        left.remove(chosen)
    assert decide(facts, frozenset(STORAGES)).storage == "remote"


# Facts

ORDERS = Relation("shop.orders", "shop", ("id", "person", "note"), ("BIGINT", "BIGINT", "STRING"), ("id",))
PEOPLE = Relation("crm.people", "crm", ("id", "name", "card"), ("BIGINT", "STRING", "BIGINT"), ("id",))
LOGS = Relation("lake.logs", "lake", ("id", "at"), ("BIGINT", "TIMESTAMP"), None)
RELATIONS = {one.name: one for one in (ORDERS, PEOPLE, LOGS)}


def source(name: str, url: str) -> SourceDefinition:
    return SourceDefinition(name, url, None, {}, {}, True, False)


SOURCES = {
    "shop": source("shop", "sqlite:///shop.db"),
    "crm": source("crm", "postgresql://h/crm"),
    "lake": source("lake", "delta:///lake"),
}


def facts(select: str, **rates: float) -> JoinFacts:
    return facts_of(parse_view(select, RELATIONS), SOURCES, rates)


def test_a_foreign_key_is_looked_up_by_key_one_way_only() -> None:
    by = {
        one.name: one for one in facts("SELECT o.id FROM shop.orders o JOIN crm.people p ON o.person = p.id").relations
    }
    assert by["crm.people"].scanned_by == ()
    assert by["shop.orders"].scanned_by == ("o.person",)


def test_keys_on_both_sides_with_more_conditions() -> None:
    found = facts("SELECT o.id FROM shop.orders o JOIN crm.people p ON o.id = p.id AND o.person = p.card", shop=5.0)
    assert [one.scanned_by for one in found.relations] == [(), ()]
    assert [one.transactions_per_hour for one in found.relations] == [5.0, None]
    assert decide(found).storage == "remote"


def test_a_relation_without_a_key_is_scanned_by_whatever_is_compared() -> None:
    found = facts("SELECT o.id FROM shop.orders o JOIN lake.logs l ON o.id = l.id")
    logs = next(one for one in found.relations if one.name == "lake.logs")
    assert (logs.kind, logs.quick, logs.scanned_by) == ("delta", False, ("l.id",))
    assert decide(found).storage != "remote"


def test_bytes_are_those_of_the_columns_that_are_needed() -> None:
    orders, people = facts("SELECT o.note FROM shop.orders o JOIN crm.people p ON o.person = p.id").relations
    assert (orders.row_bytes, orders.pointer_bytes) == (8 + 8 + 24, 16)
    assert (people.row_bytes, people.pointer_bytes) == (8, 8)


@pytest.mark.parametrize(
    ("type", "size"), [("INT", 4), ("DECIMAL(10, 2)", 16), ("string", 24), ("ARRAY<INT>", 64), ("TIMESTAMP", 8)]
)
def test_bytes_of_types(type: str, size: int) -> None:
    assert bytes_of(type) == size


def test_sizes_count_joined_rows_and_not_what_is_shown_of_them() -> None:
    view = parse_view("SELECT 1 AS one FROM shop.orders o JOIN crm.people p ON o.person = p.card", RELATIONS)
    assert isinstance(view, View)
    orders = MemoryZSet(ORDERS.columns, [((n, 7, "x"), 1) for n in range(4)])
    people = MemoryZSet(PEOPLE.columns, [((n, "y", 7), 1) for n in range(3)])
    found = with_sizes(facts_of(view, SOURCES, {}), view, {"shop.orders": orders, "crm.people": people})
    assert [one.rows for one in found.relations] == [4, 3]
    assert (found.rows, found.fan_out) == (12, 3.0)
    assert decide(found).storage == "viewcache"


# The property


def created(properties: str, join: str = "JOIN") -> tuple[str, tuple[str, ...]]:
    sql = (
        f"CREATE MATERIALIZED VIEW v {properties} AS SELECT o.id FROM shop.orders o {join} crm.people p "
        "ON o.person = p.card"
    )
    view = parse_definition(sql, RELATIONS)
    decision = storage_for(view, SOURCES, {})  # type: ignore[arg-type]
    return decision.storage, decision.reasons


def test_what_is_asked_for_is_what_is_got() -> None:
    assert created("") == ("remote", ("nothing else was requested",))
    assert created("TBLPROPERTIES ('storage' = 'remote')") == ("remote", ("it was requested",))
    assert created("TBLPROPERTIES ('storage' = 'partial-join')") == ("partial-join", ("it was requested",))
    assert created("", "LEFT JOIN")[0] == "outerjoin"
    assert created("TBLPROPERTIES ('storage' = 'auto')", "FULL JOIN")[0] == "outerjoin"
    assert created("TBLPROPERTIES ('storage' = 'auto', 'algorithm' = 'sweep')")[0] == "remote"


@pytest.mark.parametrize(
    ("properties", "join", "error", "says"),
    [
        ("'storage' = 'none'", "JOIN", DefinitionError, "is 'none'"),
        ("'storage' = 'remote'", "LEFT JOIN", DefinitionError, "outer join"),
        ("'storage' = 'matview', 'algorithm' = 'sweep'", "JOIN", UnsupportedClause, "property algorithm"),
        ("'algorithm' = 'sweep'", "LEFT JOIN", UnsupportedClause, "property algorithm"),
    ],
)
def test_what_does_not_fit_together(properties: str, join: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        created(f"TBLPROPERTIES ({properties})", join)


# Change rates


def commit(number: int, second: int, **steps: int) -> Record:
    """A commit with so many states for each source, at a second of an hour."""
    time = f"2024-01-01T00:{second // 60:02}:{second % 60:02}+00:00"
    moved = tuple({name: f"{number}.{n}"} for name, count in steps.items() for n in range(count))
    return Record(number, time, "w", 0, groups={"g": GroupState({"a": "0", "b": "0"}, number, moved)})


def test_rates_are_transactions_after_the_first_commit() -> None:
    rates = transactions_per_hour([commit(0, 0, a=50), commit(1, 600, a=3), commit(2, 1200, a=4, b=1)])
    assert rates == {"a": 21.0, "b": 3.0}


@pytest.mark.parametrize(
    "records", [[], [commit(0, 0, a=5)], [commit(0, 0, a=5), commit(1, int(SHORTEST) - 1, a=5)]], ids=len
)
def test_what_was_not_seen_for_long_has_no_rate(records: list[Record]) -> None:
    assert transactions_per_hour(records) == {}


def test_of_two_groups_the_one_that_saw_more_counts() -> None:
    first, second = commit(0, 0), commit(1, 1800, a=2)
    other = GroupState({"a": "0"}, 1, ({"a": "1"}, {"a": "2"}, {"a": "3"}))
    records = [replace(one, groups={**one.groups, "h": other}) for one in (first, second)]
    assert transactions_per_hour(records) == {"a": 6.0, "b": 0.0}
