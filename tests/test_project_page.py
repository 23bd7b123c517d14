"""`docs/project.md` and the README of the example project: what they show runs, and every field is told."""

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from page_examples import DOCS, ROOT, commands_of, run_page
from viewkeeper.cli.main import VERBS
from viewkeeper.project import content, cubes, sources
from viewkeeper.project.defaults import Kind
from viewkeeper.project.plan import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = DOCS / "project.md"
EXAMPLE = ROOT / "src" / "viewkeeper" / "project" / "example_files" / "README.md"


def test_the_examples_of_the_page_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)


def test_every_field_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)[0])
    assert tuple(shown) == content.FIELDS
    assert tuple(shown["sources"]["crm"]) == sources.FIELDS
    assert {*shown["cubes"]["sales"], "space_budget"} == set(cubes.FIELDS)
    told = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert told == [*content.FIELDS, *sources.FIELDS]
    assert [kind for kind in Kind if f"`{kind}`" not in text] == []
    assert [action for action in Action if not re.search(rf"^\| [a-z, ]*\b{action}\b", text, flags=re.MULTILINE)] == []


def test_the_readme_of_the_example_names_what_is_there(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", EXAMPLE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    typed = [words for block in blocks for words in commands_of(block)]
    assert ["python", "sell.py"] in typed
    assert {words[1] for words in typed if words[0] == "viewkeeper"} <= set(VERBS)
    assert {words[0] for words in typed} == {"python", "viewkeeper"}


@pytest.mark.processes
def test_the_example_sells_without_viewkeeper(tmp_path: Path) -> None:
    """Its script is a plain application: it runs without anything installed."""
    from viewkeeper.project.example import write_example

    write_example(tmp_path / "shop")
    said = [
        subprocess.run([sys.executable, "-S", "sell.py"], cwd=tmp_path / "shop", capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert said[0].startswith("Dana of Chur is a customer now\ncustomer 10 bought a map for 15")
    assert said[1] == "customer 10 bought a stove for 90\n"
