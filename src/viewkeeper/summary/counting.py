"""The counting algorithm for aggregate views, to compare the summary-delta method with (section 2.3).

    touched  =  π groups ( changes ⋈ dimensions )
    before   =  table ⋉ touched                                deleted
    after    =  γ ( ( fact ⋈ dimensions ) ⋉ touched )          inserted, from the fact behind the changes

Gupta, Mumick and Subrahmanian, Maintaining Views Incrementally (SIGMOD 1993): the row of every group that a change
falls into is deleted, and recomputed from the base tables. Here only the fact changes. Whole groups of it are read,
and for a table of few groups all of it: this is no way to maintain summary tables, and a benchmark shows by how much.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.pyspark_names import DataFrame, SparkSession
from viewkeeper.errors import UsageError
from viewkeeper.sql.relation import Relation
from viewkeeper.summary.content import ArrowContent, Content
from viewkeeper.summary.derivation import Derivation, derive
from viewkeeper.summary.grouping import ONE_ROW
from viewkeeper.summary.node import Node, rest_column
from viewkeeper.summary.plan import changes_of
from viewkeeper.summary.propagate import TemporaryNames
from viewkeeper.summary.refresh import Figures, Refreshed
from viewkeeper.summary.statements import WEIGHT, aggregate, indented, quoted, sql_of, whole_table


def counting_refresh(
    spark: SparkSession,
    nodes: Sequence[Node],
    fact: Relation,
    rows: DataFrame,
    changes: DataFrame,
    dimensions: Mapping[str, DataFrame],
    contents: Mapping[str, Content],
) -> dict[str, Refreshed]:
    """Refresh summary tables, given their contents before, one statement for each.

    `rows` are those of the fact behind the changes, each as often as it is there; `changes` have `_vk_weight`.
    Dimensions are by path. All groups that a change falls into are in `before` and `after`, whether or not they differ.
    """
    refreshed = {}
    with TemporaryNames(spark) as temporary:
        base = f"(SELECT *, 1L AS {WEIGHT} FROM {temporary.name(rows)})"
        changed = temporary.name(changes)
        joined = {path: temporary.name(frame) for path, frame in dimensions.items()}
        for node in nodes:
            answer = spark.sql(_statement(node, fact, base, changed, joined)).toArrow()
            refreshed[node.name] = _replaced(node, contents[node.name], answer)
    return refreshed


def _statement(node: Node, fact: Relation, base: str, changes: str, dimensions: Mapping[str, str]) -> str:
    """The groups that are touched, each with its new row, or NULL throughout if it has none."""
    edge, values = _from_fact(node, fact)
    beside = [
        f"{aggregate(one.function, value)} AS {quoted(one.column)}"
        for one, value in zip(node.extremes, values, strict=True)
    ]
    beside += [f"0D AS {quoted(rest)}" for rest in _rests(node)]
    whole = whole_table(edge, base, dimensions, beside)
    if not node.keys:
        return whole
    alone = replace(edge, below=replace(node, measures={}), summed={}, computed={})
    touched = whole_table(alone, changes, dimensions)
    same = " AND ".join(f"k.{quoted(key)} <=> r.{quoted(key)}" for key in node.keys)
    items = [f"k.{quoted(key)}" for key in node.keys]
    items += [f"r.{quoted(column)}" for column in _columns(node) if column not in node.keys]
    # Spark takes the semijoin below the grouping: only rows of touched groups are aggregated.
    return (
        f"WITH touched AS (\n{indented(touched)}\n), recomputed AS (\n"
        f"  SELECT r.* FROM (\n{indented(indented(whole))}\n  ) AS r LEFT SEMI JOIN touched AS k ON {same}\n)\n"
        f"SELECT {', '.join(items)}\nFROM touched AS k LEFT JOIN recomputed AS r ON {same}"
    )


def _from_fact(node: Node, fact: Relation) -> tuple[Derivation, list[str]]:
    """The table from its fact, and the values of its MIN, MAX and COUNT(DISTINCT) as SQL over the same join."""
    values = {one.value: one.column for one in node.extremes}
    whole = derive(replace(node, groups={**values, **node.groups}), changes_of(fact, WEIGHT))
    if whole is None:
        raise UsageError(f"{node.name} is no summary of {fact.name}", f"give the relation {node.fact}")
    edge = replace(whole, below=node, groups={group: whole.groups[group] for group in node.groups})
    return edge, [sql_of(whole.groups[one.value]) for one in node.extremes]


def _rests(node: Node) -> list[str]:
    return [rest_column(column) for measure, column in node.measures.items() if measure.floating]


def _columns(node: Node) -> list[str]:
    return [*node.columns, *(one.column for one in node.extremes), *_rests(node)]


def _replaced(node: Node, content: Content, answer: pa.Table) -> Refreshed:
    """The rows that go, and those that come in their place."""
    touched = answer.select(list(node.keys)) if node.keys else ONE_ROW
    stored = content.find(node.keys, touched)
    before = stored.rows
    found = answer.filter(pc.is_valid(answer[node.count]))
    after = found.select(before.column_names).cast(before.schema)
    both = ArrowContent(before).find(node.keys, after.select(list(node.keys)) if node.keys else ONE_ROW).rows.num_rows
    figures = Figures(
        inserted=after.num_rows - both,
        updated=both,
        deleted=before.num_rows - both,
        unchanged=touched.num_rows - before.num_rows - after.num_rows + both,
        recomputed=after.num_rows,
    )
    return Refreshed(node.name, before, stored.positions, after, figures, optimizations=())
