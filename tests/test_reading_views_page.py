"""`docs/reading-views.md`: every example runs, and every option of the data source is on it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import DOCS, run_page
from viewkeeper.serving.data_source.options import MOST_STATES, OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = DOCS / "reading-views.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)


def test_every_option_of_the_data_source_is_on_the_page() -> None:
    table = TEXT.split("\n| option | meaning |\n")[1].split("\n\n")[0]
    # The path is what `load` is given.
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(OPTIONS) - {"path"}
    assert f"{MOST_STATES} by default" in table
