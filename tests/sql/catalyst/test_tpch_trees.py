"""All 22 queries of TPC-H: trees of operators that each have a rule, and the rows that Spark gives."""

from collections.abc import Callable, Mapping

import pytest

import tpch
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.tree import Query, Recompute, in_order


@pytest.mark.parametrize("name", tpch.QUERIES)
def test_tpch_query_and_its_tree_give_the_same_rows(
    name: str, same_rows: Callable[[str, Mapping[str, Relation]], Query], tpch_tables: Mapping[str, Relation]
) -> None:
    query = same_rows(tpch.QUERIES[name], tpch_tables)
    assert not [one for one in in_order(query.root) if isinstance(one, Recompute)]
