"""Types the commands of `docs/tutorial.md`, one by one, and runs its Python, in one folder.

All but the first command, which is the demo: that one is typed by `tests/cli/test_demo_verb.py`. Here its databases and
views are made by its own code, with fewer sales, so that this does not take minutes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from page_examples import DOCS, blocks, run_block
from viewkeeper.demo import retail
from viewkeeper.demo.demonstration import Demonstration, make_databases
from viewkeeper.demo.views import VIEWS
from viewkeeper.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEMO = "viewkeeper demo --seconds 3 --warehouse chain"
SEED, FEW = 7, 600


def make_chain(folder: Path) -> None:
    """What the demo leaves."""
    with Warehouse.open(folder) as warehouse:
        demonstration = Demonstration(warehouse, make_databases(folder / "databases", SEED), SEED, 1)
        demonstration.add_sources()
        for name in VIEWS:
            demonstration.create_view(name)


def test_the_tutorial_can_be_typed(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retail, "SALES", FEW)
    first, *others = blocks(DOCS / "tutorial.md")
    assert [" ".join(words) for words in first.commands] == [DEMO]
    make_chain(tmp_path / "chain")
    names: dict[str, Any] = {}
    for block in others:
        assert not block.not_run, "all of the tutorial is typed"
        run_block(block, names)
