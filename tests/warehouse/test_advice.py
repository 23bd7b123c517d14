"""What `explain` advises: for each rule when it speaks, and when it does not. Facts alone, no warehouse."""

from dataclasses import replace

import pytest

from viewkeeper.algebra.adaptive import MOST_ROWS
from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
from viewkeeper.explaining import advice
from viewkeeper.explaining.advice import advice_for
from viewkeeper.explaining.explanation import Advice
from viewkeeper.explaining.situations import (
    AskingJoin,
    ExtremeFacts,
    HierarchyFacts,
    JoinedRelation,
    MemberFacts,
    Situation,
    StoringJoin,
    SummarizedFacts,
)
from viewkeeper.levels import Level
from viewkeeper.planner.self_maintained.automatic import BUSY, REMOTE, Decision

ORDERS = JoinedRelation("shop.orders", "shop")
PEOPLE = JoinedRelation("crm.people", "crm")
ASKING = AskingJoin("named", (ORDERS, PEOPLE))
STORING = StoringJoin("kept", "viewcache", (ORDERS, PEOPLE), bytes=5_000_000)
SUMMARY = SummarizedFacts("by_city", "shop.orders")
COMPLETE = replace(SUMMARY, level=Level.COMPLETE)
DEFERRED = replace(SUMMARY, continuous=False)
"""one that no rule has anything to say about"""

BUSY_ORDERS = replace(ORDERS, transactions_per_hour=BUSY + 1)
CALM_ORDERS = replace(ORDERS, transactions_per_hour=BUSY)
BY_CITY = replace(PEOPLE, ways=(("id",), ("city",)))
WITHOUT_KEY = replace(PEOPLE, key=None, ways=(("name",),))
NEVER_JOINED = replace(PEOPLE, ways=((),))
STRONGER, WEAK = Decision("matview", ("whole rows take little room",)), Decision(REMOTE, ("all is quick",))
MAX = ExtremeFacts("MAX(amount)", "_vk_node_by_city_0", rows=6_000)
FINE = MemberFacts("by_all", 950, "by_most", 1_000)


def asking(*relations: JoinedRelation, **facts: object) -> AskingJoin:
    return replace(ASKING, relations=relations or ASKING.relations, **facts)  # type: ignore[arg-type]


def storing(*relations: JoinedRelation, **facts: object) -> StoringJoin:
    return replace(STORING, relations=relations or STORING.relations, **facts)  # type: ignore[arg-type]


def summary(of: SummarizedFacts = DEFERRED, **facts: object) -> SummarizedFacts:
    return replace(of, **facts)  # type: ignore[arg-type]


GIVEN: dict[str, tuple[str, Situation, str]] = {
    "a halted join": ("halted", asking(halted="a column is gone"), "viewkeeper reload named"),
    "a halted storage": ("halted", storing(halted="a column is gone"), "viewkeeper reload kept"),
    "a halted summary": ("halted", summary(halted="a column is gone"), "viewkeeper reload by_city"),
    "strong by choice": (
        "stronger-algorithm",
        asking(algorithm="nested-sweep", level=Level.STRONG, asked_algorithm="nested-sweep"),
        "complete instead of strong",
    ),
    "only convergent": (
        "stronger-algorithm",
        asking(algorithm="recompute", level=Level.CONVERGENT, asked_algorithm="recompute"),
        "now n per round, whole relations as answers (n = 2)",
    ),
    "transactions in parts": (
        "stronger-algorithm",
        asking(algorithm="sweep", level=Level.WEAK, transactions=Transactions.GLOBAL, asked_algorithm="sweep"),
        "transactions span shop and crm, and sweep does not keep them whole",
    ),
    "questions that storing saves": (
        "without-questions",
        asking(automatic=Decision("matview", ("source lake is a folder of files",)), sizes_known=True, room=2_500_000),
        "no source would be queried; it takes about 2.5 MB. As it is, source lake is a folder of files",
    ),
    "questions of an algorithm": (
        "without-questions",
        asking(automatic=STRONGER, asked_algorithm="sweep"),
        "(matview), and leave 'algorithm' out",
    ),
    "sizes unknown": (
        "without-questions",
        asking(automatic=Decision("viewcache", ("crm.people would be looked up by p.city",))),
        "(viewcache or matview, by the sizes)",
    ),
    "a scan, at present": (
        "without-questions",
        asking(automatic=Decision("viewcache", ("crm.people would be looked up by p.city",))),
        "As it is, crm.people is looked up by p.city",
    ),
    "recomputed, at present": (
        "without-questions",
        asking(automatic=STRONGER, algorithm="recompute", level=Level.CONVERGENT),
        "As it is, all relations are read again and again",
    ),
    "strong is enough": ("deletions-for-nothing", asking(asked_level="strong"), "'algorithm' = 't-strobe'"),
    "strong is enough, over sources": (
        "deletions-for-nothing",
        asking(asked_level="strong", transactions=Transactions.GLOBAL),
        "'algorithm' = 'g-strobe'",
    ),
    "quiet never comes": (
        "without-quiet",
        asking(BUSY_ORDERS, PEOPLE, algorithm="t-strobe", level=Level.STRONG),
        "shop has had some 3,601 transactions an hour",
    ),
    "a large view that is read": (
        "without-reading",
        asking(algorithm="t-strobe", level=Level.STRONG, rows=MOST_ROWS + 1),
        "its 100,001 rows take a job of Spark",
    ),
    "no key": ("declare-key", asking(ORDERS, WITHOUT_KEY), "viewkeeper add-source crm URL --key people=name"),
    "looked up by city": ("index", asking(ORDERS, BY_CITY), "CREATE INDEX people_by_city ON people (city)"),
    "looked up without a key": ("index", asking(ORDERS, WITHOUT_KEY), "an index on people (name)"),
    "a cross product": ("equality", asking(ORDERS, NEVER_JOINED), "brings all of its rows here"),
    "an expression of Spark": ("only-spark", asking(only_spark="SOUNDEX(name)"), "keep the columns of SOUNDEX(name)"),
    "an expression of Spark, stored": ("only-spark", storing(only_spark="SOUNDEX(name)"), "every change takes a job"),
    "needless storage": ("ask-instead", storing(automatic=WEAK), "that frees 5.0 MB; each change would cost at most 1"),
    "a better storage": (
        "other-storage",
        storing(automatic=STRONGER, sizes_known=True),
        "store it as matview instead of viewcache: whole rows take little room",
    ),
    "wide rows": (
        "other-storage",
        storing(automatic=Decision("partial-operand", ("rows are wide",)), created=False, bytes=None),
        "'storage' = 'partial-operand'",
    ),
    "every state of a busy source": ("one-state-for-many", storing(BUSY_ORDERS, PEOPLE), "'consistency' = 'strong'"),
    "strong, stored": ("every-state", storing(level=Level.STRONG, asked_level="strong"), "'consistency' = 'complete'"),
    "no key, not created": (
        "declare-key",
        storing(ORDERS, WITHOUT_KEY, created=False),
        "declare the key of crm.people before you create the view",
    ),
    "changes that wait": ("refresh-now", summary(manual=True, waiting=12), "12 rows of changes wait"),
    "one change that waits": ("refresh-now", summary(manual=True, waiting=1), "1 row of changes waits"),
    "extremes from the facts": (
        "extremes-at-hand",
        summary(extremes=(replace(MAX, recomputed=True),)),
        "a hidden table for MAX(amount)",
    ),
    "nearly a copy of the facts": (
        "extremes-from-facts",
        summary(extremes=(MAX,), fact_rows=10_000),
        "_vk_node_by_city_0 has 6,000 rows beside 10,000 facts",
    ),
    "busy facts": (
        "less-often",
        summary(SUMMARY, transactions_per_hour=BUSY + 1, seconds=0.25),
        "3,601 transactions an hour, and a refresh takes some 0.25 s",
    ),
    "a state for each": (
        "once-per-commit",
        summary(COMPLETE, seconds=0.25),
        "transaction, some 0.25 s each for its tables",
    ),
    "a strong summary": ("every-state", SUMMARY, "'consistency' = 'complete'"),
    "a hierarchy that is not declared": (
        "hierarchy",
        summary(hierarchies=(HierarchyFacts("by_region", "shop.stores", ("city", "region"), "by_city", 40, 12),)),
        "computed from that of by_city: 12 instead of 40 rows and joined rows are expected viewkeeper add-source shop "
        "URL --hierarchy stores=city,region",
    ),
    "a member that saves little": (
        "leave-out",
        summary(members=(replace(FINE, rows=9_500, above_rows=10_000),)),
        "it has 9,500 rows, and by_most, from which it is computed, has 10,000",
    ),
}
NOT_GIVEN: dict[str, tuple[str, Situation]] = {
    "complete already": ("stronger-algorithm", ASKING),
    "whole and strong": (
        "without-quiet",
        asking(CALM_ORDERS, PEOPLE, algorithm="g-strobe", level=Level.STRONG),
    ),
    "busy, and no quiet needed": ("without-quiet", asking(BUSY_ORDERS, PEOPLE)),
    "asking is what auto does": ("without-questions", asking(automatic=WEAK)),
    "complete is wanted": ("deletions-for-nothing", asking(asked_level="complete")),
    "no level was requested": ("deletions-for-nothing", ASKING),
    "strong, and a key is missing": ("deletions-for-nothing", asking(ORDERS, WITHOUT_KEY, asked_level="strong")),
    "strong, and keyed already": (
        "deletions-for-nothing",
        asking(asked_level="strong", algorithm="t-strobe", level=Level.STRONG),
    ),
    "strong, of one relation": ("deletions-for-nothing", asking(ORDERS, asked_level="strong")),
    "strong, and joined at a source": ("deletions-for-nothing", asking(asked_level="strong", wrapped=True)),
    "strong, and large": ("deletions-for-nothing", asking(asked_level="strong", rows=MOST_ROWS + 1)),
    "a large view that is not read": ("without-reading", asking(rows=MOST_ROWS + 1)),
    "a small view that is read": (
        "without-reading",
        asking(algorithm="t-strobe", level=Level.STRONG, rows=MOST_ROWS),
    ),
    "a key": ("declare-key", asking(ORDERS, BY_CITY)),
    "no key, and something rests on that": (
        "declare-key",
        asking(ORDERS, replace(WITHOUT_KEY, key_can_be_declared=False)),
    ),
    "no key, joined at its source": ("declare-key", asking(ORDERS, WITHOUT_KEY, wrapped=True)),
    "looked up by its key": ("index", ASKING),
    "looked up by its key and more": ("index", asking(ORDERS, replace(PEOPLE, ways=(("id", "city"),)))),
    "read whole again": ("index", asking(ORDERS, BY_CITY, algorithm="recompute", level=Level.CONVERGENT)),
    "files have no index": ("index", asking(ORDERS, replace(BY_CITY, database=False))),
    "an equality": ("equality", ASKING),
    "one relation alone": ("equality", asking(replace(ORDERS, ways=()))),
    "all on the driver": ("only-spark", ASKING),
    "all on the driver, stored": ("only-spark", STORING),
    "storage that auto would take": ("other-storage", storing(sizes_known=True)),
    "too little to be moved": ("other-storage", storing(automatic=STRONGER, sizes_known=True, bytes=1_000)),
    "sizes are not known": ("other-storage", storing(automatic=STRONGER)),
    "an outer join": ("other-storage", storing(automatic=STRONGER, sizes_known=True, outer=True)),
    "storage is called for": ("ask-instead", storing(automatic=STRONGER)),
    "an outer join cannot ask": ("ask-instead", storing(automatic=WEAK, outer=True)),
    "a calm source": ("one-state-for-many", storing(CALM_ORDERS, PEOPLE)),
    "complete was requested": ("one-state-for-many", storing(BUSY_ORDERS, PEOPLE, asked_level="complete")),
    "complete, stored": ("every-state", STORING),
    "no key, and created": ("declare-key", storing(ORDERS, WITHOUT_KEY)),
    "nothing waits": ("refresh-now", summary(manual=True)),
    "the clock refreshes it": ("refresh-now", summary(waiting=12)),
    "extremes are at hand": ("extremes-at-hand", summary(extremes=(MAX,))),
    "a small table behind an extreme": (
        "extremes-from-facts",
        summary(extremes=(replace(MAX, rows=4_000),), fact_rows=10_000),
    ),
    "no stored facts": ("extremes-from-facts", summary(extremes=(MAX,))),
    "distinct values are counted": (
        "extremes-from-facts",
        summary(extremes=(replace(MAX, called="COUNT(DISTINCT day)"),), fact_rows=10_000),
    ),
    "calm facts": ("less-often", summary(SUMMARY, transactions_per_hour=BUSY)),
    "busy, and complete": ("less-often", summary(COMPLETE, transactions_per_hour=BUSY + 1)),
    "busy, and deferred": ("less-often", summary(transactions_per_hour=BUSY + 1)),
    "strong, and not continuous": ("every-state", DEFERRED),
    "a member that saves much": ("leave-out", summary(members=(replace(FINE, rows=2_000, above_rows=10_000),))),
    "no hierarchy would help": ("hierarchy", summary()),
    "a small member": ("leave-out", summary(members=(FINE,))),
}


def told(one: Advice) -> str:
    return f"{one.change}: {one.effect} {one.statement or ''}"


@pytest.mark.parametrize("case", GIVEN)
def test_advice_is_given(case: str) -> None:
    rule, facts, says = GIVEN[case]
    assert any(says in told(one) for one in advice_for(facts) if one.rule == rule), advice_for(facts)


@pytest.mark.parametrize("case", NOT_GIVEN)
def test_advice_is_not_given(case: str) -> None:
    rule, facts = NOT_GIVEN[case]
    assert rule not in {one.rule for one in advice_for(facts)}


def test_every_rule_is_shown_both_ways() -> None:
    given = {rule for rule, _, _ in GIVEN.values()}
    assert {rule for rule, _ in NOT_GIVEN.values()} >= given - {"halted", "once-per-commit"}
    assert {one.rule for _, facts in NOT_GIVEN.values() for one in advice_for(facts)} <= given


@pytest.mark.parametrize("facts", [ASKING, STORING, DEFERRED], ids=["asking", "storing", "summary"])
def test_where_all_is_well_nothing_is_said(facts: Situation) -> None:
    assert advice_for(facts) == ()


@pytest.mark.parametrize("name", [name for name, one in ALGORITHMS.items() if one.levels[Transactions.LOCAL] < 4])
def test_what_is_advised_is_stronger(name: str) -> None:
    level = ALGORITHMS[name].levels[Transactions.LOCAL]
    (stronger,) = advice._stronger_algorithm(asking(algorithm=name, level=level, asked_algorithm=name))
    assert stronger.statement == "'algorithm' = 'batched-sweep'"
    assert f"complete instead of {level}" in stronger.effect
