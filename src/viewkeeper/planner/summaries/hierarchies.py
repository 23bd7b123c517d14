"""Dimension hierarchies as they are declared with sources and views, and checked on the data.

    storeID → city → region       every store is in one city, every city in one region

A declared hierarchy lets a summary-delta carry the region of its city for another one that needs it, and lets a summary
by region be answered from one by city. A hierarchy is a partial order: several chains may be declared of one table. A
view inherits what it shows of the hierarchies of the tables that it reads; one that is loaded by commits of its own
declares it with its properties: {"hierarchy": ["storeID", "city", "region"]}, or a list of such chains.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import DefinitionError
from viewkeeper.lake.log.catalog import Catalog
from viewkeeper.lake.log.source_files import SourceDefinition
from viewkeeper.planner.view_properties import HIERARCHY
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View
from viewkeeper.summary.hierarchies import Chains, Declared, Hierarchy, chains_of
from viewkeeper.summary.star import Dimension


class DeclaredHierarchies:
    """The hierarchies of all dimensions, by relation."""

    def __init__(self, sources: Mapping[str, SourceDefinition], catalog: Catalog) -> None:
        self._by_relation = {
            name: Hierarchy.of(name, chains)
            for name, view in catalog.items()
            if (chains := _steps(view.properties.get(HIERARCHY) or ()))
        } | {
            f"{source.name}.{table.removeprefix(f'{source.name}.')}": Hierarchy.of(table, chains)
            for source in sources.values()
            for table, declared in source.hierarchies.items()
            if (chains := _steps(declared))
        }

    def inherited(self, view: View) -> list[list[str]] | None:
        """What a view shows of the hierarchies of the tables that it reads, as chains."""
        shown = {flat: column.name for column in view.output if (flat := column.expression.is_column)}
        chains: list[list[str]] = []
        for operand in view.operands:
            if (hierarchy := self.of(operand.relation.name)) is not None:
                names = {c: shown[flat] for c in hierarchy.attributes if (flat := f"{operand.alias}.{c}") in shown}
                chains += map(list, hierarchy.shown(names))
        return chains or None

    def of(self, relation: str) -> Hierarchy | None:
        return self._by_relation.get(relation)

    def determined(self, dimension: Dimension, columns: frozenset[str]) -> frozenset[str]:
        """The columns of a dimension that these ones determine."""
        hierarchy = self.of(dimension.relation.name)
        return hierarchy.closure(columns) if hierarchy is not None and columns else frozenset()

    def check(self, relation: Relation, rows: pa.Table) -> None:
        """DefinitionError if the rows of a dimension contradict its hierarchy."""
        hierarchy = self.of(relation.name)
        for above, below in hierarchy.dependencies if hierarchy is not None else ():
            for column in (above, below):
                if column not in relation.columns:
                    raise DefinitionError(
                        f"the hierarchy of {relation.name} names {column}, which it has not",
                        f"its columns are {', '.join(relation.columns)}",
                    )
            pairs = rows.select([above, below]).group_by([above, below], use_threads=False).aggregate([])
            pairs = pairs.filter(pc.is_valid(pairs[above]))
            several = pairs.group_by(above, use_threads=False).aggregate([(below, "count", _ALL), (below, "list")])
            wrong = several.filter(pc.greater(several[f"{below}_count"], 1))
            if wrong.num_rows:
                value, found = wrong[above][0].as_py(), sorted(map(str, wrong[f"{below}_list"][0].as_py()))
                both = " and ".join(found[:2])
                raise DefinitionError(
                    f"{relation.name} contradicts its hierarchy: {above} {value} has the {below} {both}",
                    "correct the rows, or withdraw the hierarchies of the table: add-source --hierarchy TABLE=",
                )


def _steps(declared: Declared) -> Chains:
    """The chains that say anything."""
    return tuple(chain for chain in chains_of(declared) if len(chain) > 1)


_ALL = pc.CountOptions(mode="all")
