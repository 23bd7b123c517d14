"""The queries of TPC-H, maintained by rules alone under changes of all tables."""

from typing import TYPE_CHECKING

import pytest
from maintained import Maintained, random_changes

import tpch
from viewkeeper.clock import seeded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_THE_SUITE = ("q01", "q03", "q04", "q13", "q16", "q21")
"""an aggregate, a join, EXISTS, an outer join, NOT IN, and both EXISTS and NOT EXISTS"""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in IN_THE_SUITE else pytest.mark.soak) for one in tpch.QUERIES]
)
def test_maintained(name: str, spark: "SparkSession") -> None:
    maintained = Maintained(spark, tpch.QUERIES[name], tpch.relations(), tpch.rows(3))
    random = seeded(7)
    for round in range(2):
        maintained.change(random_changes(random, maintained.contents, tpch.rows(11 + round)))
        assert maintained.found() == maintained.expected(), round
    assert maintained.wrong_tables() == []
