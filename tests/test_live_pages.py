"""`docs/live-views.md`, `docs/sources.md` and the README: their Python and their commands run."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from page_examples import run_page
from viewkeeper.cli.main import VERBS
from viewkeeper.sources.registry import KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
LIVE, SOURCES = ROOT / "docs" / "live-views.md", ROOT / "docs" / "sources.md"
BLOCK = re.compile(r"^```(?P<language>python|sh)\n(?P<code>.*?)^```", flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [LIVE, SOURCES], ids=lambda page: page.name)
def test_the_examples_run(page: Path, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_examples_of_the_readme_run(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "README.md")


def test_every_live_verb_is_on_the_page() -> None:
    live = VERBS[VERBS.index("add-source") : VERBS.index("status")]
    text = LIVE.read_text(encoding="utf-8")
    assert [verb for verb in live if f"`{verb}`" not in text and f"viewkeeper {verb}" not in text] == []


def test_every_kind_of_source_is_on_the_page() -> None:
    text = SOURCES.read_text(encoding="utf-8")
    assert [scheme for scheme in KINDS if f"{scheme}:/" not in text and scheme != "postgres"] == []


def test_the_life_of_an_update_names_what_is_there() -> None:
    """Every `Class.function` on the page is a function of a class of that name."""
    page = (ROOT / "docs" / "life-of-an-update.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    bodies: dict[str, str] = {}
    for kind, body in re.findall(r"^class (\w+)(.*?)(?=^\S|\Z)", code, re.DOTALL | re.MULTILINE):
        bodies[kind] = bodies.get(kind, "") + body
    named = re.findall(r"\b([A-Z]\w+)\.([a-z_]\w+)\b", page)
    assert len(named) > 20
    assert [f"{kind}.{name}" for kind, name in named if f"def {name}(" not in bodies.get(kind, "")] == []
