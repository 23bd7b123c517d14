"""How many rows a join will have, before it is computed: exact for two operands, by averages for more."""

from viewkeeper.algebra.arrow import ArrowZSet
from viewkeeper.maintenance.self_maintained.first_structures import expected_rows
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.storage.join_tree import tree_of

RELATIONS = {
    name: Relation(name, name.partition(".")[0], ("id", "k", "m"), ("BIGINT", "BIGINT", "BIGINT"), key=("id",))
    for name in ("x.r", "y.s", "z.t")
}


def expected(sql: str, **rows: list[tuple[int, int | None, int]]) -> float:
    tree = tree_of(parse_view(sql, RELATIONS, name="v"))
    given = {}
    for number, leaf in enumerate(tree.leaves):
        columns = leaf.operand.columns
        whole = ArrowZSet.of_rows(columns, ((row, 1) for row in rows[leaf.operand.alias]), ["BIGINT"] * 3)
        given[number] = whole.keep(leaf.given)
    return expected_rows(tree, given)


def test_of_two_operands_pairs_are_counted_and_null_has_no_partner() -> None:
    sql = "SELECT r.id, s.id AS other FROM x.r r JOIN y.s s ON r.k = s.k"
    r = [(1, 7, 0), (2, 7, 0), (3, 8, 0), (4, None, 0), (5, 9, 0)]
    s = [(1, 7, 0), (2, 7, 0), (3, 7, 0), (4, None, 0)]
    assert expected(sql, r=r, s=s) == 6


def test_of_more_operands_each_row_has_as_many_partners_as_the_average() -> None:
    sql = "SELECT r.id, s.id AS other, t.id AS third FROM x.r r JOIN y.s s ON r.k = s.k JOIN z.t t ON s.m = t.m"
    r = [(number, number % 2, 0) for number in range(10)]
    s = [(number, number % 2, number % 4) for number in range(4)]
    t = [(number, 0, number % 4) for number in range(12)]
    assert expected(sql, r=r, s=s, t=t) == 10 * 2 * 3


def test_no_join_is_smaller_than_its_first_operand_here() -> None:
    sql = "SELECT r.id, s.id AS other FROM x.r r JOIN y.s s ON r.k = s.k"
    assert expected(sql, r=[(1, 1, 0), (2, 2, 0)], s=[]) == 2
