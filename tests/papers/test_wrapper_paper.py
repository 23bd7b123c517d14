"""The examples of the multi-relation wrapper paper, and the decomposition of its figures 3 to 5 and 9."""

import sqlglot
from recording import play, states

from viewkeeper.algebra.joins import JoinPlan
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.levels import Level
from viewkeeper.sim.examples import EXAMPLES
from viewkeeper.sim.script import parse_relation
from viewkeeper.sql.decompose import decompose, maintenance_query
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.render import render

TABLE_2 = ("is1.r1(a, c):", "is1.r2(d, e):", "is2.r3(b, f):")
FIGURE_3 = """
    CREATE MATERIALIZED VIEW v AS SELECT a, b FROM is1.r1, is1.r2, is2.r3 WHERE r1.c = r2.d AND r2.e = r3.f
"""


def figure_3():
    return parse_view(FIGURE_3, {relation.name: relation for relation, _ in map(parse_relation, TABLE_2)})


def same_sql(left: str, right: str) -> bool:
    return unquoted(left) == unquoted(right)


def unquoted(sql: str) -> str:
    """The text without quotes around names, and without an alias that repeats the name."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    for name in tree.find_all(sqlglot.exp.Identifier):
        name.set("quoted", False)
    for table in tree.find_all(sqlglot.exp.Table):
        if table.alias == table.name:
            table.set("alias", None)
    return tree.sql("spark")


def test_example_1_one_query_over_two_relations_cannot_be_compensated_at_the_mediator():
    """The error term ΔR3 ⋈ (R1 ⋈ ΔR2) needs R1, which the mediator does not have; the wrapper sends ΔIS instead."""
    recording, report = play("wrapper-1")
    assert recording.queries == ["is1: {[9, 3]} ⋈ v_is1", "is2: {-[1, 3]} ⋈ v_is2"]
    assert "is1: {-[2, 3]} ⋈ r1" in recording.local, "the wrapper asks R1 to turn ΔR2 into ΔIS1"
    assert states(report) == [[(1, 8), (1, 9)], []]


def test_example_1_without_the_wrapper_a_row_is_shown_too_early_and_twice_in_the_end():
    """[6, 9] exists because of ΔR2. It is in the answer for ΔR3, uncompensated, and comes again with ΔR2."""
    recording, report = play("wrapper-1-without")
    assert recording.queries == ["is1: {[9, 3]} ⋈ v_is1", "is2: {[6, 3]} ⋈ v_is2"]
    assert recording.said.index("A1") < recording.said.index("is1@1"), "the answer is used before ΔR2 can be"
    assert states(report) == [[(1, 8), (1, 9), (6, 9)], [(1, 8), (1, 9), (6, 8), (6, 9), (6, 9)]]
    assert report.level is Level.NONE
    # The same updates and the same interleaving, behind the wrapper.
    assert EXAMPLES["wrapper-6"].updates == EXAMPLES["wrapper-1-without"].updates
    _, wrapped = play("wrapper-6")
    assert states(wrapped) == [[(1, 8), (1, 9)], [(1, 8), (1, 9), (6, 8), (6, 9)]]
    assert wrapped.level is Level.COMPLETE


def test_example_2_a_source_per_relation_needs_a_message_per_relation():
    recording, report = play("wrapper-2")
    assert recording.targets()[:2] == ["is1", "is1"], "IS1 is asked twice for one update of R3"
    assert states(report) == [[(1, 8), (1, 9)], []]


def test_example_3_the_mediator_asks_each_source_once():
    recording, _ = play("wrapper-3")
    assert recording.targets() == ["is1", "is2"], "one maintenance query per update: two sources, n - 1 = 1"


def test_example_4_figures_3_to_5():
    parts = decompose(figure_3())
    (q2,) = parts.local_views["is1"]
    (q3,) = parts.local_views["is2"]
    assert same_sql(render(q2), "SELECT r1.a AS a, r2.e AS e FROM is1.r1 AS r1, is1.r2 AS r2 WHERE r1.c = r2.d"), (
        render(q2)
    )
    assert same_sql(render(q3), "SELECT r3.b AS b, r3.f AS f FROM is2.r3 AS r3"), render(q3)
    q4 = render(parts.assembly)
    assert same_sql(
        q4,
        "SELECT v_is1.a AS a, v_is2.b AS b FROM is1.v_is1 AS v_is1, is2.v_is2 AS v_is2 WHERE v_is1.e = v_is2.f",
    ), q4


def test_example_5_the_wrapper_compensates_locally():
    recording, report = play("wrapper-5")
    # LQ = ΔR1 ⋈ R2 is answered behind ΔR2, as nothing; the compensation ΔR1 ⋈ ΔR2 brings the row back.
    assert recording.local[0] == "is1: {[5, 2]} ⋈ r2"
    assert states(report) == [[(1, 8), (5, 8)], []]


def test_example_6_the_answer_leaves_behind_the_update_that_it_shows():
    recording, report = play("wrapper-6")
    assert recording.said == ["is2@1", "Q1", "is1@1", "A1", "state 1", "Q2", "A2", "state 2"]
    assert dict(recording.answers[0].keep(("v_is1.a", "v_is2.b")).weights()) == {(1, 9): 1, (6, 9): 1}
    assert states(report) == [[(1, 8), (1, 9)], [(1, 8), (1, 9), (6, 8), (6, 9)]]


def test_figure_9_the_localized_maintenance_query():
    parts = decompose(figure_3())
    q6 = maintenance_query(parts, "is1.v_is1", given=("is2.v_is2",))
    assert same_sql(
        q6,
        """SELECT v_is1.a AS a, delta_v_is2.b AS b
           FROM (SELECT r1.a AS a, r2.e AS e FROM is1.r1 AS r1, is1.r2 AS r2 WHERE r1.c = r2.d) AS v_is1,
                delta_v_is2
           WHERE v_is1.e = delta_v_is2.f""",
    ), q6


def test_the_assembly_over_local_views_is_the_view():
    contents = {name: MemoryZSet(relation.columns, rows.weights()) for name, relation, rows in _wrapper_contents()}
    view = parse_view(EXAMPLES["wrapper-4"].view, {name: relation for name, relation, _ in _wrapper_contents()})
    parts = decompose(view)
    local = {
        f"{source}.{one.name}": JoinPlan(one).evaluate(contents)
        for source, views in parts.local_views.items()
        for one in views
    }
    assert JoinPlan(parts.assembly).evaluate(local) == JoinPlan(view).evaluate(contents)


def _wrapper_contents():
    for text in EXAMPLES["wrapper-4"].relations:
        relation, rows = parse_relation(text)
        yield relation.name, relation, rows
