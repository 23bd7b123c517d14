"""Foreign keys as they are declared with sources: relied upon, not enforced.

    retail.pos.itemID → retail.items.itemID       every sale is of an item that is there

A promise lets a summary that does not join items be computed from one that does (the fourth edge of figure 9). Sources
are autonomous and break promises: each propagation checks its changes, so that a broken one costs time, not rows.
"""

from collections.abc import Iterable, Mapping

from viewkeeper.lake.log.source_files import SourceDefinition
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.star import FACT, Dimension


class DeclaredForeignKeys:
    """The foreign keys of all sources, by full names of columns in folded case."""

    def __init__(self, sources: Mapping[str, SourceDefinition]) -> None:
        self._pairs = frozenset(
            (f"{source.name}.{child.removeprefix(f'{source.name}.')}".casefold(), parent.casefold())
            for source in sources.values()
            for child, parent in source.foreign_keys
        )

    def relied(self, fact: Relation, dimensions: Iterable[Dimension]) -> frozenset[str]:
        """The paths of the dimensions whose whole key is promised to be found."""
        dimensions = list(dimensions)
        relations = {FACT: fact.name} | {one.path: one.relation.name for one in dimensions}
        found: set[str] = set()
        for one in dimensions:
            pairs = {
                (
                    f"{relations[column.partition('.')[0]]}.{column.partition('.')[2]}".casefold(),
                    f"{one.relation.name}.{key}".casefold(),
                )
                for column, key in one.on
            }
            before = {column.partition(".")[0] for column, _ in one.on} - {FACT}
            if pairs <= self._pairs and before <= found:
                found.add(one.path)
        return frozenset(found)
