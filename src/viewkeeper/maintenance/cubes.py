"""Cubes that choose themselves: the points of a cube that are worth storing, and their creation.

    sizes     how many groups each point has, counted from a stored table that serves, else from the fact at its source
    choice    greedy, by the benefit of each point to all that come from it          (summary/greedy.py)
    creation  the top first, then the larger before the smaller, so that each is computed from one that is there;
              all of them in one commit, in which the tables of a cube that they replace go      (altering/swapping.py)

The top is always stored. If it joins tables, so is a hidden table over the fact alone, which everything comes from.
What MIN, MAX and COUNT(DISTINCT) need beside each table is not counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viewkeeper.errors import UsageError
from viewkeeper.lake.log.catalog import Catalog, Definition, families, find, free_name
from viewkeeper.maintenance.altering.swapping import refresh_joined, settle, swapping
from viewkeeper.maintenance.cube_sizes import CubeSizes, RunQuery, cube_sizes
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.refresh_mode import PROPERTY as REFRESH
from viewkeeper.sql.refresh_mode import refresh_of
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import SummaryView
from viewkeeper.summary.cube import Cube, HierarchyOf, read_cube
from viewkeeper.summary.cube_lattice import LatticeNode
from viewkeeper.summary.defined import defined
from viewkeeper.summary.greedy import choose, total_cost
from viewkeeper.summary.star_tables import ForeignKey, star_tables

if TYPE_CHECKING:
    from viewkeeper.lake.tables.held_commit import HeldCommit

Watch = Callable[[str], None]


@dataclass(frozen=True)
class CubeView:
    """A point that is stored, or is to be."""

    name: str
    attributes: tuple[str, ...]
    sql: str
    """the statement that creates it"""
    estimated_rows: int
    benefit: float
    """rows that need not be read any more, if every point is requested once; of the top 0"""
    share: float
    """the same as a share of what storing all points would save"""
    cost_after: float
    """rows that are read to answer every point once, with this one and those before it stored"""
    rows: int | None = None
    """that it has, once it is created"""


@dataclass(frozen=True)
class CubeChoice:
    """The points that were chosen, in that order, behind the top."""

    fact: str
    points: int
    exact: bool
    """whether sizes were counted, and not estimated to some percent"""
    views: tuple[CubeView, ...]
    hidden_rows: int
    """of the hidden table that the top comes from; 0 if there is none"""
    cost_of_top: float
    """rows that are read to answer every point once, with the top alone"""
    cost_of_all: float
    """the same with all points stored"""
    created: bool

    @property
    def space(self) -> int:
        """The rows of all tables."""
        return self.hidden_rows + sum(view.estimated_rows if view.rows is None else view.rows for view in self.views)


def make_cube(
    keeper: Keeper,
    snapshot: "HeldCommit",
    run_query: RunQuery,
    fact: str,
    dimensions: Sequence[str],
    measures: str,
    *,
    space_budget: int | None = None,
    count: int | None = None,
    name: str | None = None,
    refresh: str | None = None,
    replace_tables: Sequence[str] = (),
    dry_run: bool = False,
    watch: Watch | None = None,
) -> CubeChoice:
    """Choose the points of a cube that are worth storing, and create them unless it is a dry run."""
    _check_limits(space_budget, count)
    gone = _replaced(keeper.writer.catalog, replace_tables)
    tell = watch or (lambda line: None)
    relations = keeper.relations()
    sources = keeper.sources.definitions()
    foreign_keys = {one.name: one.foreign_keys for one in sources.values()}
    properties = {REFRESH: refresh} if refresh is not None else {}
    cube = checked_cube(
        fact, dimensions, measures, relations, foreign_keys, keeper.summaries.hierarchies.of, properties
    )
    prefix = name or cube.star.fact.alias
    tell(f"counting the groups of {len(cube.points)} points of the cube")
    sizes = cube_sizes(keeper, snapshot, run_query, cube)
    choice = _choice(cube, sizes, prefix, properties, space_budget, count)
    names = {view.name for view in gone}
    staying = {one: view for one, view in keeper.writer.catalog.items() if one not in names}
    for view in choice.views:
        free_name(staying, view.name)
    return choice if dry_run else _created(keeper, choice, gone, tell)


def _replaced(catalog: Catalog, names: Sequence[str]) -> list[Definition]:
    """The tables that a cube takes the place of."""
    found = {table.name: table for name in names for table in (families(catalog).get(name) or (find(catalog, name),))}
    for name, table in found.items():
        if SUMMARY not in table.properties:
            raise UsageError(f"{name} is no summary, so it is no table of a cube", "name tables of the cube before")
    return [*found.values()]


def checked_cube(
    fact: str,
    dimensions: Sequence[str],
    measures: str,
    relations: Mapping[str, Relation],
    foreign_keys: Mapping[str, Sequence[ForeignKey]],
    hierarchy: HierarchyOf,
    properties: Mapping[str, str],
) -> Cube:
    """The cube over these relations, by the foreign keys that their sources declare; an error if it cannot be kept."""
    declared = [key for source, keys in foreign_keys.items() for key in _foreign_keys(source, keys)]
    cube = read_cube(star_tables(fact, relations, declared), dimensions, measures, hierarchy)
    refresh_of(properties.items())
    for point in (cube.top, cube.points[-1]):
        parsed = parse_definition(cube.create(point, cube.star.fact.alias, properties), relations)
        assert isinstance(parsed, SummaryView)
        defined(parsed)
    return cube


def _check_limits(space_budget: int | None, count: int | None) -> None:
    if space_budget is not None and count is not None:
        raise UsageError("a space budget and a count are two limits", "give one of them")
    if space_budget is None and count is None:
        raise UsageError(
            "nothing says how much may be stored",
            "give count, the number of tables beside the top, or space_budget, the rows of all tables",
        )
    if count is not None and count < 0:
        raise UsageError(f"{count} tables cannot be stored", "give 0 or more")


def _foreign_keys(source: str, declared: Sequence[ForeignKey]) -> list[ForeignKey]:
    return [(f"{source}.{child.removeprefix(f'{source}.')}", parent) for child, parent in declared]


def _choice(
    cube: Cube,
    sizes: CubeSizes,
    prefix: str,
    properties: Mapping[str, str],
    space_budget: int | None,
    count: int | None,
) -> CubeChoice:
    top = cube.top
    of_top = sizes.rows[top] + sizes.hidden
    if space_budget is not None and space_budget < of_top:
        with_hidden = f", {sizes.hidden:,} of them in a hidden table" if sizes.hidden else ""
        raise UsageError(
            f"a budget of {space_budget:,} rows does not hold the top of the cube, {top}, which is always stored: "
            f"it has {of_top:,}{with_hidden}",
            f"give {of_top:,} or more, or leave out the dimension that has the most values",
        )
    # What does not come from the top itself is read from the hidden table.
    read = {**sizes.rows, top: sizes.hidden or sizes.rows[top]}
    room = None if space_budget is None else space_budget - of_top
    chosen = choose(cube.lattice, read, top, count=count, space_budget=room)
    before, best = total_cost(cube.lattice, read, [top]), total_cost(cube.lattice, read, cube.points)

    def view(point: LatticeNode, benefit: float, after: float) -> CubeView:
        saved = benefit / (before - best) if before > best else 0.0
        sql = cube.create(point, prefix, properties)
        return CubeView(cube.name(point, prefix), tuple(point.names), sql, sizes.rows[point], benefit, saved, after)

    views = [view(top, 0.0, before), *(view(one.node, one.benefit, one.cost_after) for one in chosen)]
    return CubeChoice(
        cube.star.fact.relation.name, len(cube.points), sizes.exact, tuple(views), sizes.hidden, before, best, False
    )


def _created(keeper: Keeper, choice: CubeChoice, gone: Sequence[Definition], tell: Watch) -> CubeChoice:
    first, *others = choice.views
    made: dict[str, int] = {}
    with keeper.alone():
        settle(keeper, gone)
        refresh_joined(keeper, parse_definition(first.sql, keeper.relations()))
        with swapping(keeper, gone) as world:
            for view in (first, *sorted(others, key=lambda one: -one.estimated_rows)):
                tell(f"creating {view.name} ({len(made) + 1} of {len(choice.views)})")
                world.create(view.sql)
                made[view.name] = world.writer.last.tables[view.name].rows
    return replace(choice, views=tuple(replace(one, rows=made[one.name]) for one in choice.views), created=True)
