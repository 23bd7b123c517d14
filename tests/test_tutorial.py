"""Types the commands of `docs/tutorial.md`, one by one, and runs its Python, in one folder."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import DOCS, run_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_tutorial_can_be_typed(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / "tutorial.md")
