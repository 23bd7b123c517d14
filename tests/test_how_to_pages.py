"""The how-to pages whose examples start Spark: `my-files.md`, `a-cube.md`, `recover.md`."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import DOCS, run_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("page", ["my-files.md", "a-cube.md", "recover.md"])
def test_the_examples_run(page: str, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / "how-to" / page)
