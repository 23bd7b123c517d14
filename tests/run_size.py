"""How much of the suite is run, and in which order."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

FAST = "VIEWKEEPER_TEST_FAST" in os.environ
"""whether this is `make check-fast`: a few of the random runs; no program is started, no warehouse opened"""

LONG = "VIEWKEEPER_TEST_LONG" in os.environ
"""whether the tests with examples of Hypothesis take all of them: `make soak`"""


def examples(every: int) -> int:
    """How many examples of Hypothesis a test takes: all in the long runs, a part of them in the suite."""
    return every if LONG else max(10, 3 * every // 10)


def some(cases: Iterable[Any], few: int) -> list[Any]:
    """The parameters of a test: the first few in the suite, the others in the long runs."""
    first, more = (found := list(cases))[:few], found[few:]
    return [*first, *(pytest.param(*_several(one), marks=pytest.mark.soak) for one in more)]


def _several(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


LEFT_OUT_OF_FAST = (
    "mediator/test_group.py::test_the_first_commit_after_a_start_is_small",
    "mediator/test_without_quiet.py",
    "papers/test_view_refreshment_equations.py",
    "sim/test_simulation.py::test_the_matrix_covers_every_algorithm",
    "sources/test_delta.py::test_every_reading_is_the_replay",
    "sources/test_lake_concurrency.py",
    "sql/test_outer_joins_in_duckdb.py",
    "storage/test_storages.py",
    "summary/test_answering.py::test_a_hierarchy_holds",
    "summary/test_answering.py::test_any_query",
    "summary/test_explained_statements.py",
    "summary/test_lattice_drawing.py",
    "summary/test_propagate_engines.py",
    "summary/test_refresh_model.py",
    "properties/test_summaries_lively.py",
    "test_docs.py::test_examples_run",
    "test_docs.py::test_generated_parts_are_current[docs/latency.md]",
    "test_docs_site.py",
    "test_project.py::test_import_contracts",
    "test_reference_pages.py::test_every_code_of_an_error",
)
"""what takes seconds all the same"""

LONGEST = (
    "warehouse/test_spark_data_source.py",
    "warehouse/test_answered_queries.py",
    "warehouse/test_computed_views.py",
    "warehouse/test_hostile_columns.py",
    "properties/test_summaries_in_spark.py",
    "test_summary_pages.py",
    "cli/test_warehouse_verbs.py",
    "properties/test_self_maintained.py",
    "warehouse/test_crashes.py",
    "papers/test_view_refreshment_in_databases.py",
    "cli/test_demo_verb.py",
    "algebra/test_engines_conform.py",
    "warehouse/test_shown_tables.py",
    "integration/test_altered_tables.py",
    "warehouse/test_self_maintained_views.py",
    "warehouse/test_variances.py",
    "warehouse/test_altered_views.py",
    "warehouse/test_spark_agreement.py",
    "integration/test_live_run.py",
    "cli/test_summary_verbs.py",
    "cli/test_live_verbs.py",
    "cli/test_verbs_as_processes.py",
    "warehouse/test_cubes.py",
    "integration/test_live_self_maintained.py",
    "test_tutorial.py",
    "integration/test_live_summaries.py",
    "warehouse/test_commit_log.py",
    "warehouse/test_odd_join_keys.py",
    "warehouse/test_foreign_warehouses.py",
    "integration/test_disruptions.py",
    "warehouse/test_on_a_cluster.py",
    "storage/test_storages_in_engines.py",
    "warehouse/test_bytes_per_commit.py",
    "properties/test_levels.py",
    "integration/test_kills.py",
)
"""files that are started first: a process of the run takes a file as a whole, and at the end both should be busy"""
