"""The table of algorithms, and what it refuses."""

from itertools import pairwise

import pytest

from viewkeeper.algorithms.registry import ALGORITHMS, Transactions, prepare, serving
from viewkeeper.errors import AlgorithmRefused, UsageError
from viewkeeper.levels import Level
from viewkeeper.sim.script import parse_relation
from viewkeeper.sql.parse import parse_view

SIXTEEN = {
    "conventional", "recompute", "eca", "eca-key", "strobe", "t-strobe", "g-strobe", "c-strobe", "c-t-strobe",
    "periodic-c-strobe", "sweep", "parallel-sweep", "pipelined-sweep",
    "parallel-pipelined-sweep", "nested-sweep", "batched-sweep",
}  # fmt: skip
S, L, G = Transactions.SINGLE, Transactions.LOCAL, Transactions.GLOBAL


def view_of(*relations):
    parsed = [parse_relation(text)[0] for text in relations]
    names = [relation.name.split(".")[1] for relation in parsed]
    joins = " AND ".join(f"{a}.b = {b}.a" for a, b in pairwise(names))
    tables = ", ".join(relation.name for relation in parsed)
    sql = f"SELECT {names[0]}.a AS a FROM {tables}" + (f" WHERE {joins}" if joins else "")
    return parse_view(sql, {relation.name: relation for relation in parsed}, name="v")


KEYED = view_of("x.r1(a*, b):", "y.r2(a*, b):")
KEYLESS = view_of("x.r1(a*, b):", "y.r2(a, b):")
ONE_SOURCE = view_of("x.r1(a*, b):", "x.r2(a*, b):")


def test_all_sixteen_are_there_and_complete():
    assert set(ALGORITHMS) == SIXTEEN
    for algorithm in ALGORITHMS.values():
        assert algorithm.queries
        assert {S, L} <= set(algorithm.levels)


@pytest.mark.parametrize("name", [n for n, a in ALGORITHMS.items() if a.needs_keys and not a.one_source])
def test_a_relation_without_key_is_refused_by_name(name):
    with pytest.raises(AlgorithmRefused) as refused:
        prepare(name, KEYLESS, S)
    assert "y.r2" in refused.value.detail
    assert "x.r1" not in refused.value.detail
    assert "sweep" in refused.value.hint
    assert "declare the key" in refused.value.hint


@pytest.mark.parametrize("name", ["eca", "eca-key"])
def test_several_sources_are_refused_by_eca(name):
    with pytest.raises(AlgorithmRefused, match="one source") as refused:
        prepare(name, KEYED, S)
    assert "batched-sweep" in refused.value.hint


@pytest.mark.parametrize("name", ["eca", "eca-key"])
def test_global_transactions_are_refused_by_eca(name):
    with pytest.raises(AlgorithmRefused, match="global") as refused:
        prepare(name, ONE_SOURCE, G)
    assert "batched-sweep" in refused.value.hint


@pytest.mark.parametrize("name", ["strobe", "c-strobe", "eca"])
def test_what_does_not_fit_over_the_wrapper_is_refused(name):
    with pytest.raises(AlgorithmRefused) as refused:
        prepare(name, ONE_SOURCE, S, wrapped=True)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("name", "transactions", "level", "instead"),
    [
        ("strobe", L, Level.STRONG, "t-strobe"),
        ("t-strobe", G, Level.STRONG, "g-strobe"),
        ("sweep", G, Level.COMPLETE, "batched-sweep"),
        ("nested-sweep", S, Level.COMPLETE, "sweep"),
        ("recompute", S, Level.WEAK, "sweep"),
    ],
)
def test_a_level_that_is_not_reached_is_refused_and_what_reaches_it_is_named(name, transactions, level, instead):
    with pytest.raises(AlgorithmRefused, match=str(level)) as refused:
        prepare(name, KEYED, transactions, level=level)
    assert instead in refused.value.hint


def test_nothing_but_batched_sweep_is_complete_for_global_transactions():
    assert serving(G, Level.COMPLETE) == ["batched-sweep"]


def test_unknown_names_and_options():
    with pytest.raises(UsageError, match="swep"):
        prepare("swep", KEYED, S)
    with pytest.raises(UsageError, match="speed"):
        prepare("sweep", KEYED, S, options={"speed": 3})
    with pytest.raises(UsageError, match="at least 1"):
        prepare("batched-sweep", KEYED, S, options={"batch": 0})
