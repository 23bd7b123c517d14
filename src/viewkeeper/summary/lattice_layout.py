"""Where the boxes and lines of a lattice go.

    layer(v) = 0 for a top, else 1 + max over its parents of layer(parent)
    order      each node at the barycentre of its neighbours in the layer before, swept down and up   (Sugiyama 1981)
    x          least Σ (x(v) − barycentre(v))²  with  x(right) − x(left) ≥ the room that both need

An edge that spans several layers gets a bend in each layer between, which takes a place like a node. All boxes of a
layer are equally tall and lines move sideways only between layers, so that no line runs across a box.
"""

from bisect import bisect, insort
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Generic

from viewkeeper.summary.cube_lattice import Lattice, Node

LAYER_GAP = 84.0
BOX_GAP = 28.0
SWEEPS = 12

Point = tuple[float, float]
Slot = tuple[Hashable, int]
"""What takes a place in a layer: a node, or an edge that passes by."""

Neighbours = dict[Slot, list[Slot]]


@dataclass(frozen=True)
class Box:
    """A rectangle, from its left upper corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        return self.x + self.width / 2

    def overlaps(self, other: "Box") -> bool:
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(frozen=True)
class Layout(Generic[Node]):
    """Boxes of nodes and lines of edges, within 0..width and 0..height."""

    boxes: dict[Node, Box]
    lines: dict[tuple[Node, Node], tuple[Point, ...]]
    width: float
    height: float


def lay_out(lattice: Lattice[Node], sizes: Mapping[Node, tuple[float, float]]) -> Layout[Node]:
    """Places for boxes of the given widths and heights; a box may become as tall as its layer."""
    if not lattice.nodes:
        return Layout({}, {}, 0, 0)
    depth = layers_of(lattice)
    layers: list[list[Slot]] = [[] for _ in range(max(depth.values()) + 1)]
    widths: dict[Slot, float] = {}
    for node in lattice.topological:
        layers[depth[node]].append((node, depth[node]))
        widths[node, depth[node]] = sizes[node][0]
    chains: dict[tuple[Node, Node], list[Slot]] = {}
    up: Neighbours = {}
    down: Neighbours = {}
    for edge in lattice.edges:
        bends: list[Slot] = [(edge, layer) for layer in range(depth[edge.above] + 1, depth[edge.below])]
        for bend in bends:
            layers[bend[1]].append(bend)
            widths[bend] = 0
        chain = [(edge.above, depth[edge.above]), *bends, (edge.below, depth[edge.below])]
        chains[edge.above, edge.below] = chain
        for upper, lower in pairwise(chain):
            down.setdefault(upper, []).append(lower)
            up.setdefault(lower, []).append(upper)

    middles = _placed(_ordered(layers, up, down), widths, up, down)
    left = min(middle - widths[slot] / 2 for slot, middle in middles.items())
    middles = {slot: middle - left for slot, middle in middles.items()}
    heights = [0.0] * len(layers)
    for node in lattice.nodes:
        heights[depth[node]] = max(heights[depth[node]], sizes[node][1])
    tops = [sum(heights[:layer]) + layer * LAYER_GAP for layer in range(len(layers))]
    boxes = {
        node: Box(middles[node, depth[node]] - sizes[node][0] / 2, tops[layer], sizes[node][0], heights[layer])
        for node, layer in depth.items()
    }

    def line(chain: list[Slot]) -> tuple[Point, ...]:
        start, end = chain[0], chain[-1]
        points = [(_port(start, down[start], chain[1], middles, widths), tops[start[1]] + heights[start[1]])]
        for bend in chain[1:-1]:
            points += [(middles[bend], tops[bend[1]]), (middles[bend], tops[bend[1]] + heights[bend[1]])]
        points.append((_port(end, up[end], chain[-2], middles, widths), tops[end[1]]))
        return tuple(points)

    return Layout(
        boxes,
        {ends: line(chain) for ends, chain in chains.items()},
        max(middle + widths[slot] / 2 for slot, middle in middles.items()),
        tops[-1] + heights[-1],
    )


def layers_of(lattice: Lattice[Node]) -> dict[Node, int]:
    """The length of the longest path from a top to each node."""
    depth: dict[Node, int] = {}
    for node in lattice.topological:
        depth[node] = max((depth[parent] + 1 for parent in lattice.parents(node)), default=0)
    return depth


def crossings(layers: list[list[Slot]], down: Neighbours) -> int:
    """How often lines between neighbouring layers cross."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {slot: index for index, slot in enumerate(lower)}
        passed: list[int] = []
        for slot in upper:
            ends = sorted(place[end] for end in down.get(slot, ()))
            total += sum(len(passed) - bisect(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return total


def _ordered(layers: list[list[Slot]], up: Neighbours, down: Neighbours) -> list[list[Slot]]:
    """The order with the fewest crossings that sweeps of barycentres find."""
    best, fewest = layers, crossings(layers, down)
    current = [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        steps = pairwise(range(len(layers)) if downwards else reversed(range(len(layers))))
        for fixed, free in steps:
            place = {slot: index for index, slot in enumerate(current[fixed])}
            own = {slot: index for index, slot in enumerate(current[free])}
            neighbours = up if downwards else down
            mean = {s: fmean(place[n] for n in neighbours[s]) if neighbours.get(s) else own[s] for s in own}
            current[free] = sorted(current[free], key=mean.__getitem__)
        if (now := crossings(current, down)) < fewest:
            best, fewest = [list(layer) for layer in current], now
    return best


def _placed(
    layers: list[list[Slot]], widths: Mapping[Slot, float], up: Neighbours, down: Neighbours
) -> dict[Slot, float]:
    """The middle of each slot: near its neighbours, in the order of its layer, and clear of the others."""
    middles: dict[Slot, float] = {}
    for layer in layers:
        middles |= _spread(layer, dict.fromkeys(layer, 0.0), widths)
    for sweep in range(SWEEPS):
        neighbours = up if sweep % 2 == 0 else down
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wish = {s: fmean(middles[n] for n in neighbours[s]) if neighbours.get(s) else middles[s] for s in layer}
            middles |= _spread(layer, wish, widths)
    return middles


def _spread(layer: list[Slot], wish: Mapping[Slot, float], widths: Mapping[Slot, float]) -> dict[Slot, float]:
    """The places nearest to the wished ones, by least squares, that keep order and distance.

    With the distances taken off it is isotonic regression: neighbours that are in each other's way move to their mean.
    """
    offset = 0.0
    offsets: list[float] = []
    for index, slot in enumerate(layer):
        if index:
            offset += widths[layer[index - 1]] / 2 + BOX_GAP + widths[slot] / 2
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []
    for slot, taken in zip(layer, offsets, strict=True):
        mean, size = wish[slot] - taken, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    flat = [mean for mean, size in blocks for _ in range(size)]
    return {slot: mean + taken for slot, mean, taken in zip(layer, flat, offsets, strict=True)}


def _port(
    node: Slot, ends: list[Slot], end: Slot, middles: Mapping[Slot, float], widths: Mapping[Slot, float]
) -> float:
    """Where a line meets its box: the lines of one side share the middle of it, from left to right."""
    rank = sorted(ends, key=middles.__getitem__).index(end)
    return middles[node] + 0.6 * widths[node] * ((rank + 1) / (len(ends) + 1) - 0.5)
