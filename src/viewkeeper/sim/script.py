"""The mini-language of the worked examples.

Relations     `x.r1(a*, b): 1 2; 3 4`        name, columns (* marks the key), rows
Updates       `-x.r1 1 2, +x.r1 3 4 @T2`     actions of one transaction; @ names the global transaction it is part of
Schedule      `U1 y> x? x> ...`              U1: the source commits that update
                                             y>: the next message of y reaches the warehouse
                                             x?: x answers its next query
                                             x~: the next message of x's database reaches its wrapper
                                             x!: x's database answers its wrapper's next query
                                             what remains after the last word happens in a fixed order
"""

import re
from collections import deque
from collections.abc import Mapping

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.errors import UsageError
from viewkeeper.messages import Change, position
from viewkeeper.sim.random_updates import Part
from viewkeeper.sim.world import Event, Happening
from viewkeeper.sql.relation import Relation

_SIGNS = {
    ">": Happening.DELIVER,
    "?": Happening.ANSWER,
    "~": Happening.WRAPPER_RECEIVES,
    "!": Happening.DATABASE_ANSWERS,
}
_EAGER = (
    Happening.DATABASE_ANSWERS,
    Happening.WRAPPER_RECEIVES,
    Happening.ANSWER,
    Happening.DELIVER,
    Happening.COMMIT,
)
"""what happens first when the schedule leaves it open: everything under way before the next commit"""


def parse_relation(text: str) -> tuple[Relation, MemoryZSet]:
    """`x.r1(a*, b): 1 2; 3 4`."""
    match = re.fullmatch(r"\s*(\w+)\.(\w+)\(([^)]*)\):(.*)", text)
    if match is None:
        raise UsageError(f"not a relation: {text!r}", "write it as x.r1(a*, b): 1 2; 3 4")
    source, table, columns, rows = match.groups()
    words = [word.strip() for word in columns.split(",")]
    names = tuple(word.rstrip("*") for word in words)
    key = tuple(word.rstrip("*") for word in words if word.endswith("*"))
    relation = Relation(f"{source}.{table}", source, names, ("BIGINT",) * len(names), key or None)
    content = [tuple(map(int, row.split())) for row in rows.split(";") if row.strip()]
    return relation, MemoryZSet.of(names, *content)


def parse_updates(updates: Mapping[str, str]) -> tuple[dict[str, deque[Part]], dict[tuple[str, str], str]]:
    """name -> actions, as the script of each source, with the name of each (source, position)."""
    parsed = {name: _parse_update(text) for name, text in updates.items()}
    participants: dict[str, list[str]] = {}
    for source, _, global_id in parsed.values():
        if global_id is not None:
            participants.setdefault(global_id, []).append(source)
    script: dict[str, deque[Part]] = {}
    names: dict[tuple[str, str], str] = {}
    for name, (source, changes, global_id) in parsed.items():
        parts = script.setdefault(source, deque())
        parts.append(Part(source, changes, global_id, tuple(sorted(participants.get(global_id or "", ())))))
        names[source, position(len(parts))] = name
    return script, names


def _parse_update(text: str) -> tuple[str, tuple[Change, ...], str | None]:
    actions, _, global_id = text.partition("@")
    changes = []
    for action in actions.split(","):
        word, *values = action.split()
        changes.append(Change(word[1:], tuple(map(int, values)), {"+": 1, "-": -1}[word[0]]))
    return changes[0].relation.split(".")[0], tuple(changes), global_id.strip() or None


class Schedule:
    """Picks the events that the words name, then the rest in a fixed order."""

    def __init__(self, words: str, names: Mapping[tuple[str, str], str]) -> None:
        self._words = deque(words.split())
        self._source_of = {name: source for (source, _), name in names.items()}

    def choose(self, events: list[Event]) -> Event:
        if not self._words:
            return min(events, key=lambda event: _EAGER.index(event.happening))
        word = self._words.popleft()
        if word in self._source_of:
            wanted = Event(Happening.COMMIT, self._source_of[word])
        else:
            wanted = Event(_SIGNS[word[-1]], word[:-1])
        if wanted not in events:
            raise UsageError(f"{word!r} cannot happen here", f"possible: {', '.join(map(str, events))}")
        return wanted
