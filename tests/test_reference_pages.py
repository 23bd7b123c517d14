"""The reference is complete: every verb, every property with its values, every code of an error."""

import ast
import re
from pathlib import Path

from page_examples import DOCS, PAGES, ROOT
from viewkeeper import errors
from viewkeeper.algebra import adaptive
from viewkeeper.algorithms.registry import ALGORITHMS
from viewkeeper.cli.main import VERBS
from viewkeeper.lake.tables import driver_memory, small_loads
from viewkeeper.lake.tables import spark_session as session
from viewkeeper.maintenance import contents
from viewkeeper.planner.self_maintained.automatic import REMOTE
from viewkeeper.planner.self_maintained.choosing import AUTO
from viewkeeper.project.defaults import OF_KINDS, Kind
from viewkeeper.sql import definition
from viewkeeper.sql.grouping import MOST_DIMENSIONS, MOST_SETS
from viewkeeper.storage.self_maintained import STORAGES

FIGURES = ("limits", "cluster")
CLI, PROPERTIES, ERRORS = (DOCS / "reference" / f"{name}.md" for name in ("cli", "properties", "errors"))


def tables(page: Path) -> list[list[list[str]]]:
    """The tables of a page: their rows, without the headings, as cells."""
    found: list[list[list[str]]] = []
    for part in re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        rows = [[cell.strip() for cell in row[1:-1].split("|")] for row in part.splitlines()]
        found.append(rows[2:])
    return found


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_verb_has_its_place() -> None:
    headings = re.findall(r"^### (.+)$", CLI.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings == list(VERBS)


# Properties


def test_every_property_is_explained_with_its_values() -> None:
    values, _ = tables(PROPERTIES)
    assert [name for cell, *_ in values for name in code(cell)] == list(definition.PROPERTIES)
    shown = {code(name)[0]: code(choices) for name, choices, *_ in values}
    for name, choices in definition._CHOICES.items():
        assert set(shown[name]) == set(choices), name
    assert set(shown["storage"]) == {REMOTE, AUTO, *STORAGES}


def test_defaults_of_properties_are_those_of_the_code() -> None:
    values, _ = tables(PROPERTIES)
    defaults = {code(name)[0]: default for name, _, default, _ in values}
    assert defaults["nested_updates"] == str(ALGORITHMS["nested-sweep"].options["updates"])
    assert defaults["period"] == str(ALGORITHMS["periodic-c-strobe"].options["period"])
    assert defaults["window"] == str(ALGORITHMS["pipelined-sweep"].options["window"])
    first = {name: choices[0] for name, choices in definition._CHOICES.items()}
    assert {name: code(defaults[name])[0] for name in first} == first


def test_which_view_has_which_property() -> None:
    _, which = tables(PROPERTIES)
    kinds = (Kind.JOINS, Kind.OUTER_JOINS, Kind.SUMMARIES, Kind.OVER_VIEWS, Kind.QUERIES)
    columns = [OF_KINDS[kind] for kind in kinds]
    for place, of_kind in enumerate(columns, 1):
        told = [code(row[0])[0] for row in which if not row[place].startswith("no")]
        assert set(told) == set(of_kind), place


# Errors


def error_classes() -> dict[str, str]:
    """The code of every class, by its name."""
    return {
        name: kind.code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ViewkeeperError)
    }


def given_codes() -> set[str]:
    """Codes that are given where an error is raised, and those that the command line has for itself."""
    found = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found |= {word.value for word in node.keywords if word.arg == "code"}
                if isinstance(node.func, ast.Name) and node.func.id == "_explain":
                    found.add(node.args[0])
            if isinstance(node, ast.Dict):
                keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
                if "code" in keys and "hint" in keys:
                    found.add(node.values[keys.index("code")])
    return {node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_code_of_an_error_is_explained() -> None:
    rows = [row for table in tables(ERRORS) for row in table]
    told = {code(row[0])[0]: row for row in rows}
    classes = error_classes()
    assert len(told) == len(rows), "a code stands twice"
    assert set(told) == set(classes.values()) | given_codes()
    wrong = {
        name: kind
        for kind, own in classes.items()
        for name, row in told.items()
        if name == own and code(row[1])[:1] != [kind] and (name, kind) != ("error", "ViewkeeperError")
    }
    assert wrong == {}


def test_every_error_says_what_to_do() -> None:
    silent = [row[0] for table in tables(ERRORS) for row in table if not row[3] and row[0] != "`error`"]
    assert silent == []


# Statements and figures


def test_statements_on_pages_can_be_read() -> None:
    """Each CREATE MATERIALIZED VIEW of a listing of SQL: its form, and its properties with their values."""
    found = 0
    for page in PAGES:
        for listing in re.findall(r"^```sql\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            if "MATERIALIZED VIEW" in listing and "..." not in listing:
                definition.read_definition(listing, None)
                found += 1
    assert found >= 2


def test_figures_of_limits_and_clusters_are_those_of_the_code() -> None:
    limits, cluster = (" ".join((DOCS / f"{name}.md").read_text(encoding="utf-8").split()) for name in FIGURES)
    assert f"At most {MOST_DIMENSIONS} dimensions in a CUBE, {MOST_SETS} sets" in limits
    assert f"up to {adaptive.MOST_BYTES >> 20} MB per view" in limits
    assert f"A table of a lattice of up to {contents.MOST_ON_DRIVER:,} rows may be in the driver's memory" in limits
    assert driver_memory.SHARE == 8, "the page says an eighth"
    assert f"has {session.DEFAULT_MEMORY.removesuffix('g')} GB by default" in limits
    assert f"the change of a join, up to {adaptive.MOST_BYTES >> 20} MB" in cluster
    assert f"up to {adaptive.FEW_ROWS:,} rows one by one" in cluster
    assert f"the first load of a view, up to {small_loads.MOST_ROWS:,} rows" in cluster
    for setting, value in re.findall(r"`(spark[\w.]+) = (\w+)`", cluster):
        assert session.SETTINGS[setting] == value
