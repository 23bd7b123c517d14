"""Every construct: the tree of a query gives the rows that the query gives, and is read again as it was stored."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import constructs
import pytest

from viewkeeper.sql.catalyst.reading import read_query
from viewkeeper.sql.catalyst.stored_query import from_json, to_json
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Query, Recompute, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[[str, Mapping[str, Relation]], Query]


@pytest.mark.parametrize("name", constructs.QUERIES)
def test_tree_gives_the_rows_of_its_query(name: str, same_rows: Check, tables: Mapping[str, Relation]) -> None:
    query = same_rows(constructs.QUERIES[name], tables)
    assert [one.why for one in in_order(query.root) if isinstance(one, Recompute)] == []
    assert from_json(json.loads(json.dumps(to_json(query)))) == query


@pytest.mark.parametrize("name", constructs.RECOMPUTED)
def test_what_has_no_operator_is_recomputed_as_a_whole(
    name: str, same_rows: Check, tables: Mapping[str, Relation]
) -> None:
    query = same_rows(constructs.RECOMPUTED[name], tables)
    assert isinstance(query.root, Recompute)
    assert query.root.why
    assert from_json(json.loads(json.dumps(to_json(query)))) == query


def test_same_text_gives_the_same_tree(spark: "SparkSession", tables: Mapping[str, Relation]) -> None:
    for name in ("comma join", "subquery in subquery", "rollup", "except all", "window over aggregate", "scalar count"):
        sql = constructs.QUERIES[name]
        assert read_query(spark, sql, tables) == read_query(spark, sql, tables)
