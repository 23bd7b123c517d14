"""Where a global transaction stands among the others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algorithms.global_order import GlobalOrder
from viewkeeper.messages import GlobalPart, Transaction, position


def order(*deliveries: str) -> list[str]:
    """Deliveries such as `x:a`, `x:T(xy)` or, merged, `x:T(xy)&U(xz)`; the units, members joined by +, in order."""
    made, units, counts = GlobalOrder("xyz"), [], {}
    for word in deliveries:
        source, name = word.split(":")
        counts[source] = counts.get(source, 0) + 1
        parts = [GlobalPart(*part[:-1].split("(")) for part in name.split("&") if "(" in part]
        parts = tuple(GlobalPart(part.id, tuple(part.participants)) for part in parts)
        transaction = Transaction(source, position(counts[source]), (), parts)
        names[source, transaction.position] = re.sub(r"\(\w+\)", "", word)
        units += ["+".join(sorted(names[t.source, t.position] for t in unit)) for unit in made.arrive(transaction)]
    return units


names: dict[tuple[str, str], str] = {}


@pytest.mark.parametrize(
    ("deliveries", "units"),
    [
        (["x:a", "y:b"], ["x:a", "y:b"]),
        (["x:T(xy)", "y:T(xy)"], ["x:T+y:T"]),
        # T takes the place of its last part, and what stands after a part waits
        (["x:T(xy)", "x:a", "y:b", "y:T(xy)"], ["y:b", "x:T+y:T", "x:a"]),
        # a source that takes no part in T does not wait
        (["x:T(xy)", "z:a", "y:T(xy)"], ["z:a", "x:T+y:T"]),
        # U stands after T at x, and T is not whole yet
        (["x:T(xy)", "x:U(xz)", "z:U(xz)", "y:T(xy)"], ["x:T+y:T", "x:U+z:U"]),
        # crossing orders: nothing holds T and U apart, nor what lies between them
        (["x:T(xy)", "y:U(xy)", "x:U(xy)", "y:T(xy)"], ["x:T+x:U+y:T+y:U"]),
        (["x:T(xy)", "x:a", "y:U(xy)", "y:b", "x:U(xy)", "y:T(xy)"], ["x:T+x:U+x:a+y:T+y:U+y:b"]),
        # w has nothing to do with the view: nobody waits for it
        (["x:T(xw)", "x:a"], ["x:T", "x:a"]),
        # a merged capture holds parts of T and U: it cannot be taken in pieces, so neither can T and U
        (["x:T(xy)&U(xz)", "y:T(xy)", "z:U(xz)"], ["x:T&U+y:T+z:U"]),
        (["y:T(xy)", "z:U(xz)", "x:T(xy)&U(xz)", "x:a"], ["x:T&U+y:T+z:U", "x:a"]),
        # and what lies between them at another source
        (["x:T(xy)&U(xy)", "y:T(xy)", "y:a", "y:U(xy)", "y:b"], ["x:T&U+y:T+y:U+y:a", "y:b"]),
        # glued through a third
        (["x:T(xy)&U(xz)", "z:U(xz)&V(yz)", "y:T(xy)", "y:V(yz)"], ["x:T&U+y:T+y:V+z:U&V"]),
        # an id that is used again: the n-th part of each source
        (["x:T(xy)", "x:T(xy)", "y:T(xy)", "y:T(xy)"], ["x:T+y:T", "x:T+y:T"]),
        (["x:T(xy)", "y:T(xy)", "x:T(xy)", "x:a", "y:T(xy)"], ["x:T+y:T", "x:T+y:T", "x:a"]),
        # listed twice, a source commits two parts
        (["x:T(xxy)", "y:T(xxy)", "x:a", "x:T(xxy)"], ["x:T+x:T+x:a+y:T"]),
        # two uses of one id, captured together at x
        (["x:T(xy)&T(xy)", "y:T(xy)", "y:T(xy)"], ["x:T&T+y:T+y:T"]),
        # never whole: everything after it waits, other sources go on
        (["x:T(xy)", "x:a", "z:b"], ["z:b"]),
    ],
)
def test_order(deliveries, units):
    assert order(*deliveries) == units


@given(st.permutations([("x", "T"), ("y", "T"), ("x", "a"), ("y", "b"), ("x", "U"), ("z", "U"), ("z", "c")]))
def test_everything_comes_out_once_and_no_source_is_reordered(deliveries):
    participants = {"T": "xy", "U": "xz"}
    words = [f"{s}:{name}({participants[name]})" if name in participants else f"{s}:{name}" for s, name in deliveries]
    members = [unit.split("+") for unit in order(*words)]
    out = [word for unit in members for word in unit]
    assert sorted(out) == sorted(f"{s}:{name}" for s, name in deliveries)
    for source in "xyz":
        place = {word: number for number, unit in enumerate(members) for word in unit}
        mine = [f"{s}:{name}" for s, name in deliveries if s == source]
        assert [place[word] for word in mine] == sorted(place[word] for word in mine)
    for name in participants:
        assert len({place[f"{s}:{name}"] for s, n in deliveries if n == name}) == 1, "a global transaction is one unit"
