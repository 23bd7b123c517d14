"""A lattice of summary tables as a picture and as text.

    bold line     the table below is derived along it          SID_sales  storeID, itemID, date · 100,000 rows
    dashed line   it could be as well                          ├─ sCD_sales  city, date · 10,000 rows  ⋈ stores
    dotted line   it could be if every foreign key held        │  └─ sR_sales  region  (or from SiC_sales ⋈ stores)
    dashed box    a node that serves others and is no view

`draw` gives SVG that stands by itself, `as_text` the same for a terminal: a tree of what is derived from what. Both
take the same arguments:

- `labels`: the lines of a box, its name first; a node without them is called by itself.
- `edge_labels`: what to write at a line, instead of the joins of the edge.
- `chosen_edges`: the (above, below) along which tables are derived; without them no line is told from the others.
- `hidden`: the nodes that are no views.
- `doubtful_edges`: those that hold only if every foreign key finds its row.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from viewkeeper.summary.cube_lattice import Lattice
from viewkeeper.summary.lattice_svg import Ends, Picture, as_svg


def draw(
    lattice: Lattice[str],
    labels: Mapping[str, Sequence[str]] | None = None,
    edge_labels: Mapping[Ends, str] | None = None,
    *,
    title: str,
    chosen_edges: Collection[Ends] | None = None,
    hidden: Collection[str] = (),
    doubtful_edges: Collection[Ends] = (),
) -> str:
    """The lattice as SVG; its description, for those who do not see it, is the text."""
    picture = _picture(lattice, labels, edge_labels, chosen_edges, hidden, doubtful_edges)
    return as_svg(picture, title, _tree(picture))


def as_text(
    lattice: Lattice[str],
    labels: Mapping[str, Sequence[str]] | None = None,
    edge_labels: Mapping[Ends, str] | None = None,
    *,
    chosen_edges: Collection[Ends] | None = None,
    hidden: Collection[str] = (),
    doubtful_edges: Collection[Ends] = (),
) -> str:
    """The lattice as a tree: each node below its chosen parent, with its other parents mentioned.

    Without `chosen_edges` a node is below its first parent; with them, one that has no chosen parent starts a tree.
    """
    return _tree(_picture(lattice, labels, edge_labels, chosen_edges, hidden, doubtful_edges))


def _picture(
    lattice: Lattice[str],
    labels: Mapping[str, Sequence[str]] | None,
    edge_labels: Mapping[Ends, str] | None,
    chosen_edges: Collection[Ends] | None,
    hidden: Collection[str],
    doubtful_edges: Collection[Ends],
) -> Picture:
    joins = {(edge.above, edge.below): " ".join(f"⋈ {t}" for t in sorted(edge.joins)) for edge in lattice.edges}
    nodes, ends = set(lattice.nodes), joins.keys()
    for what, given, known in (
        ("labels", labels or {}, nodes),
        ("edge labels", edge_labels or {}, ends),
        ("chosen edges", chosen_edges or (), ends),
        ("hidden nodes", hidden, nodes),
        ("doubtful edges", doubtful_edges, ends),
    ):
        if strange := sorted(str(one) for one in given if one not in known):
            raise ValueError(f"{what} that are not in the lattice: {', '.join(strange)}")
    return Picture(
        lattice,
        {node: tuple((labels or {}).get(node) or (node,)) for node in lattice.nodes},
        joins | dict(edge_labels or {}),
        None if chosen_edges is None else frozenset(chosen_edges),
        frozenset(hidden),
        frozenset(doubtful_edges),
    )


def _tree(picture: Picture) -> str:
    lattice, chosen = picture.lattice, picture.chosen
    parent: dict[str, str] = {}
    for node in lattice.topological:
        for above in reversed(lattice.parents(node)):
            if (above, node) not in picture.doubtful and (chosen is None or (above, node) in chosen):
                parent[node] = above

    def ways(node: str, doubtful: bool) -> str:
        """From what else it could be derived."""
        others = [above for above in lattice.parents(node) if above != parent.get(node)]
        return ", ".join(
            f"{picture.lines[above][0]} {picture.labels[above, node]}".rstrip()
            for above in others
            if ((above, node) in picture.doubtful) == doubtful
        )

    def words(node: str) -> str:
        name, *further = picture.lines[node]
        others, doubtful = ways(node, False), ways(node, True)
        said = (
            name,
            " · ".join(further),
            "[hidden]" if node in picture.hidden else "",
            picture.labels[parent[node], node] if node in parent else "",
            f"(or from {others})" if others else "",
            f"(if every foreign key held, from {doubtful})" if doubtful else "",
        )
        return "  ".join(filter(None, said))

    def under(node: str, indent: str) -> Iterator[str]:
        children = [child for child in lattice.topological if parent.get(child) == node]
        for child in children:
            last = child == children[-1]
            yield f"{indent}{'└─ ' if last else '├─ '}{words(child)}"
            yield from under(child, indent + ("   " if last else "│  "))

    roots = [node for node in lattice.topological if node not in parent]
    return "".join(f"{line}\n" for root in roots for line in (words(root), *under(root, "")))
