"""How a view is maintained, as data: what `plan_view` decides, and creating, explaining and planning carry out.

    a plan  =  nodes in topological order;  each is maintained by its method, at the level of the plan, in one group

There is a class for each way in which a view can be maintained: with it go the functions that create and explain it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewkeeper.levels import Level
from viewkeeper.mediator.choice import promised
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.planner.self_maintained.kept_view import KeptView
from viewkeeper.planner.summaries.lattice import Facts
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.tree import Scan
from viewkeeper.sql.view import View
from viewkeeper.sql.view_keys import key_of_view

if TYPE_CHECKING:
    from viewkeeper.planner.composed.composed_view import ComposedView

SUMMARY_DELTA = "summary-delta"


@dataclass(frozen=True)
class Node:
    """One operator of a plan, with its state."""

    name: str
    operator: str
    """join, outer join, or aggregate"""
    inputs: tuple[str, ...]
    columns: tuple[str, ...]
    key: tuple[str, ...] | None
    method: str
    """the algorithm that queries the sources, the storage that answers instead of them, or summary-delta"""
    why: tuple[str, ...]
    """the reasons for this method"""
    tables: tuple[str, ...]
    """what is stored for it"""


@dataclass(frozen=True)
class QueriedJoin:
    """An inner join that an algorithm maintains by querying the sources; or one of views, which follows them."""

    definition: View
    group: str
    how: Maintenance
    reasons: tuple[str, ...]
    """why the sources are queried"""

    @property
    def level(self) -> Level:
        return promised(self.how)

    @property
    def nodes(self) -> tuple[Node, ...]:
        view = self.definition
        key = key_of_view(view)
        return (
            Node(
                view.name,
                "join",
                tuple(view.relations),
                view.columns,
                None if key is None else tuple(key),
                self.how.algorithm,
                self.reasons,
                (view.name,),
            ),
        )


@dataclass(frozen=True)
class StoredJoin:
    """A join that is maintained by what is stored for it: no source is queried."""

    definition: View | OuterJoinView
    kept: KeptView
    reasons: tuple[str, ...]
    rates: Mapping[str, float] = field(default_factory=dict)
    """transactions per hour of each source, if the choice of the storage is left to viewkeeper"""

    @property
    def group(self) -> str:
        return self.kept.group

    @property
    def level(self) -> Level:
        return self.kept.level

    @property
    def nodes(self) -> tuple[Node, ...]:
        view, kept = self.definition, self.kept
        operator = "outer join" if isinstance(view, OuterJoinView) else "join"
        return (
            Node(
                view.name,
                operator,
                tuple(view.relations),
                view.columns,
                None,
                kept.storage_name,
                self.reasons,
                kept.all_tables,
            ),
        )


@dataclass(frozen=True)
class PlannedSummary:
    """A summary, or a family of them, in a lattice that is there or begins with it."""

    definition: SummaryView | Family
    group: str
    """its lattice"""
    facts: Facts
    parsed: SummaryView | Family
    """the definition over the columns that the lattice follows"""
    relations: Mapping[str, Relation]
    """the relations with these columns"""

    @property
    def level(self) -> Level:
        complete = dict(self.definition.properties).get("consistency") == "complete"
        return Level.COMPLETE if complete else Level.STRONG

    @property
    def views(self) -> tuple[SummaryView, ...]:
        parsed = self.parsed
        return tuple(member.view for member in parsed.members) if isinstance(parsed, Family) else (parsed,)

    @property
    def nodes(self) -> tuple[Node, ...]:
        inputs = (self.facts.feed, *self.facts.copies.values())
        return tuple(
            Node(view.name, "aggregate", inputs, view.columns, None, SUMMARY_DELTA, (), (view.name,))
            for view in self.views
        )


@dataclass(frozen=True)
class PlannedQuery:
    """Any other query: a plan of operators over tables of sources and over views."""

    view: "ComposedView"

    @property
    def definition(self) -> "ComposedView":
        return self.view

    @property
    def group(self) -> str:
        return self.view.group

    @property
    def level(self) -> Level:
        return self.view.level

    @property
    def nodes(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for number, placed in enumerate(self.view.plan.nodes):
            operator = placed.node.operator
            inputs = tuple(found[place].name for place in placed.inputs)
            found.append(
                Node(
                    f"{self.view.name}.{number}",
                    type(operator).__name__.lower(),
                    (operator.relation,) if isinstance(operator, Scan) else inputs,
                    tuple(column.name for column in operator.columns),
                    None,
                    placed.node.rule,
                    (),
                    tuple(self.view.table_of(table.name) for table in placed.node.tables),
                )
            )
        return tuple(found)


ViewPlan = QueriedJoin | StoredJoin | PlannedSummary | PlannedQuery
