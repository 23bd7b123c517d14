"""The statements of a summary table as readers see them: under the names of the tables, laid out.

    prepare      pi_v, pd_v, pc_v      figure 6: the changes, each with what it adds to the aggregates
    propagate    sd_v                  from the changes or from another summary-delta; what Spark runs
    refresh      MERGE INTO v          figure 8, in one statement

They are not pictures of statements: over tables of these names they run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from viewkeeper.sql.layout import laid_out
from viewkeeper.summary.derivation import ABOVE, ALSO, Derivation, derive
from viewkeeper.summary.node import Node
from viewkeeper.summary.plan import CHANGES
from viewkeeper.summary.star import Dimension
from viewkeeper.summary.statements import Names, quoted, sql_of, sum_type, summary_delta, times


@dataclass(frozen=True)
class TableNames:
    """What tables are called in the statements of one lattice."""

    relations: Mapping[str, str]
    """what the states of the fact and of each dimension are named after: the last part of the relation's name, if no
    other relation and no table of the lattice is called so"""

    @classmethod
    def of(cls, fact: str, nodes: Iterable[Node]) -> "TableNames":
        nodes = list(nodes)
        relations = sorted({fact, *(dimension.relation.name for node in nodes for dimension in node.dimensions)})
        taken = [*map(_short, relations), *(node.name for node in nodes)]
        return cls({n: _short(n) if taken.count(_short(n)) == 1 else n.replace(".", "_") for n in relations})

    def delta(self, node: str) -> str:
        return CHANGES if node == CHANGES else f"sd_{node}"

    def after(self, node: Node) -> str:
        """A node, or the fact, behind the changes."""
        return f"{self.relations[node.fact] if node.name == CHANGES else node.name}_after"

    def of_dimension(self, dimension: Dimension, when: str) -> str:
        return f"{self.relations[dimension.relation.name]}_{when}"


def prepared(node: Node, changes: Node) -> dict[str, str]:
    """The prepare views of a table, by name: insertions have weights above 0, deletions below."""
    values = {extreme.value: extreme.column for extreme in node.extremes}
    edge = derive(replace(node, groups={**node.groups, **values}), changes)
    assert edge is not None, "everything can be derived from the fact"
    weight = f"{ABOVE}.{quoted(changes.count)}"
    items = [f"{sql_of(edge.groups[group])} AS {quoted(column)}" for group, column in node.groups.items()]
    items.append(f"{weight} AS {quoted(node.count)}")
    for measure, column in node.measures.items():
        value = sql_of(edge.computed[measure])
        counts = measure.kind == "count"
        added = f"IF(({value}) IS NULL, 0, {weight})" if counts else times(value, sum_type(measure), weight)
        items.append(f"{added} AS {quoted(column)}")
    items += [f"{sql_of(edge.groups[extreme.value])} AS {quoted(extreme.column)}" for extreme in node.extremes]
    text = f"SELECT {', '.join(items)} FROM {CHANGES} AS {ABOVE}"
    for place, (dimension, on) in enumerate(zip(edge.joins, edge.on, strict=True)):
        keys = " AND ".join(f"{sql_of(column)} = d{place}.{quoted(key)}" for column, key in on)
        text += f" JOIN {full_name(dimension.relation.name)} AS d{place} ON {keys}"
    text += " WHERE " + "".join(f"({sql_of(condition)}) AND " for condition in edge.where)
    inserted, deleted, both = (f"{prefix}_{node.name}" for prefix in ("pi", "pd", "pc"))
    return {
        inserted: laid_out(f"{text}{weight} > 0"),
        deleted: laid_out(f"{text}{weight} < 0"),
        both: laid_out(f"SELECT * FROM {quoted(inserted)} UNION ALL SELECT * FROM {quoted(deleted)}"),
    }


def propagated(edge: Derivation, names: TableNames) -> str:
    """A summary-delta while no dimension changes."""
    old = {dimension.path: full_name(dimension.relation.name) for dimension in edge.joins}
    deltas = {edge.above.name: quoted(names.delta(edge.above.name))}
    return laid_out(summary_delta(edge, Names(deltas, old=old)))


def propagated_with_dimensions(edge: Derivation, names: TableNames) -> str | None:
    """A summary-delta when every dimension that it joins changes too; None if it joins none."""
    if not edge.joins:
        return None

    def tables(when: str) -> dict[str, str]:
        return {dimension.path: quoted(names.of_dimension(dimension, when)) for dimension in edge.joins}

    above = edge.above.name
    return laid_out(
        summary_delta(
            edge,
            Names(
                {above: quoted(names.delta(above))},
                now={above: quoted(names.after(edge.above))},
                old=tables("before"),
                new=tables("after"),
                changed=tables("changes"),
            ),
        )
    )


def carried(edge: Derivation) -> tuple[str, ...]:
    """The columns that the summary-delta has for those below it; its groups are finer by them."""
    return tuple(column for column in edge.below.groups.values() if column.startswith(ALSO))


def full_name(relation: str) -> str:
    """source.table, quoted."""
    return ".".join(map(quoted, relation.split(".")))


def _short(relation: str) -> str:
    return relation.rpartition(".")[2]
