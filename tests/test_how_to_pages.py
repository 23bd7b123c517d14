"""`docs/how-to/a-cube.md`, the how-to page whose queries start Spark: its examples run."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import DOCS, run_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_examples_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / "how-to" / "a-cube.md")
