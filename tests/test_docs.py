"""The documentation holds what it promises: pages, traces and figures are current, links and commands work."""

import importlib.util
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from page_examples import DOCS, PAGES, ROOT, blocks, run_page
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.cli.main import viewkeeper

WITH_THE_TOP = [page for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md") if page.exists()]
SECTIONS = ("The idea", "Assumptions", "The equation", "An example", "The guarantee", "The cost")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def module(path: str) -> ModuleType:
    """A script of this project that is not part of the package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@cache
def measured() -> dict[str, Any]:
    figures: dict[str, Any] = module("benchmarks/messages.py").measure()
    return figures


def output_of(command: str) -> str:
    """What `docs/regenerate.py` puts into a page, made in this process."""
    if command == "python benchmarks/messages.py --markdown":
        return str(module("benchmarks/messages.py").markdown(measured())).rstrip()
    if command.startswith("python benchmarks/latency.py --markdown "):
        return str(module("docs/latency_pictures.py").latency().markdown(command.split()[-1])).rstrip()
    if command == "python docs/cli_reference.py":
        return str(module("docs/cli_reference.py").markdown()).rstrip()
    program, *arguments = shlex.split(command)
    assert program == "viewkeeper", f"no way to run this in process: {command}"
    done = CliRunner().invoke(viewkeeper, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.rstrip()


# Pages


@pytest.mark.parametrize("name", [*ALGORITHMS, "multi-relation-wrapper"])
def test_every_algorithm_has_its_page(name: str) -> None:
    text = (DOCS / "algorithms" / f"{name}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)
    examples = [part["command"] for part in module("docs/regenerate.py").PART.finditer(text)]
    assert examples, "there is no generated trace"
    assert all(command.startswith("viewkeeper simulate --example ") for command in examples)


def test_the_index_agrees_with_the_registry() -> None:
    index = (DOCS / "algorithms" / "README.md").read_text(encoding="utf-8")
    rows = {cells[0]: cells[1:] for cells in table(index, "algorithm")}
    assert list(rows) == [f"[{name}]({name}.md)" for name in ALGORITHMS]
    for name, algorithm in ALGORITHMS.items():
        single, local, over_sources, keys, _, file = rows[f"[{name}]({name}.md)"]
        levels = [str(algorithm.levels.get(kind, "refused")) for kind in Transactions]
        assert [single, local, over_sources] == levels, name
        assert keys == ("yes" if algorithm.needs_keys else "no"), name
        assert (ROOT / "src/viewkeeper/algorithms" / file.strip("`")).is_file()


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(one for group in project["project"]["optional-dependencies"].values() for one in group),
    ]
    text = (DOCS / "dependencies.md").read_text(encoding="utf-8")
    names = [re.split(r"[^\w-]", requirement)[0] for requirement in wanted]
    assert [name for name in names if f"| `{name}` |" not in text] == []


# Generated parts and figures


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=named)
def test_generated_parts_are_current(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    regenerate = module("docs/regenerate.py")
    monkeypatch.setattr(regenerate, "output_of", output_of)
    monkeypatch.chdir(ROOT)
    text = page.read_text(encoding="utf-8")
    assert text == regenerate.regenerated(text), "out of date: run 'make docs'"


def test_pictures_are_current() -> None:
    level_pictures = module("docs/level_pictures.py")
    stale = [
        file
        for file, example in level_pictures.PICTURES.items()
        if (level_pictures.FOLDER / file).read_text(encoding="utf-8") != level_pictures.picture(example)
    ]
    latency_pictures = module("docs/latency_pictures.py")
    stale += [
        file
        for file in latency_pictures.PICTURES
        if (latency_pictures.FOLDER / file).read_text(encoding="utf-8") != latency_pictures.picture(file)
    ]
    assert stale == [], "out of date: run 'make docs'"


def table(text: str, first_heading: str) -> Iterator[list[str]]:
    """The rows of the table whose first column has this heading."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"| {first_heading} |"):
            break
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def section(page: str, heading: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_figures_of_c_strobe_are_those_measured() -> None:
    worst = measured()["c_strobe_one_insertion_under_constant_deletions"]
    for n, compensating, bound, _, grouped, ungrouped in table(section("messages.md", "C-Strobe's growth"), "n"):
        figures = worst[f"n={n}"]
        assert int(bound) == int(compensating) == figures["compensating_queries_bound"]
        assert [int(grouped), int(ungrouped)] == [figures["grouped"]["queries"], figures["ungrouped"]["queries"]]


def test_figures_of_batched_sweep_are_those_measured() -> None:
    by_n = measured()["batched_sweep_queries_per_update"]
    rows = list(table(section("messages.md", "Batched SWEEP's falling cost"), "n"))
    assert {n: list(map(float, cells)) for n, *cells in rows} == {
        key.removeprefix("n="): list(by_batch.values()) for key, by_batch in by_n.items()
    }


def test_figures_of_the_wrapper_are_those_measured() -> None:
    rows = table(section("messages.md", "The wrapper's one message per source"), "relations")
    assert [list(map(int, row)) for row in rows] == [list(figures.values()) for figures in measured()["wrapper"]]


def test_figures_beside_table_1_are_those_measured() -> None:
    text = section("messages.md", "The SWEEP paper's table 1, beside ours")
    for name, *_, last in table(text, "algorithm"):
        by_n = measured()["per_update"][name.lower().replace(" ", "-")]
        calm, storm = (by_n["n=5"][timing]["queries"] for timing in ("calm", "storm"))
        assert last.split(";")[0] == f"{calm:g} / {storm:g}", name


def test_figures_of_latency_are_those_measured() -> None:
    latency = module("docs/latency_pictures.py").latency()
    asked = {name: queries["60%"] for name, queries in latency.unmatched().items()}
    text = (DOCS / "algorithms/parallel-sweep.md").read_text(encoding="utf-8")
    assert f"[{asked['parallel-sweep']} queries against {asked['sweep']}]" in text
    nested = next(row["queries"] for row in latency.burst() if row["bound"] == "updates = 64")
    assert f"took {nested} queries" in (DOCS / "algorithms/nested-sweep.md").read_text(encoding="utf-8")


def test_the_history_shown_is_the_history_judged() -> None:
    page = (DOCS / "reference" / "history-format.md").read_text(encoding="utf-8")
    shown = page.split("```json\n")[1].split("```")[0]
    assert json.loads(shown) == json.loads((DOCS / "example-history.json").read_text(encoding="utf-8"))


# Links and commands


@pytest.mark.parametrize("page", [*PAGES, *WITH_THE_TOP], ids=named)
def test_relative_links_resolve(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    relative = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert [target for target in relative if not (page.parent / target).exists()] == []


# Their examples start Spark: these tests run them.
RUN_BY = {
    "tutorial.md": "test_tutorial.py",
    "warehouse.md": "test_warehouse_page.py",
    "project.md": "test_project_page.py",
    "live-views.md": "test_live_pages.py",
    "reading-views.md": "test_reading_views_page.py",
    "sources.md": "test_live_pages.py",
    "summary-tables.md": "test_summary_pages.py",
    "self-maintained-views.md": "test_self_maintained_page.py",
    "how-to/a-cube.md": "test_how_to_pages.py",
}


def run_elsewhere(page: Path) -> str | None:
    return RUN_BY.get(page.relative_to(DOCS).as_posix())


def run_here(page: Path) -> bool:
    return run_elsewhere(page) is None and any(not block.not_run for block in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if run_here(page)], ids=named)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page and in one folder, so that one command can read what another wrote. All are quick."""
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", RUN_BY)
def test_examples_that_are_run_elsewhere_are_run_there(page: str) -> None:
    text = (ROOT / "tests" / RUN_BY[page]).read_text(encoding="utf-8")
    assert Path(page).name in text
    assert any(not block.not_run for block in blocks(DOCS / page))


# Words

TIDY: dict[str, Callable[[str], bool]] = {
    "a page ends with one newline": lambda text: text.endswith("\n") and not text.endswith("\n\n"),
    "code blocks are closed": lambda text: len(re.findall(r"^\s*```", text, flags=re.MULTILINE)) % 2 == 0,
    "no line ends with a space": lambda text: not re.search(r"[ \t]$", text, flags=re.MULTILINE),
}


@pytest.mark.parametrize("rule", TIDY)
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_pages_are_tidy(page: Path, rule: str) -> None:
    assert TIDY[rule](page.read_text(encoding="utf-8"))
