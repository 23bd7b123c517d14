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


CONTENTS = {
    "Strobe 1996": "1 2 3.1 3.2 3.3 3.4 4.1 4.2 5.1 5.2 5.3 5.4 6 7 | figure 1.1 7.2 | example 1-7 | appendix A B C",
    "SWEEP 1997": "1 2 3 4 5.1 5.2 5.3 6.1 6.2 7 | figure 1-6 | table 1",
    "The multi-relation wrapper 1999": "1.1 1.2 2 2.1 2.2 3.1 3.2 3.3 4.1 4.2 4.3 4.4 5 6 | figure 1-9 | table 1 2 | "
    "example 1-6 | theorem 1-4 | assumption 1 2 3",
    "Summary-deltas 1997": "1 2 2.1 2.2 2.3 2.4 3.1 3.2 3.3 3.4 4.1.1 4.1.2 4.1.3 4.1.4 4.2 4.3 5.1 5.2 5.3 5.4 5.5 6 "
    "7 | figure 1-10 | table 1-3 | definition 3.1 | theorem 5.1 | example 3.1 4.1 4.2 4.3 5.1 5.2 5.3 5.4 5.5 "
    "| appendix A B",
    "Self-maintained views 1996": "1 2 3 3.1 3.2 4 4.1 4.2 4.3 5 5.1 5.2 5.3 6 | figure 1-7 | table 1 2 | equation 1-6",
}
"""Every section, figure, table, example and theorem of the papers."""


@pytest.mark.parametrize("paper", CONTENTS)
def test_nothing_of_a_paper_is_left_out(paper: str) -> None:
    _, text = PAGE.read_text(encoding="utf-8").split(f"\n## {paper}\n")
    rows = [row.split("|")[1] for row in text.split("\n## ")[0].splitlines() if row.startswith("| ")]
    listed = {item for row in rows for item in items(row.partition(":")[0].lower())}
    sections, *others = (part.split() for part in CONTENTS[paper].lower().split(" | "))
    wanted = {("", number) for number in sections}
    for kind, *numbers in others:
        wanted |= {(kind, number) for part in numbers for number in spread(*part.split("-"))}
    assert sorted(wanted - listed) == []


def items(words: str) -> set[tuple[str, str]]:
    """`5.1, figures 3 and 4` as ("", "5.1"), ("figure", "3"), ("figure", "4"); `examples 1 to 7` as seven."""
    found, kind, last, ranging = set(), "", "", False
    for word in re.findall(r"[a-z]+|[0-9]+(?:\.[0-9]+)*", words):
        if word == "to":
            ranging = True
        elif word[0].isdigit() or (kind == "appendix" and len(word) == 1):
            found |= {(kind, number) for number in spread(last, word)} if ranging else {(kind, word)}
            last, ranging = word, False
        elif word != "and" and len(word) > 1:  # figure 4(b) is figure 4
            kind = word.removesuffix("s")
    return found


def spread(first: str, last: str | None = None) -> list[str]:
    return [first] if last is None else [str(number) for number in range(int(first), int(last) + 1)]
