"""Small cases that random lives of summaries once failed on."""

from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.summary_view import SummaryView
from viewkeeper.summary.defined import defined
from viewkeeper.summary.hidden_nodes import with_hidden
from viewkeeper.summary.plan import CHANGES, Lineage, changes_of
from viewkeeper.warehouse.columns import WEIGHT


def test_a_foreign_key_of_another_type_than_its_key_is_derived_from_the_changes():
    fact = Relation("s.f", "s", ("fk", "a"), ("BIGINT", "INT"))
    relations = {"s.f": fact, "s.d": Relation("s.d", "s", ("k", "b"), ("INT", "STRING"), ("k",))}
    sql = "SELECT b, COUNT(*) AS n, SUM(a) AS total FROM s.f AS f JOIN s.d AS d ON f.fk = d.k GROUP BY b"
    view = parse_definition(sql, relations, name="v")
    assert isinstance(view, SummaryView)
    whole = with_hidden(defined(view), [], core_readable=False, recompute=False)
    nodes = [*(node for node, _ in whole.hidden), whole.node]
    plan = Lineage(nodes, changes_of(fact, WEIGHT), core_readable=False).plan(lambda _: 1.0)
    assert [(edge.above.name, edge.below.name) for edge in plan.edges] == [
        (CHANGES, "_vk_node_v_root"),
        ("_vk_node_v_root", "v"),
    ]
