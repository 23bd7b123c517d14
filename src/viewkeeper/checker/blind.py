"""Judging without trusting a vector: is there any mapping of the states to cuts that fits?

    weak          each state has a cut that gives it
    strong        A₀ = the least closed cuts that give ws_0,  A_i = the least that give ws_i above some cut of A_i-1
    complete      S₀ = {nothing},  S_i = the closed cuts that give ws_i, in S_i-1 or one unit above;  everything ∈ S_f

For strong only the least cuts matter: whatever can follow a greater one can follow a lesser one as well. With the cuts
that are known so far these either find a mapping, which is then proof, or fail, which proves something only when every
cut has been looked at. So they are tried again as the search widens (`matching.py`), and mostly succeed at first.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from viewkeeper.checker import explain
from viewkeeper.checker.case import Case, Finding
from viewkeeper.checker.judgement import Violation
from viewkeeper.checker.matching import Matches
from viewkeeper.checker.schedule import Cut, within
from viewkeeper.levels import Level

Layer = dict[Cut, Cut]
"""The cuts that a state may stand at, each with one that the state before it may stand at."""

_DETOURS = (0, 8, 32, 128)


def judge_blind(case: Case, budget: int) -> tuple[Finding, Finding, Finding]:
    """The findings for weak, strong and complete."""
    matches = Matches(case, budget)
    for detour in (*_DETOURS, len(case.history.deliveries)):
        matches.explore(detour)
        strong, complete = _strong_and_complete(case, matches)
        if matches.done or complete.holds is not None:
            break
    return _weak(case, matches), strong, complete


def _strong_and_complete(case: Case, matches: Matches) -> tuple[Finding, Finding]:
    """Complete first, for it is the quicker one and implies the other."""
    if not matches.exhausted and not all(matches.closed.values()):
        return Finding(None), Finding(None)
    layers = _layers(case, matches)
    if len(layers) == len(case.shown) and case.schedule.settled in layers[-1]:
        complete = Finding(True, _path(layers, case.schedule.settled))
        return complete, complete
    strong = _strong(case, matches)
    too_few = len(case.shown) <= len(case.schedule.between(case.schedule.nothing, case.schedule.settled))
    decided = too_few or (matches.exhausted and sum(map(len, layers)) <= matches.budget)
    if not strong.holds or not decided:
        return strong, Finding(None)
    return strong, Finding(False, violation=_skipped(case, layers, strong.mapping))


def _weak(case: Case, matches: Matches) -> Finding:
    for state, shown in enumerate(case.shown):
        if not matches.cuts[shown]:
            if not matches.exhausted:
                return Finding(None)
            return Finding(False, violation=explain.no_source_state(case, Level.WEAK, state))
    return Finding(True, tuple(matches.cuts[shown][0] for shown in case.shown))


def _strong(case: Case, matches: Matches) -> Finding:
    by_size = {shown: sorted(closed, key=sum) for shown, closed in matches.closed.items()}
    layers: list[Layer] = []
    looks = 0
    for state, shown in enumerate(case.shown):
        if not state:
            layer = _least(by_size[shown])
        elif shown == case.shown[state - 1]:
            layer = {cut: cut for cut in layers[-1]}
        else:
            above = by_size[shown][bisect_left(by_size[shown], min(map(sum, layers[-1])), key=sum) :]
            looks += len(above)
            layer = _least(above, layers[-1])
        if looks > matches.budget or (not layer and not matches.exhausted):
            return Finding(None)
        if not layer:
            return Finding(False, violation=_misplaced(case, matches, state, layers))
        layers.append(layer)
    return Finding(True, _path(layers, next(iter(layers[-1]))))


def _least(by_size: list[Cut], layer: Layer | None = None) -> Layer:
    """The least of these cuts that lie above some cut of the layer, if there is one."""
    least: Layer = {}
    for cut in by_size:
        if not any(within(lower, cut) for lower in least):
            before = cut if layer is None else next((lower for lower in layer if within(lower, cut)), None)
            if before is not None:
                least[cut] = before
    return least


def _misplaced(case: Case, matches: Matches, state: int, layers: list[Layer]) -> Violation:
    shown = case.shown[state]
    if closed := matches.closed[shown]:
        return explain.out_of_order(case, state, next(iter(closed)), next(iter(layers[-1])), claimed=False)
    if cuts := matches.cuts[shown]:
        return explain.not_closed(case, state, cuts[0], claimed=False)
    return explain.no_source_state(case, Level.STRONG, state)


def _layers(case: Case, matches: Matches) -> list[Layer]:
    """S₀, S₁, ... up to the last that is not empty, or that the budget allows."""
    layers: list[Layer] = []
    looks = 0
    for shown in case.shown:
        layer = _one_unit_above(case, layers[-1] if layers else None, matches.closed[shown])
        if not layer:
            break
        layers.append(layer)
        looks += len(layer)
        if looks > matches.budget:
            break
    return layers


def _one_unit_above(case: Case, layer: Layer | None, closed: Mapping[Cut, None]) -> Layer:
    nothing = case.schedule.nothing
    if layer is None:
        return {nothing: nothing} if nothing in closed else {}
    above: Layer = {}
    for cut in layer:
        for following in (cut, *case.schedule.successors(cut)):
            if following in closed:
                above.setdefault(following, cut)
    return above


def _skipped(case: Case, layers: list[Layer], strong: Sequence[Cut | None]) -> Violation:
    """The first unit that is passed over: where the layers end, or else along the mapping that proves strong."""
    mapping = [cut for cut in strong if cut is not None]
    if layers:
        follows = (*mapping, case.schedule.settled)[len(layers)]
        for cut in layers[-1]:
            if within(cut, follows):
                return explain.passed_over(case, [*_path(layers, cut), *mapping[len(layers) :]])
    return explain.passed_over(case, mapping)


def _path(layers: list[Layer], last: Cut) -> tuple[Cut, ...]:
    """The mapping that ends at a cut of the last layer."""
    path = [last]
    for layer in reversed(layers[1:]):
        path.append(layer[path[-1]])
    return tuple(reversed(path))
