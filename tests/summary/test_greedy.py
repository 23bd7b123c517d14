"""The greedy choice of views: examples after Harinarayan, Rajaraman and Ullman, and its promises.

The paper is not at hand here: sizes are reconstructed, and the expected benefits follow from the definition.
"""

from itertools import combinations
from math import e

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import UsageError
from viewkeeper.summary.cube_lattice import Edge, Lattice, LatticeNode, cube_lattice, partial
from viewkeeper.summary.greedy import choose, estimated_sizes, total_cost
from viewkeeper.summary.hierarchies import Hierarchy, combined_lattice

M = 1_000_000


def lattice_of(*edges):
    ends = [edge.split(">") for edge in edges]
    return Lattice(tuple(dict.fromkeys(end for pair in ends for end in pair)), tuple(Edge(*pair) for pair in ends))


def node(*names):
    return LatticeNode(names)


def letters(text):
    """The point of a cube whose columns have one letter each."""
    return LatticeNode(tuple(text))


# Examples after the paper

EIGHT = lattice_of("a>b", "a>c", "b>d", "b>e", "c>e", "c>f", "d>g", "e>g", "e>h", "f>h")
EIGHT_SIZES = {"a": 100, "b": 50, "c": 75, "d": 20, "e": 30, "f": 40, "g": 1, "h": 10}


def test_the_example_of_eight_views():
    chosen = choose(EIGHT, EIGHT_SIZES, "a", count=3)
    assert [(choice.node, choice.benefit) for choice in chosen] == [("b", 50 * 5), ("f", 60 + 10), ("d", 30 + 30)]
    assert [choice.cost_after for choice in chosen] == [550, 480, 420]
    assert [choice.total_space for choice in chosen] == [150, 190, 210]
    assert [choice.size for choice in chosen] == [50, 40, 20]
    assert total_cost(EIGHT, EIGHT_SIZES, ["a"]) == 800


def test_the_first_round_of_the_eight_views():
    """The first column of the paper's table of benefits: what each view alone would save."""
    saved = {v: 800 - total_cost(EIGHT, EIGHT_SIZES, ["a", v]) for v in "bcdefgh"}
    assert saved == {"b": 250, "c": 125, "d": 160, "e": 210, "f": 120, "g": 99, "h": 90}


def test_part_supplier_customer():
    """TPC-D: three views are as large as the base or nearly; dropping pc and sc costs nothing."""
    cube = cube_lattice("psc")
    rows = {"psc": 6 * M, "pc": 6 * M, "ps": 0.8 * M, "sc": 6 * M, "p": 0.2 * M, "s": 0.01 * M, "c": 0.1 * M, "": 1}
    sizes = {letters(names): size for names, size in rows.items()}
    chosen = choose(cube, sizes, letters("psc"), count=7)
    assert [(choice.node, choice.benefit) for choice in chosen] == [
        (letters("ps"), 4 * 5.2 * M),
        (letters("c"), 5.9 * M + 0.7 * M),
        (letters("s"), 0.79 * M + 0.09 * M),
        (letters("p"), 0.6 * M),
        (letters(""), 0.01 * M - 1),
    ]
    # Storing all eight takes 19 million rows; without pc and sc it is 7.11 million, and no question costs more.
    assert chosen[-1].total_space == 7.11 * M + 1
    assert chosen[-1].cost_after == total_cost(cube, sizes, cube.nodes)


def test_hierarchies_of_customers_and_parts():
    """TPC-D with nations above customers, sizes and types above parts."""
    parts = Hierarchy("parts", (("p", "s"), ("p", "t")))
    customers = Hierarchy.chain("customers", ("c", "n"))
    lattice = combined_lattice(("c", "p"), (customers, parts))
    rows = {"cp": 6 * M, "cs": 5 * M, "ct": 5.99 * M, "np": 5 * M, "ns": 1250, "nt": 3750}
    rows |= {"c": 0.1 * M, "p": 0.2 * M, "n": 25, "s": 50, "t": 150, "": 1}
    sizes = {letters(names): size for names, size in rows.items()}
    assert total_cost(lattice, sizes, [letters("cp")]) == 72 * M
    chosen = choose(lattice, sizes, letters("cp"), count=7)
    assert ["".join(choice.node.names) for choice in chosen] == ["ns", "nt", "c", "p", "cs", "np", "ct"]
    rounded = [24 * M, 12 * M, 5.9 * M, 5.8 * M, 1 * M, 1 * M, 0.01 * M]
    assert [choice.benefit for choice in chosen] == pytest.approx(rounded, rel=0.001)
    rounded = [48 * M, 36 * M, 30.1 * M, 24.3 * M, 23.3 * M, 22.3 * M, 22.3 * M]
    assert [choice.cost_after for choice in chosen] == pytest.approx(rounded, rel=0.001)
    rounded = [6 * M, 6 * M, 6.1 * M, 6.3 * M, 11.3 * M, 16.3 * M, 22.3 * M]
    assert [choice.total_space for choice in chosen] == pytest.approx(rounded, rel=0.001)


def test_the_example_where_greedy_is_at_three_quarters():
    """Greedy takes c first, by a hair, and then only half of b or d; the best pair is b and d."""
    groups = {"b": "pq", "c": "qr", "d": "rs"}
    edges = [f"a>{v}" for v in "bcd"] + [f"{v}>{g}{i}" for v in "bcd" for g in groups[v] for i in range(20)]
    lattice = lattice_of(*edges)
    sizes = {"a": 200, "b": 100, "c": 99, "d": 100}
    sizes |= {name: 97 for name in lattice.nodes if name not in sizes}
    chosen = choose(lattice, sizes, "a", count=2)
    assert [(choice.node, choice.benefit) for choice in chosen] == [("c", 41 * 101), ("b", 21 * 100)]
    best = total_cost(lattice, sizes, "a") - total_cost(lattice, sizes, "abd")
    assert best == 8200
    assert sum(choice.benefit for choice in chosen) == 6241


# What it promises

WEIGHTS = st.integers(0, 5)


@st.composite
def sized_lattices(draw):
    """A part of a cube with its top, and sizes that shrink downwards, or do not."""
    cube = cube_lattice("abc"[: draw(st.integers(1, 3))])
    kept = draw(st.sets(st.sampled_from(cube.nodes))) | {cube.top}
    lattice = partial(cube, kept)
    sizes = {}
    for point in lattice.topological:
        most = min((sizes[parent] for parent in lattice.parents(point)), default=100)
        sizes[point] = draw(st.integers(1, draw(st.sampled_from((most, 100)))))
    return lattice, sizes


def cost_by_definition(lattice, sizes, stored, weights):
    return sum(
        weights.get(w, 1) * min(sizes[v] for v in stored if v == w or v in lattice.ancestors(w)) for w in lattice.nodes
    )


@given(sized_lattices(), st.integers(1, 4))
def test_greedy_has_63_percent_of_the_best_benefit(sized, count):
    lattice, sizes = sized
    before = total_cost(lattice, sizes, [lattice.top])
    chosen = choose(lattice, sizes, lattice.top, count=count)
    others = [point for point in lattice.nodes if point != lattice.top]
    best = max(
        before - total_cost(lattice, sizes, (lattice.top, *some))
        for some in combinations(others, min(count, len(others)))
    )
    assert best >= sum(choice.benefit for choice in chosen) >= (1 - 1 / e) * best
    assert len(chosen) <= count


@given(sized_lattices(), st.data())
def test_every_step_has_the_most_benefit_and_says_what_follows(sized, data):
    lattice, sizes = sized
    weights = data.draw(st.dictionaries(st.sampled_from(lattice.nodes), WEIGHTS))
    stored = [lattice.top]
    for choice in choose(lattice, sizes, lattice.top, count=len(lattice.nodes), weights=weights):
        before = cost_by_definition(lattice, sizes, stored, weights)
        gains = {
            v: before - cost_by_definition(lattice, sizes, [*stored, v], weights)
            for v in lattice.nodes
            if v not in stored
        }
        assert choice.benefit == gains[choice.node] == max(gains.values()) > 0
        stored.append(choice.node)
        assert choice.cost_after == total_cost(lattice, sizes, stored, weights) == before - choice.benefit
        assert choice.total_space == sum(sizes[v] for v in stored)
    # It ends only when nothing more is to be gained.
    assert total_cost(lattice, sizes, stored, weights) == total_cost(lattice, sizes, lattice.nodes, weights)


@given(sized_lattices(), st.integers(0, 200))
def test_a_space_budget_is_kept_and_each_step_has_the_most_benefit_per_row(sized, budget):
    lattice, sizes = sized
    stored = [lattice.top]
    room = budget
    for choice in [*choose(lattice, sizes, lattice.top, space_budget=budget), None]:
        before = cost_by_definition(lattice, sizes, stored, {})
        per_row = {
            v: (before - cost_by_definition(lattice, sizes, [*stored, v], {})) / sizes[v]
            for v in lattice.nodes
            if v not in stored and sizes[v] <= room
        }
        if choice is None:
            assert all(worth == 0 for worth in per_row.values())
            break
        assert per_row[choice.node] == max(per_row.values()) > 0
        stored.append(choice.node)
        room -= choice.size
    assert room >= 0


def test_what_does_not_fit_is_skipped_for_what_does():
    chosen = choose(EIGHT, EIGHT_SIZES, "a", space_budget=35)
    assert [choice.node for choice in chosen] == ["g", "h", "d"]
    assert chosen[-1].total_space == 100 + 1 + 10 + 20


def test_a_view_without_rows_is_worth_its_space():
    chosen = choose(lattice_of("a>b", "a>c"), {"a": 9, "b": 0, "c": 1}, "a", space_budget=0)
    assert [choice.node for choice in chosen] == ["b"]


def test_weights_turn_the_choice():
    assert choose(EIGHT, EIGHT_SIZES, "a", count=1, weights={"f": 100})[0].node == "f"
    assert choose(EIGHT, EIGHT_SIZES, "a", count=1, weights=dict.fromkeys(EIGHT.nodes, 0)) == []
    assert total_cost(EIGHT, EIGHT_SIZES, "a", {"f": 3}) == 1000


@pytest.mark.parametrize("order", [("a", "b", "c", "d"), ("d", "c", "b", "a"), ("c", "d", "a", "b")])
def test_among_equals_the_smaller_then_the_earlier_goes_first(order):
    fork = Lattice(order, tuple(Edge("a", below) for below in "bcd"))
    sizes = {"a": 10, "b": 5, "c": 5, "d": 4}
    weights = {"b": 6, "c": 6, "d": 5}
    first = [choice.node for choice in choose(fork, sizes, "a", count=3, weights=weights)]
    assert first == ["d", *(name for name in order if name in "bc")]


@pytest.mark.parametrize("limits", [{}, {"count": 2, "space_budget": 10}])
def test_one_limit_is_needed(limits):
    with pytest.raises(UsageError, match="needs one limit") as refused:
        choose(EIGHT, EIGHT_SIZES, "a", **limits)
    assert "not both" in refused.value.hint


@pytest.mark.parametrize(
    ("sizes", "top", "weights", "says"),
    [
        ({"b": -1}, "a", {}, "no size for b"),
        ({"b": float("nan")}, "a", {}, "no size for b"),
        ({}, "x", {}, "no view of the lattice: x"),
        ({}, "b", {}, "not to be computed from what is stored: a, c, f"),
        ({}, "a", {"x": 1}, "no weight of a view: x"),
        ({}, "a", {"b": -1}, "no weight of a view: b"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(sizes, top, weights, says):
    with pytest.raises(UsageError) as refused:
        choose(EIGHT, EIGHT_SIZES | sizes, top, count=1, weights=weights)
    assert refused.value.detail == says
    assert refused.value.hint


def test_every_view_has_a_size():
    with pytest.raises(UsageError, match="no size for g, h"):
        total_cost(EIGHT, {name: size for name, size in EIGHT_SIZES.items() if name not in "gh"}, "a")


# Estimated sizes

RETAIL = Hierarchy.chain("stores", ("storeID", "city", "region")), Hierarchy.chain("items", ("itemID", "category"))
DISTINCT = {"storeID": 100, "city": 50, "region": 10, "itemID": 1000, "category": 20, "date": 100}


def test_sizes_of_the_retail_lattice():
    lattice = combined_lattice(("storeID", "itemID", "date"), RETAIL)
    sizes = estimated_sizes(lattice, DISTINCT, M, RETAIL)
    assert sizes[node()] == 1
    assert sizes[node("region")] == 10
    assert sizes[node("city", "date")] == 5_000
    assert sizes[node("storeID", "category")] == 2_000
    # 10 million possible groups, a million rows: some rows meet in one group.
    assert sizes[lattice.top] == 951_626
    assert sizes[node("storeID", "itemID")] == 99_995


def test_a_column_that_another_determines_makes_no_more_groups():
    cube = cube_lattice(("storeID", "region"))
    assert estimated_sizes(cube, DISTINCT, M, RETAIL)[cube.top] == 100
    assert estimated_sizes(cube, DISTINCT, M)[cube.top] == 1000


@given(st.integers(0, 10**9), st.lists(st.integers(1, 10**9), min_size=1, max_size=4))
def test_estimates_stay_within_their_bounds(rows, counts):
    names = "abcd"[: len(counts)]
    cube = cube_lattice(names)
    sizes = estimated_sizes(cube, dict(zip(names, counts, strict=True)), rows)
    for point in cube.nodes:
        possible = 1
        for name in point.attributes:
            possible *= counts[names.index(name)]
        if point.attributes:
            assert min(rows, 1) <= sizes[point] <= min(rows, possible)
            # 1 − 1/e of the smaller bound is the least that Cardenas' formula gives; rounding takes at most a half.
            assert sizes[point] >= (1 - 1 / e) * min(rows, possible) * (1 - 1e-9) - 0.5
        else:
            assert sizes[point] == 1


def test_distinct_counts_are_needed():
    with pytest.raises(UsageError, match="no number of distinct values for city, region"):
        estimated_sizes(cube_lattice(("region", "city", "date")), {"date": 3}, 10)
