"""`docs/papers.md` leads to what is there: every file that a row names, and every name in it."""

import re

import pytest

from page_examples import DOCS, ROOT

PAGE = DOCS / "papers.md"
ROWS = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
MAPPED = [row for row in ROWS if re.search(r"\]\(\.\./src/[^)]+\.py\)", row)]


@pytest.mark.parametrize("row", MAPPED, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_row_leads_to_what_is_there(row: str) -> None:
    files = re.findall(r"\]\((\.\./src/[^)]+\.py)\)", row)
    code = "".join((PAGE.parent / file).read_text(encoding="utf-8") for file in files)
    names = re.findall(r"`([A-Za-z_]\w*)`", row.split("|")[2])
    assert names
    assert [name for name in names if not re.search(rf"\b(def|class) {name}\b|^{name}\b", code, re.MULTILINE)] == []


def test_every_algorithm_is_on_the_page() -> None:
    from viewkeeper.algorithms.registry import ALGORITHMS

    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in ALGORITHMS if f"(algorithms/{name}.md)" not in text and name != "recompute"] == []


def test_tests_that_are_named_are_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in set(re.findall(r"`(?:tests/)?([\w/*]*test_[\w*]+\.py)`", text)):
        places = [ROOT / "tests", ROOT / "tests" / "papers"]
        assert any(list(place.glob(name)) for place in places), name
