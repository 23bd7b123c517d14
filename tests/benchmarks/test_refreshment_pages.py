"""The relations of the view refreshment experiment, and the pages that its storages take in a row store."""

from collections import Counter

import pytest
from refreshment_pages import PAGE, counted, measured, pages, row_width
from refreshment_tables import STORAGES
from wisconsin_data import KEY_FOREIGN_KEY, KEY_KEY, KINDS, NON_KEY, JoinedRelations, Relation, expected_rows

from viewkeeper.algebra.memory import MemoryZSet

SIZE = 1_000


def values(relation: Relation) -> Counter[int]:
    return Counter(value for part in relation.parts.values() for value in part["a"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_the_joins_have_the_sizes_of_the_paper(kind: str) -> None:
    relations = JoinedRelations(kind, SIZE)
    left, right = values(relations.left), values(relations.right)
    joined = sum(number * right[value] for value, number in left.items())
    assert (
        joined == expected_rows(kind, SIZE) == {KEY_KEY: SIZE, KEY_FOREIGN_KEY: 2.4 * SIZE, NON_KEY: 4.8 * SIZE}[kind]
    )
    without_partner = sum(number for value, number in left.items() if value not in right)
    assert without_partner == (0 if kind == KEY_KEY else 0.2 * SIZE)


def test_inserted_keys_stay_keys_and_find_rows_without_partner() -> None:
    relations = JoinedRelations(KEY_KEY, SIZE)
    for _ in range(3):
        before = values(relations.left).keys() & values(relations.right).keys()
        relations.insert(0.1)
        left, right = values(relations.left), values(relations.right)
        assert set(left.values()) == set(right.values()) == {1}
        new = (left.keys() & right.keys()) - before
        assert len(new) >= 0.7 * 0.1 * SIZE
    # The first insertions left rows without a partner, which later ones have found.
    assert len(left.keys() - right.keys()) < 3 * round(0.2 * 0.1 * SIZE)


def test_the_width_of_a_row() -> None:
    assert row_width(["r.unique2", "r.a", "r.unique1"]) == 16 * 4 + 3 * 52 - 2 * 4
    assert row_width(["r.unique2", "s.unique2"]) == 2 * 8
    assert row_width(["r.unique2", "r.a", "s.unique2"]) == 2 * 8 + 4


def test_pages_of_rows_and_of_rows_with_nulls() -> None:
    columns = ("r.unique2", "r.a", "r.unique1", "s.unique2", "s.a", "s.unique1")
    whole = [(n, n, n, n, n, n) for n in range(9)]
    alone = [(n, n, n, None, None, None) for n in range(10, 20)]
    assert pages(MemoryZSet.of(columns, *whole), PAGE) == 3  # 4 of 428 bytes a page
    assert pages(MemoryZSet.of(columns, *alone), PAGE) == 2  # 9 of 216
    assert pages(MemoryZSet.of(columns, *whole, *alone), PAGE) == 5


def test_a_view_cache_reads_both_relations_and_rewrites_its_pairs() -> None:
    found = counted(KEY_KEY, "viewcache", SIZE, PAGE)
    relation, log = 112, 12  # 1,000 and 100 rows, 9 a page
    pairs = 10  # 102 a page; 1,000 before and 1,080 after
    assert found["read"] == {"copy 0": relation, "copy 1": relation, "pairs 1": pairs, "logs": 2 * log}
    assert found["written"] == {"pairs 1": 11, "copies": 2 * log}
    assert found["pages"] == 2 * relation + pairs + 11 + 4 * log


def test_which_conclusions_of_the_paper_hold() -> None:
    report = measured(SIZE, PAGE)
    for table in (
        "table 1: pages stored / pages of both relations",
        "table 2: pages of a refresh after 10 % insertions",
    ):
        for kind in KINDS:
            figures = report[table][kind]["measured"]
            assert set(figures) == set(STORAGES)
            pointers = max(figures[storage] for storage in ("viewcache", "partial-join", "partial-operand"))
            assert pointers <= min(figures["matview"], figures["outerjoin"]), (table, kind)
    for kind in KINDS:
        figures = report["table 2: pages of a refresh after 10 % insertions"][kind]["measured"]
        assert max(figures["partial-join"], figures["partial-operand"]) < figures["viewcache"], kind
