"""How much of the suite is run, and in which order."""

import os

FAST = "VIEWKEEPER_TEST_FAST" in os.environ
"""whether this is `make check-fast`: a few of the random runs, and nothing that starts a program"""

LONGEST = (
    "properties/test_levels.py",
    "warehouse/test_computed_views.py",
    "properties/test_self_maintained.py",
    "cli/test_verbs_as_processes.py",
    "warehouse/test_self_maintained_views.py",
    "warehouse/test_spark_data_source.py",
    "warehouse/test_hostile_columns.py",
    "warehouse/test_altered_views.py",
    "warehouse/test_crashes.py",
    "integration/test_kills.py",
    "warehouse/test_answered_queries.py",
    "cli/test_demo_verb.py",
    "warehouse/test_variances.py",
    "test_summary_pages.py",
    "warehouse/test_shown_tables.py",
    "integration/test_disruptions.py",
    "properties/test_summaries_on_driver.py",
    "storage/test_storages_in_engines.py",
    "warehouse/test_bytes_per_commit.py",
    "warehouse/test_cubes.py",
    "algorithms/test_algorithms_on_spark.py",
    "warehouse/test_full_disk.py",
    "summary/test_propagate_engines.py",
    "benchmarks/test_retail_data.py",
    "warehouse/test_on_a_cluster.py",
    "warehouse/test_altered_and_captured_anew.py",
    "warehouse/test_thread_imports.py",
)
"""files that are started first: a process of the run takes a file as a whole, and at the end both should be busy"""
