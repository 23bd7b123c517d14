"""Lattices: orders and their diagrams, figure 4(a), products, and the partial lattices of section 3.4."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import DefinitionError
from viewkeeper.summary.cube_lattice import Edge, Lattice, LatticeNode, cube_lattice, direct_product, partial


def node(*names):
    return LatticeNode(names)


def lattice_of(text):
    """'a>b a>c' with joins after a colon: 'a>b:s,i'."""
    edges = []
    for word in text.split():
        arrow, _, joins = word.partition(":")
        above, below = arrow.split(">")
        edges.append(Edge(above, below, frozenset(filter(None, joins.split(",")))))
    return Lattice(tuple(dict.fromkeys(end for edge in edges for end in (edge.above, edge.below))), tuple(edges))


def pairs(lattice):
    return {(edge.above, edge.below) for edge in lattice.edges}


@st.composite
def random_orders(draw):
    """Any acyclic edges over up to 8 numbered nodes, some with joins; not always a Hasse diagram."""
    count = draw(st.integers(1, 8))
    possible = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    joins = st.frozensets(st.sampled_from("si"))
    return Lattice(tuple(range(count)), tuple(Edge(above, below, draw(joins)) for above, below in chosen))


def paths(lattice, above, below):
    """All paths between two nodes, as lists of edges."""
    if above == below:
        return [[]]
    return [[edge, *rest] for edge in lattice.outgoing(above) for rest in paths(lattice, edge.below, below)]


# Lattices

DIAMOND = lattice_of("a>b a>c b>d c>d")


def test_neighbours_and_reach():
    assert DIAMOND.parents("d") == ("b", "c")
    assert DIAMOND.children("a") == ("b", "c")
    assert DIAMOND.parents("a") == DIAMOND.children("d") == ()
    assert DIAMOND.ancestors("d") == {"a", "b", "c"}
    assert DIAMOND.descendants("b") == {"d"}
    assert DIAMOND.top == "a"
    assert DIAMOND.bottom == "d"
    assert DIAMOND.edge("a", "c") == Edge("a", "c")
    assert DIAMOND.incoming("d") == (Edge("b", "d"), Edge("c", "d"))
    with pytest.raises(KeyError):
        DIAMOND.edge("a", "d")


def test_a_lattice_may_lack_top_and_bottom():
    two = lattice_of("a>c b>c a>d b>d")
    assert two.tops == ("a", "b")
    assert two.bottoms == ("c", "d")
    assert two.top is None
    assert two.bottom is None
    assert Lattice[str](()).top is None
    assert Lattice(("a",)).top == Lattice(("a",)).bottom == "a"


def test_equality_is_by_content():
    turned = Lattice(tuple(reversed(DIAMOND.nodes)), tuple(reversed(DIAMOND.edges)))
    assert turned == DIAMOND
    assert hash(turned) == hash(DIAMOND)
    assert lattice_of("a>b a>c b>d c>d:s") != DIAMOND
    assert Lattice((*DIAMOND.nodes, "e"), DIAMOND.edges) != DIAMOND
    assert DIAMOND != "a diamond"


def test_topological_goes_by_layers_and_by_the_order_of_nodes():
    assert DIAMOND.topological == ("a", "b", "c", "d")
    assert Lattice(("d", "c", "b", "a"), DIAMOND.edges).topological == ("a", "c", "b", "d")
    assert Lattice(tuple("abyx"), (Edge("a", "x"), Edge("b", "y"))).topological == tuple("abyx")


@pytest.mark.parametrize(
    ("nodes", "edges", "says"),
    [
        ("aa", [], "twice"),
        ("ab", ["ac"], "no node: c"),
        ("ab", ["ab", "ab"], "same nodes"),
        ("abc", ["ab", "ba"], "circle among or above a, b$"),
        ("a", ["aa"], "circle"),
    ],
)
def test_what_is_no_order_is_refused(nodes, edges, says):
    with pytest.raises(ValueError, match=says):
        Lattice(tuple(nodes), tuple(Edge(*edge) for edge in edges))


@given(random_orders())
def test_order_reach_and_reduction(lattice):
    place = {node: index for index, node in enumerate(lattice.topological)}
    assert place.keys() == set(lattice.nodes)
    assert all(place[edge.above] < place[edge.below] for edge in lattice.edges)
    for above in lattice.nodes:
        for below in lattice.nodes:
            reached = above != below and bool(paths(lattice, above, below))
            assert (below in lattice.descendants(above)) == (above in lattice.ancestors(below)) == reached
    reduced = lattice.reduced()
    assert all(reduced.descendants(node) == lattice.descendants(node) for node in lattice.nodes)
    assert set(reduced.edges) <= set(lattice.edges)
    assert all(len(paths(reduced, above, below)) == 1 for above, below in pairs(reduced))


# Cubes


def test_figure_4a():
    cube = cube_lattice(("storeID", "itemID", "date"))
    assert [str(point) for point in cube.topological] == [
        "(storeID, itemID, date)",
        "(storeID, itemID)",
        "(storeID, date)",
        "(itemID, date)",
        "(storeID)",
        "(itemID)",
        "(date)",
        "()",
    ]
    assert len(cube.edges) == 12
    assert cube.top == node("storeID", "itemID", "date")
    assert cube.bottom == node()
    assert pairs(cube) == {
        (above, below)
        for above in cube.nodes
        for below in cube.nodes
        if below.attributes < above.attributes and len(above.attributes - below.attributes) == 1
    }


@given(st.integers(0, 5))
def test_a_cube_is_all_subsets_by_inclusion(dimensions):
    cube = cube_lattice(tuple("abcde"[:dimensions]))
    assert len(cube.nodes) == 2**dimensions
    assert len(cube.edges) == dimensions * 2**dimensions // 2
    for point in cube.nodes:
        assert cube.descendants(point) == {other for other in cube.nodes if other.attributes < point.attributes}


def test_a_point_is_its_attributes_in_any_order():
    assert node("a", "b") == node("b", "a") == LatticeNode(frozenset("ab")) == LatticeNode(["b", "a"])
    assert len({node("a", "b"), node("b", "a")}) == 1
    assert node("a") != node("b")
    assert str(LatticeNode({"c", "b", "a"})) == "(a, b, c)"
    with pytest.raises(ValueError, match="twice: a, a"):
        node("a", "a")


def test_a_product_keeps_the_joins_of_its_factors():
    stores = Lattice((node("store"), node("city")), (Edge(node("store"), node("city"), frozenset({"stores"})),))
    dates = cube_lattice(("date",))
    combined = direct_product(stores, dates)
    assert combined.edge(node("store", "date"), node("city", "date")).joins == {"stores"}
    assert combined.edge(node("store", "date"), node("store")).joins == frozenset()
    assert len(combined.edges) == 4


def test_a_product_with_nothing_is_the_same():
    cube = cube_lattice(("a", "b"))
    assert direct_product(cube) == direct_product(cube, Lattice((node(),))) == cube
    assert direct_product() == Lattice((node(),))


def test_a_dimension_is_named_once():
    with pytest.raises(DefinitionError, match=r"^b: in two dimensions") as refused:
        cube_lattice(("a", "b", "b"))
    assert "once" in refused.value.hint


# Partial lattices (section 3.4)


def test_what_is_above_a_removed_node_meets_what_is_below():
    assert partial(lattice_of("a>b b>c b>d"), "acd") == lattice_of("a>c a>d")
    assert partial(lattice_of("a>c b>c c>d c>e"), "abde") == lattice_of("a>d a>e b>d b>e")


def test_an_edge_that_a_path_implies_is_left_out():
    assert partial(DIAMOND, "abd") == lattice_of("a>b b>d")


def test_without_top_and_bottom_it_is_only_an_order():
    middle = partial(cube_lattice("abc"), [point for point in cube_lattice("abc").nodes if 0 < len(point.names) < 3])
    assert len(middle.tops) == len(middle.bottoms) == 3
    assert len(middle.edges) == 6


def test_joins_are_gathered_along_a_path():
    assert partial(lattice_of("a>b:s b>c:i"), "ac") == lattice_of("a>c:s,i")


def test_of_several_paths_only_the_joins_of_all_are_needed():
    assert partial(lattice_of("a>b:s a>c:i b>d c>d:s"), "ad") == lattice_of("a>d:s")


def test_what_is_kept_must_be_there():
    with pytest.raises(ValueError, match="no node of the lattice: x, y"):
        partial(DIAMOND, {"a", "y", "x"})


@given(random_orders(), st.data())
def test_partial_is_the_same_order_on_what_is_kept(lattice, data):
    kept = data.draw(st.sets(st.sampled_from(lattice.nodes)))
    left = partial(lattice, kept)
    assert set(left.nodes) == kept
    for above in kept:
        assert left.descendants(above) == lattice.descendants(above) & kept
    assert left == left.reduced()
    for edge in left.edges:
        unions = [frozenset().union(*(e.joins for e in path)) for path in paths(lattice, edge.above, edge.below)]
        assert edge.joins == frozenset.intersection(*unions)


@given(random_orders(), st.data())
def test_nodes_may_be_removed_one_by_one_or_together(lattice, data):
    kept = data.draw(st.sets(st.sampled_from(lattice.nodes)))
    step = lattice.reduced()
    for gone in data.draw(st.permutations([node for node in lattice.nodes if node not in kept])):
        step = partial(step, set(step.nodes) - {gone})
    assert pairs(step) == pairs(partial(lattice, kept))
