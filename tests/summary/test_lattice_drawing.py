"""Drawings of lattices: well-formed, complete, escaped, and with boxes, lines and labels clear of each other."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.summary.cube_lattice import Edge, Lattice, cube_lattice, partial
from viewkeeper.summary.hierarchies import Hierarchy, annotated, combined_lattice
from viewkeeper.summary.lattice_drawing import as_text, draw
from viewkeeper.summary.lattice_layout import Box, crossings, lay_out, layers_of
from viewkeeper.summary.lattice_svg import text_width

SVG = "{http://www.w3.org/2000/svg}"
BY_STORE, BY_ITEM = frozenset({"stores"}), frozenset({"items"})

RETAIL = Lattice(
    ("SID", "sCD", "SiC_dates", "SiC", "sR"),
    (
        Edge("SID", "sCD", BY_STORE),
        Edge("SID", "SiC_dates", BY_ITEM),
        Edge("SiC_dates", "SiC"),
        Edge("sCD", "sR"),
        Edge("SiC", "sR", BY_STORE),
    ),
)
LABELS = {
    "SID": ("SID_sales", "storeID, itemID, date", "100,000 rows", "41 ms"),
    "sCD": ("sCD_sales", "city, date", "10,000 rows"),
    "sR": ("sR_sales", "region"),
}
CHOSEN = (("SID", "sCD"), ("SID", "SiC_dates"), ("SiC_dates", "SiC"), ("sCD", "sR"))


def with_names(lattice):
    edges = tuple(Edge(str(edge.above), str(edge.below), edge.joins) for edge in lattice.edges)
    return Lattice(tuple(map(str, lattice.nodes)), edges)


STORES = Hierarchy.chain("stores", ("storeID", "city", "region"))
ITEMS = Hierarchy.chain("items", ("itemID", "category"))
FIGURE_5 = combined_lattice(("storeID", "itemID", "date"), (STORES, ITEMS))


@st.composite
def lattices(draw_):
    """Parts of figure 5: wide ones, deep ones, with long edges and without a top."""
    kept = draw_(st.sets(st.sampled_from(FIGURE_5.nodes)))
    return with_names(annotated(partial(FIGURE_5, kept), (STORES, ITEMS)))


def parsed(svg):
    return ET.fromstring(svg)


def all_with(root, attribute, kind=""):
    return [e for e in root.iter() if attribute in e.attrib and kind in ("", *e.get("class", "").split())]


def boxes_of(root):
    """The rectangle of each node, as it is in the SVG."""
    return {
        group.get("data-node"): Box(
            *(float(group.find(f"{SVG}rect").get(side)) for side in ("x", "y", "width", "height"))
        )
        for group in all_with(root, "data-node")
    }


def lines_of(root):
    """The points of each edge, as they are in the SVG."""
    return {
        (path.get("data-above"), path.get("data-below")): [
            tuple(map(float, point.split())) for point in re.split("[ML]", path.find(f"{SVG}path").get("d"))[1:]
        ]
        for path in all_with(root, "data-above", "edge")
    }


def texts(element):
    return [text.text for text in element.iter(f"{SVG}text")]


# The picture


@given(lattices())
def test_every_node_and_edge_is_there_once(lattice):
    root = parsed(draw(lattice, title="t"))
    assert sorted(e.get("data-node") for e in all_with(root, "data-node")) == sorted(lattice.nodes)
    drawn = [(e.get("data-above"), e.get("data-below")) for e in all_with(root, "data-above", "edge")]
    assert sorted(drawn) == sorted((edge.above, edge.below) for edge in lattice.edges)
    joins = {(e.get("data-above"), e.get("data-below")): e.text for e in all_with(root, "data-above", "join")}
    assert joins == {
        (edge.above, edge.below): " ".join(f"⋈ {table}" for table in sorted(edge.joins))
        for edge in lattice.edges
        if edge.joins
    }


@given(lattices())
def test_boxes_do_not_overlap_and_no_line_crosses_one(lattice):
    root = parsed(draw(lattice, title="t"))
    boxes = boxes_of(root)
    for one, other in combinations(boxes.values(), 2):
        assert not one.overlaps(other)
    for (above, below), points in lines_of(root).items():
        upper, lower = boxes[above], boxes[below]
        assert upper.x <= points[0][0] <= upper.x + upper.width
        assert points[0][1] == pytest.approx(upper.y + upper.height, abs=0.11)
        assert lower.x <= points[-1][0] <= lower.x + lower.width
        assert points[-1][1] == pytest.approx(lower.y, abs=0.11)
        for start, end in pairwise(points):
            for box in boxes.values():
                for step in range(41):
                    x = start[0] + (end[0] - start[0]) * step / 40
                    y = start[1] + (end[1] - start[1]) * step / 40
                    inside = box.x < x < box.x + box.width and box.y + 0.2 < y < box.y + box.height - 0.2
                    assert not inside, (above, below, x, y)


@given(lattices(), st.text(max_size=30))
def test_all_is_within_the_picture(lattice, title):
    root = parsed(draw(lattice, title=title))
    _, _, width, height = map(float, root.get("viewBox").split())
    group = next(e for e in root.iter(f"{SVG}g") if e.get("class") == "lattice")
    across, down = map(float, re.findall(r"[\d.]+", group.get("transform")))
    for box in boxes_of(root).values():
        assert box.x + across >= 0
        assert box.y + down >= 30
        assert box.x + box.width + across <= width
        assert box.y + box.height + down <= height
    for points in lines_of(root).values():
        assert all(0 <= x + across <= width for x, _ in points)
    assert text_width(title) <= width - 40


def test_a_box_has_its_lines_and_room_for_them():
    root = parsed(draw(RETAIL, LABELS, title="t"))
    boxes = boxes_of(root)
    for group in all_with(root, "data-node"):
        node = group.get("data-node")
        assert texts(group) == list(LABELS.get(node, (node,)))
        assert group.find(f"{SVG}text").get("class") == "name"
        box = boxes[node]
        for text in group.iter(f"{SVG}text"):
            assert box.y + 10 <= float(text.get("y")) <= box.y + box.height - 4
            assert text_width(text.text) <= box.width
            assert float(text.get("x")) == pytest.approx(box.x + box.width / 2, abs=0.11)
        heights = [float(text.get("y")) for text in group.iter(f"{SVG}text")]
        assert all(after - before >= 15 for before, after in pairwise(heights))


def test_chosen_edges_other_edges_and_hidden_nodes_look_different():
    root = parsed(draw(RETAIL, LABELS, title="t", chosen_edges=CHOSEN, hidden={"SiC_dates"}))
    kinds = {(e.get("data-above"), e.get("data-below")): e.get("class") for e in all_with(root, "data-above", "edge")}
    assert kinds == dict.fromkeys(CHOSEN, "edge chosen") | {("SiC", "sR"): "edge other"}
    assert {e.get("data-node") for e in all_with(root, "data-node", "hidden")} == {"SiC_dates"}
    style = root.find(f"{SVG}style").text
    for rule in (".edge.chosen path", ".edge.other path", ".node.hidden rect"):
        assert style.count(rule) == 2, "once for light, once for dark"
    plain = parsed(draw(RETAIL, title="t"))
    assert {e.get("class") for e in all_with(plain, "data-above", "edge")} == {"edge"}


def test_doubtful_edges_look_different_and_nothing_hangs_on_them():
    doubtful = [("SiC", "sR"), ("sCD", "sR")]
    root = parsed(draw(RETAIL, title="t", chosen_edges=CHOSEN[:3], doubtful_edges=doubtful))
    kinds = {(e.get("data-above"), e.get("data-below")): e.get("class") for e in all_with(root, "data-above", "edge")}
    assert kinds == dict.fromkeys(CHOSEN[:3], "edge chosen") | dict.fromkeys(doubtful, "edge doubtful")
    assert root.find(f"{SVG}style").text.count(".edge.doubtful path") == 2, "once for light, once for dark"
    for chosen in (None, CHOSEN[:3]):
        lines = as_text(RETAIL, chosen_edges=chosen, doubtful_edges=doubtful).splitlines()
        assert lines[-1] == "sR  (if every foreign key held, from sCD, SiC ⋈ stores)"
    below = as_text(RETAIL, chosen_edges=CHOSEN, doubtful_edges=doubtful[:1]).splitlines()[2]
    assert below == "│  └─ sR  (if every foreign key held, from SiC ⋈ stores)"


@pytest.mark.parametrize(
    ("lattice", "options", "says"),
    [
        (RETAIL, {}, ["can be derived from", "a join with"]),
        (RETAIL, {"doubtful_edges": [("SiC", "sR")]}, ["can be derived from", "every foreign key", "a join with"]),
        (RETAIL, {"chosen_edges": CHOSEN}, ["is derived this way", "could be", "a join with"]),
        (RETAIL, {"hidden": ["SiC"]}, ["can be derived from", "a join with", "not a view"]),
        (Lattice(("a", "b"), (Edge("a", "b"),)), {}, ["can be derived from"]),
        (Lattice(("a",)), {"chosen_edges": ()}, []),
    ],
)
def test_the_legend_has_what_the_picture_has(lattice, options, says):
    root = parsed(draw(lattice, title="t", **options))
    legend = next(e for e in root.iter(f"{SVG}g") if e.get("class") == "legend")
    rows = [texts(row)[-1] for row in legend]
    assert len(rows) == len(says)
    assert all(word in row for word, row in zip(says, rows, strict=True))


NASTY = "a<b>&\"'c\x00\ud800]]>"
CLEAN = "a<b>&\"'c\ufffd\ufffd]]>"


def test_what_xml_has_a_meaning_for_is_escaped():
    lattice = Lattice((NASTY, "b"), (Edge(NASTY, "b"),))
    root = parsed(draw(lattice, {"b": ("b", NASTY)}, {(NASTY, "b"): NASTY}, title=NASTY))
    assert root.find(f"{SVG}title").text == CLEAN
    assert {e.get("data-node"): texts(e) for e in all_with(root, "data-node")} == {CLEAN: [CLEAN], "b": ["b", CLEAN]}
    (edge,) = all_with(root, "data-above", "edge")
    assert edge.get("data-above") == CLEAN
    (label,) = all_with(root, "data-above", "join")
    assert label.text == CLEAN


@given(st.text(min_size=1), st.text())
def test_any_text_gives_xml(name, line):
    # A carriage return is a line feed to an XML reader; spaces in attributes are as they are.
    root = parsed(draw(Lattice((name,)), {name: ("n", line)}, title=line))
    assert len(all_with(root, "data-node")) == 1
    assert len(texts(all_with(root, "data-node")[0])) == 2


def test_it_stands_by_itself_and_is_told_to_those_who_do_not_see_it():
    svg = draw(RETAIL, LABELS, title="Retail", chosen_edges=CHOSEN)
    root = parsed(svg)
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert root.find(f"{SVG}title").text == "Retail"
    assert root.find(f"{SVG}desc").text == as_text(RETAIL, LABELS, chosen_edges=CHOSEN)
    assert not re.findall(r"<script|href|url\(|@import|@font-face|\son\w+=|\sid=", svg)
    assert svg.count("http") == 1, "the namespace only"
    assert "prefers-color-scheme: dark" in svg
    first_shape = next(e for e in root if e.tag == f"{SVG}rect")
    assert (first_shape.get("class"), first_shape.get("width")) == ("paper", "100%")


def test_edge_labels_replace_joins():
    root = parsed(draw(RETAIL, edge_labels={("SID", "sCD"): "nightly", ("SiC", "sR"): ""}, title="t"))
    joins = {(e.get("data-above"), e.get("data-below")): e.text for e in all_with(root, "data-above", "join")}
    assert joins == {("SID", "sCD"): "nightly", ("SID", "SiC_dates"): "⋈ items"}


def test_labels_of_a_fan_are_clear_of_each_other():
    fan = Lattice(("t", *"abcdef"), tuple(Edge("t", below, BY_STORE | BY_ITEM) for below in "abcdef"))
    root = parsed(draw(fan, title="t"))
    boxes = [
        Box(float(e.get("x")) - text_width(e.text) / 2, float(e.get("y")) - 12, text_width(e.text), 16)
        for e in all_with(root, "data-above", "join")
    ]
    assert len(boxes) == 6
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_a_label_is_off_the_lines_of_other_edges():
    """All of two lead to both of two: the lines cross in the middle, where the label would be by itself."""
    crossed = Lattice(tuple("abxy"), tuple(Edge(above, below) for above in "ab" for below in "xy"))
    root = parsed(draw(crossed, edge_labels={("a", "y"): "⋈"}, title="t"))
    (label,) = all_with(root, "data-above", "join")
    (x1, y1), (x2, y2) = lines_of(root)["b", "x"]
    height = float(label.get("y")) - 4
    other = x1 + (x2 - x1) * (height - y1) / (y2 - y1)
    assert abs(float(label.get("x")) - other) > text_width("⋈") / 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"labels": {"x": ("x",)}}, "labels that are not in the lattice: x"),
        ({"edge_labels": {("SID", "sR"): "?"}}, "edge labels that are not in the lattice"),
        ({"chosen_edges": [("SID", "sR")]}, "chosen edges that are not in the lattice"),
        ({"hidden": ["x", "y"]}, "hidden nodes that are not in the lattice: x, y"),
        ({"doubtful_edges": [("SID", "sR")]}, "doubtful edges that are not in the lattice"),
    ],
)
def test_what_is_not_in_the_lattice_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        draw(RETAIL, title="t", **arguments)
    with pytest.raises(ValueError, match=says):
        as_text(RETAIL, **arguments)


def test_an_empty_lattice_is_an_empty_picture():
    root = parsed(draw(Lattice(()), title="nothing yet"))
    assert all_with(root, "data-node") == []
    assert as_text(Lattice(())) == ""


def test_the_same_lattice_gives_the_same_picture():
    assert draw(RETAIL, LABELS, title="t") == draw(RETAIL, LABELS, title="t")


def test_wide_characters_take_two_places_and_marks_none():
    assert text_width("ab") == text_width("店") == text_width("e\u0301b")


# The layout


def test_layers_are_longest_paths_from_the_top():
    assert layers_of(RETAIL) == {"SID": 0, "sCD": 1, "SiC_dates": 1, "SiC": 2, "sR": 3}


def test_crossings_are_counted():
    down = {("a", 0): [("y", 1), ("z", 1)], ("b", 0): [("x", 1), ("y", 1)]}
    upper, lower = [("a", 0), ("b", 0)], [("x", 1), ("y", 1), ("z", 1)]
    assert crossings([upper, lower], down) == 3
    assert crossings([upper[::-1], lower], down) == 0
    assert crossings([upper, lower[::-1]], down) == 0


def sides(layout, names):
    return sorted(names, key=lambda name: layout.boxes[name].x)


def test_barycentres_untangle_what_was_given_tangled():
    """Three chains from one top, named in orders that would cross thrice in each layer."""
    chains = Lattice(
        ("t", "a1", "b1", "c1", "c2", "b2", "a2", "b3", "c3", "a3"),
        tuple(Edge("t", f"{x}1") for x in "abc") + tuple(Edge(f"{x}{i}", f"{x}{i + 1}") for x in "abc" for i in (1, 2)),
    )
    layout = lay_out(chains, dict.fromkeys(chains.nodes, (50, 20)))
    orders = [[name[0] for name in sides(layout, [f"{x}{i}" for x in "abc"])] for i in (1, 2, 3)]
    assert orders[0] == orders[1] == orders[2]
    for x in "abc":
        middles = [layout.boxes[f"{x}{i}"].centre for i in (1, 2, 3)]
        assert max(middles) - min(middles) < 1, "a chain is a straight line"


def test_a_cube_is_as_wide_as_its_widest_layer_and_little_more():
    cube = with_names(cube_lattice("abcd"))
    layout = lay_out(cube, dict.fromkeys(cube.nodes, (100, 20)))
    assert 6 * 100 + 5 * 28 <= layout.width <= 8 * 128


# The text


def test_as_text_of_the_retail_tables():
    assert as_text(RETAIL, LABELS, chosen_edges=CHOSEN, hidden={"SiC_dates"}) == (
        "SID_sales  storeID, itemID, date · 100,000 rows · 41 ms\n"
        "├─ sCD_sales  city, date · 10,000 rows  ⋈ stores\n"
        "│  └─ sR_sales  region  (or from SiC ⋈ stores)\n"
        "└─ SiC_dates  [hidden]  ⋈ items\n"
        "   └─ SiC\n"
    )


def test_as_text_follows_the_choice():
    other = [*CHOSEN[:3], ("SiC", "sR")]
    assert as_text(RETAIL, chosen_edges=other, edge_labels={("sCD", "sR"): "in vain"}) == (
        "SID\n├─ sCD  ⋈ stores\n└─ SiC_dates  ⋈ items\n   └─ SiC\n      └─ sR  ⋈ stores  (or from sCD in vain)\n"
    )


def test_as_text_without_a_choice_takes_the_first_parent():
    assert as_text(RETAIL) == (
        "SID\n├─ sCD  ⋈ stores\n│  └─ sR  (or from SiC ⋈ stores)\n└─ SiC_dates  ⋈ items\n   └─ SiC\n"
    )


def test_what_has_no_chosen_parent_starts_a_tree():
    assert as_text(RETAIL, chosen_edges=[("SID", "sCD")]) == (
        "SID\n"
        "└─ sCD  ⋈ stores\n"
        "SiC_dates  (or from SID ⋈ items)\n"
        "SiC  (or from SiC_dates)\n"
        "sR  (or from sCD, SiC ⋈ stores)\n"
    )


@given(lattices())
def test_every_node_has_one_line(lattice):
    lines = as_text(lattice).splitlines()
    names = [re.match(r"[│├└─ ]*(\([^)]*\))", line)[1] for line in lines]
    assert sorted(names) == sorted(lattice.nodes)
