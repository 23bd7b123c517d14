"""How many groups each point of a cube has: one Spark job.

    rows(p)  =  COUNT(DISTINCT attributes of p)  over  fact ⟕ dimensions,  where the dimensions of p are found

Fact and dimensions are read from stored tables that serve, else from their sources as they are now. If that is much,
the counts are estimates (HyperLogLog++, 5 percent).
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewkeeper.errors import DefinitionError, NotAnswered
from viewkeeper.maintenance.explained_query import explain_query
from viewkeeper.maintenance.images import images_of
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.maintenance.typed_rows import weighted_frame
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.cube import Cube
from viewkeeper.summary.cube_lattice import LatticeNode
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from viewkeeper.lake.tables.held_commit import HeldCommit

RunQuery = Callable[[str], "DataFrame"]
"""runs a query over what is stored"""

MOST_EXACT = 20_000_000
"""rows times points that are counted exactly"""


@dataclass(frozen=True)
class CubeSizes:
    """Rows of each point, and of the hidden table over the fact alone, if there will be one."""

    rows: Mapping[LatticeNode, int]
    hidden: int
    exact: bool


def cube_sizes(keeper: Keeper, snapshot: "HeldCommit", run_query: RunQuery, cube: Cube) -> CubeSizes:
    """Count the groups of all points, of the sources or of what is stored of them."""
    from viewkeeper.summary.propagate import TemporaryNames

    spark, fact = keeper.files.spark(), cube.star.fact.alias
    needed = {fact: tuple(dict.fromkeys((*cube.of_fact, *cube.of_hidden))), **_of_dimensions(cube)}
    with ExitStack() as stack:
        frames, fact_rows = _frames(keeper, snapshot, run_query, cube, needed, stack)
        names = stack.enter_context(TemporaryNames(spark))
        exact = fact_rows * len(cube.points) <= MOST_EXACT
        counted = "COUNT(DISTINCT {})" if exact else "approx_count_distinct({})"
        items = [counted.format(_groups(cube, point)) for point in cube.points if point.attributes]
        if cube.of_hidden:
            items.append(counted.format(_struct([(fact, column) for column in cube.of_hidden])))
        text = f"SELECT {', '.join(items)} FROM {names.name(frames[fact])} AS {quoted(fact)}"
        for table in cube.star.tables.values():
            if table.alias in needed and table.before is not None:
                same = [_pair(table.before, own, table.alias, key) for own, key in table.on]
                text += (
                    f"\nLEFT JOIN {names.name(frames[table.alias])} AS {quoted(table.alias)} ON {' AND '.join(same)}"
                )
        found = [int(value) for value in spark.sql(text).collect()[0]]
    hidden = found.pop() if cube.of_hidden else 0
    sizes = iter(found)
    return CubeSizes({point: next(sizes) if point.attributes else 1 for point in cube.points}, hidden, exact)


def _of_dimensions(cube: Cube) -> dict[str, tuple[str, ...]]:
    """The columns of each dimension that are needed: its key, attributes, and references to others."""
    aliases = cube.tables(LatticeNode(tuple(cube.attributes)))
    columns: dict[str, list[str]] = {
        alias: [key for _, key in cube.star.tables[alias].on] for alias in cube.star.tables if alias in aliases
    }
    for column in cube.attributes.values():
        if column.table in columns:
            columns[column.table].append(column.column)
    for alias in aliases:
        table = cube.star.tables[alias]
        if table.before in columns:
            columns[table.before] += [own for own, _ in table.on]
    return {alias: tuple(dict.fromkeys(found)) for alias, found in columns.items()}


def _frames(
    keeper: Keeper,
    snapshot: "HeldCommit",
    run_query: RunQuery,
    cube: Cube,
    needed: Mapping[str, tuple[str, ...]],
    stack: ExitStack,
) -> "tuple[dict[str, DataFrame], int]":
    """The rows of each table, and how many those of the fact are."""
    frames: dict[str, DataFrame] = {}
    at_sources: dict[str, Relation] = {}
    fact_rows = 0
    for alias, columns in needed.items():
        relation = cube.star.tables[alias].relation
        stored = _stored(snapshot, run_query, relation, columns)
        if stored is None:
            at_sources[alias] = relation
        else:
            frames[alias], rows = stored
            fact_rows = rows if alias == cube.star.fact.alias else fact_rows
    if at_sources:
        wanted = {relation.name: relation for relation in at_sources.values()}
        contents, _ = stack.enter_context(images_of(keeper, wanted, ""))
        for alias, relation in at_sources.items():
            frames[alias] = weighted_frame(keeper.files.spark(), contents[relation.name], relation)
            if alias == cube.star.fact.alias:
                fact_rows = contents[relation.name].size()
    return frames, fact_rows


def _stored(
    snapshot: "HeldCommit", run_query: RunQuery, relation: Relation, columns: tuple[str, ...]
) -> "tuple[DataFrame, int] | None":
    """The distinct rows of a table from what is stored, and how many rows are read for it; None if nothing serves."""
    listed = ", ".join(map(quoted, columns)) or "1 AS one"
    sql = f"SELECT DISTINCT {listed} FROM {'.'.join(map(quoted, relation.name.split('.')))}"
    try:
        told = explain_query(snapshot, sql)
    except (NotAnswered, DefinitionError):
        return None
    tables = snapshot.record.tables
    rows = sum(tables[part.table].rows for part in told.parts) + sum(tables[view].rows for view in told.views)
    return run_query(sql), rows


def _groups(cube: Cube, point: LatticeNode) -> str:
    """What is different for each group of a point; NULL where one of its tables has no row."""
    columns = [(cube.attributes[label].table, cube.attributes[label].column) for label in point.names]
    keys = [(alias, cube.star.tables[alias].on[0][1]) for alias in sorted(cube.tables(point))]
    found = " AND ".join(f"{quoted(alias)}.{quoted(key)} IS NOT NULL" for alias, key in keys)
    return f"IF({found}, {_struct(columns)}, NULL)" if found else _struct(columns)


def _struct(columns: list[tuple[str, str]]) -> str:
    fields = [f"'c{place}', {quoted(alias)}.{quoted(column)}" for place, (alias, column) in enumerate(columns)]
    return f"named_struct({', '.join(fields)})"


def _pair(table: str, own: str, alias: str, key: str) -> str:
    return f"{quoted(table)}.{quoted(own)} = {quoted(alias)}.{quoted(key)}"
