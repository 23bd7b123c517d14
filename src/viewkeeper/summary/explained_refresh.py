"""The refresh of a summary table as one statement: figure 8 of the paper as a MERGE.

    MERGE INTO v AS t USING sd_v AS d                     t is the row of the group, d its change
    COUNT(*) would be 0                        DELETE
    otherwise                                  UPDATE     counts and sums added up; NULL if COUNT(e) becomes 0
    no such group, and COUNT(*) above 0        INSERT

    MIN, MAX, COUNT(DISTINCT e)                from the hidden table that groups by e too, which is refreshed first; or,
                                               recomputed from the stored core where the old extreme was deleted

The refresh itself joins all groups of a table in Arrow, and looks an extreme up only for groups that lost theirs.
"""

from collections.abc import Mapping, Sequence

from viewkeeper.sql.layout import laid_out
from viewkeeper.summary.derivation import Derivation
from viewkeeper.summary.explained_statements import TableNames
from viewkeeper.summary.node import Node, shape_of
from viewkeeper.summary.node_shape import Linear, NodeShape, Recomputed
from viewkeeper.summary.statements import added_up, aggregate, quoted, union_of, whole_table


def refreshed(
    node: Node, nodes: Mapping[str, Node], names: TableNames, *, add_up: bool, whole: Mapping[str, Derivation]
) -> str:
    """The MERGE of a table.

    `add_up` is whether the summary-delta may have several rows for a group; `whole` tells how the nodes that are not
    stored are computed from the fact.
    """
    return laid_out(_Merge(node, nodes, names, add_up, whole).text())


class _Merge:
    def __init__(
        self, node: Node, nodes: Mapping[str, Node], names: TableNames, add_up: bool, whole: Mapping[str, Derivation]
    ) -> None:
        self._node, self._nodes, self._names = node, nodes, names
        self._add_up, self._whole = add_up, whole
        self._shape: NodeShape = shape_of(node, nodes)

    def text(self) -> str:
        shape = self._shape
        same = " AND ".join(f"t.{quoted(key)} <=> d.{quoted(key)}" for key in shape.keys) or "TRUE"
        updates = ", ".join(f"{quoted(column)} = {sql}" for column, sql in self._updated().items())
        text = f"MERGE INTO {quoted(shape.table)} AS t USING {self._source()} AS d ON {same}"
        if not shape.keys:
            # There is always one row, also over no facts at all.
            return f"{text} WHEN MATCHED THEN UPDATE SET {updates}"
        inserted = self._inserted()
        count = quoted(shape.count)
        return (
            f"{text} WHEN MATCHED AND t.{count} + d.{count} = 0 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {updates} "
            f"WHEN NOT MATCHED AND d.{count} > 0 THEN INSERT ({', '.join(map(quoted, inserted))}) "
            f"VALUES ({', '.join(inserted.values())})"
        )

    # --- values ---

    def _updated(self) -> dict[str, str]:
        """The new value of each column of a group that is there."""
        shape = self._shape
        new = {shape.count: f"t.{quoted(shape.count)} + d.{quoted(shape.count)}"}
        for measure in shape.linear:
            new |= self._updated_measure(measure)
        for derived in shape.derived:
            new[derived.column] = f"d.{quoted(derived.column)}"
        for extreme in shape.recomputed:
            new[extreme.column] = self._updated_extreme(extreme)
        return new

    def _updated_measure(self, measure: Linear) -> dict[str, str]:
        column = quoted(measure.column)
        if measure.kind == "count":
            return {measure.column: f"t.{column} + d.{column}"}
        old, change = f"COALESCE(t.{column}, 0)", f"COALESCE(d.{column}, 0)"
        count = quoted(measure.count or self._shape.count)
        none = f"t.{count} + d.{count} = 0"
        new = {measure.column: _null_if(none, f"{old} + {change}")}
        if measure.rest is not None:
            total = f"({old} + {change})"
            lost = f"({old} - ({total} - ({total} - {old}))) + ({change} - ({total} - {old}))"
            new[measure.rest] = _null_if(none, f"COALESCE(t.{quoted(measure.rest)}, 0) + {lost}")
        return new

    @staticmethod
    def _updated_extreme(extreme: Recomputed) -> str:
        """Recomputed if the extreme was deleted, and nothing that was inserted makes up for it."""
        old, count = f"t.{quoted(extreme.column)}", quoted(extreme.count)
        inserted, deleted = f"d.{quoted(extreme.inserted)}", f"d.{quoted(extreme.deleted)}"
        hit, worse, best = ("<=", ">", "LEAST") if extreme.function == "min" else (">=", "<", "GREATEST")
        return (
            f"CASE WHEN t.{count} + d.{count} = 0 THEN NULL "
            f"WHEN {deleted} {hit} {old} AND COALESCE({inserted} {worse} {old}, TRUE) THEN d.{quoted(extreme.column)} "
            f"ELSE {best}({old}, {inserted}) END"
        )

    def _inserted(self) -> dict[str, str]:
        """The columns of a group that is new."""
        shape = self._shape
        new = {column: f"d.{quoted(column)}" for column in (*shape.keys, shape.count)}
        for measure in shape.linear:
            value = f"d.{quoted(measure.column)}"
            if measure.kind != "count":
                value = _null_if(f"d.{quoted(measure.count or shape.count)} = 0", value)
            new[measure.column] = value
            if measure.rest is not None:
                new[measure.rest] = "0"
        for derived in shape.derived:
            new[derived.column] = f"d.{quoted(derived.column)}"
        for extreme in shape.recomputed:
            new[extreme.column] = f"d.{quoted(extreme.inserted)}"
        return new

    # --- what is merged ---

    def _source(self) -> str:
        """The summary-delta, one row for each group, with what the hidden tables tell of the groups."""
        delta = quoted(self._names.delta(self._node.name))
        joins, items = self._lookups()
        if self._add_up:
            delta = f"({added_up(self._node, union_of([delta], self._node.columns))})"
        if not joins:
            return delta
        return f"(SELECT {', '.join(['s.*', *items])} FROM {delta} AS s{''.join(joins)})"

    def _lookups(self) -> tuple[list[str], list[str]]:
        joins: list[str] = []
        items: list[str] = []

        def join(table: str, node: Node, columns: Mapping[str, str]) -> None:
            alias = f"e{len(joins)}"
            keys = [node.groups[group] for group in self._node.groups]
            listed = [*map(quoted, keys), *(f"{sql} AS {quoted(column)}" for column, sql in columns.items())]
            by = f" GROUP BY {', '.join(map(quoted, keys))}" if keys else ""
            joins.append(
                f" LEFT JOIN (SELECT {', '.join(listed)} FROM {table}{by}) AS {alias} ON "
                + _same_keys(self._shape.keys, alias, keys)
            )
            items.extend(f"{alias}.{quoted(column)}" for column in columns)

        for name in dict.fromkeys(each.node for each in self._shape.derived):
            mine = [each for each in self._shape.derived if each.node == name]
            join(
                quoted(name),
                self._nodes[name],
                {one.column: aggregate(one.function, quoted(one.value)) for one in mine},
            )
        recomputed = {each.column: each for each in self._shape.recomputed}
        for extreme in (one for one in self._node.extremes if one.column in recomputed):
            behind, ends = self._nodes[extreme.node], recomputed[extreme.column]
            value, count = quoted(behind.groups[extreme.value]), quoted(behind.count)
            function = extreme.function.upper()
            join(
                quoted(self._names.delta(extreme.node)),
                behind,
                {
                    ends.inserted: f"{function}(CASE WHEN {count} > 0 THEN {value} END)",
                    ends.deleted: f"{function}(CASE WHEN {count} < 0 THEN {value} END)",
                },
            )
            join(self._whole_node(extreme.node), behind, {extreme.column: f"{function}({value})"})
        return joins, items

    def _whole_node(self, name: str) -> str:
        """A node that is not stored, from the fact and the dimensions behind the changes."""
        edge = self._whole[name]
        dimensions = {one.path: quoted(self._names.of_dimension(one, "after")) for one in edge.joins}
        return f"({whole_table(edge, quoted(self._names.after(edge.above)), dimensions)})"


def _same_keys(own: Sequence[str], alias: str, other: Sequence[str]) -> str:
    pairs = zip(own, other, strict=True)
    return " AND ".join(f"s.{quoted(mine)} <=> {alias}.{quoted(their)}" for mine, their in pairs) or "TRUE"


def _null_if(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN NULL ELSE {value} END"
