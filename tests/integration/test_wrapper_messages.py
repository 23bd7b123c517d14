"""The messages of the multi-relation wrapper in live runs, counted: as many as documented, and as `explain` says."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from live_shop import MemoryStore
from postgres_server import PostgresServer
from postgres_tables import a_database

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.explaining.algorithm_words import questions
from viewkeeper.explaining.explained_join import sweeps
from viewkeeper.mediator.group_plan import GroupPlan
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.mediator.mediator import Mediator
from viewkeeper.mediator.report import GroupReport
from viewkeeper.messages import position
from viewkeeper.sources.base import Request, Source
from viewkeeper.sources.sqlite import SqliteSource
from viewkeeper.sql.parse import parse_view

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"
Place = tuple[Source, Callable[[str], object]]
"""A source, and how to write there."""


def documented() -> dict[tuple[int, int], tuple[int, int, int, int]]:
    """Relations and sources: queries without the wrapper, by the mediator, inside the sources, and in all with it."""
    table = PAGE.read_text(encoding="utf-8").partition("## The wrapper's")[2]
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", table, flags=re.MULTILINE)
    found = {(int(row[0]), int(row[1])): tuple(map(int, row[2:])) for row in rows}
    assert len(found) >= 4
    return found  # type: ignore[return-value]


@contextmanager
def sqlite_place(name: str, tables: list[str], folder: Path) -> Iterator[Place]:
    path = folder / f"{name}.db"
    user = sqlite3.connect(path, isolation_level=None)
    user.executescript(";".join(script(tables)))
    source = SqliteSource(Request(name, f"sqlite:///{path}", "w"))
    source.install()
    try:
        yield source, user.execute
    finally:
        source.close()
        user.close()


@contextmanager
def postgres_place(name: str, tables: list[str], server: PostgresServer) -> Iterator[Place]:
    with (
        a_database(server, ";".join(script(tables)), name) as database,
        database.installed(*tables, name=name) as source,
    ):
        yield source, database.execute


def script(tables: list[str]) -> list[str]:
    """A chain r1.b = r2.a, r2.b = r3.a, ...; rows 0 of all tables meet."""
    made = [f"CREATE TABLE {table} (k int PRIMARY KEY, a int, b int)" for table in tables]
    return made + [f"INSERT INTO {table} VALUES (0, 0, 0)" for table in tables]


@pytest.mark.parametrize(
    ("relations", "sources", "kind", "algorithm"),
    [
        *((*layout, kind, "sweep") for layout in documented() for kind in ("sqlite", "postgresql")),
        (6, 3, "sqlite", "batched-sweep"),
    ],
)
def test_messages_are_as_many_as_documented_and_explained(
    relations: int, sources: int, kind: str, algorithm: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """One insertion into each relation of a chain, each when the view has caught up with the one before."""
    each = relations // sources
    homes = {f"s{number // each + 1}": list[str]() for number in range(relations)}
    for number in range(relations):
        homes[f"s{number // each + 1}"].append(f"r{number + 1}")
    with ExitStack() as stack:
        places = {
            name: stack.enter_context(
                sqlite_place(name, tables, tmp_path)
                if kind == "sqlite"
                else postgres_place(name, tables, postgres_server)
            )
            for name, tables in homes.items()
        }
        catalog = {name: one for source, _ in places.values() for name, one in source.relations.items()}
        names = [f"{source}.{table}" for source, tables in homes.items() for table in tables]
        joined = [f"r{number}.b = r{number + 1}.a" for number in range(1, relations)]
        view = parse_view(
            f"CREATE MATERIALIZED VIEW v AS SELECT r1.k AS first, r{relations}.k AS last "
            f"FROM {', '.join(names)} WHERE {' AND '.join(joined)}",
            catalog,
        )
        how = Maintenance(view, algorithm)
        report = inserted(how, places, homes)
    _, by_mediator, inside, together = documented()[relations, sources]
    explained = [questions(algorithm, len(one.messages), one.messages_inside, sources)[0] for one in sweeps(how)]
    assert report.queries == report.messages == together == by_mediator + inside
    assert sum(explained) == together


def inserted(how: Maintenance, places: dict[str, Place], homes: dict[str, list[str]]) -> GroupReport:
    """A row that meets the others goes into every relation; what it took, of a view that is right at the end."""
    rows = {name: MemoryZSet(one.columns, [((0, 0, 0), 1)]) for name, one in how.view.relations.items()}
    plan = GroupPlan("g", (how,), {name: source.end() or position(0) for name, (source, _) in places.items()})
    store = MemoryStore({"v": JoinPlan(how.view).evaluate(rows)}, [plan])
    sources = {name: source for name, (source, _) in places.items()}
    with Mediator(sources, [plan], MemoryZSet, store) as mediator:
        for name, tables in homes.items():
            for table in tables:
                places[name][1](f"INSERT INTO {table} VALUES (1, 0, 0)")
                mediator.catch_up()
        (group,) = mediator.groups
        report = group.report()
    whole = {
        name: MemoryZSet(one.columns, [((k, 0, 0), 1) for k in (0, 1)]) for name, one in how.view.relations.items()
    }
    assert dict(store.contents["v"].weights()) == dict(JoinPlan(how.view).evaluate(whole).weights())
    return report
