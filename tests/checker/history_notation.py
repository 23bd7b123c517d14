"""A short notation for histories, a line for each thing; what a line is shows in how it begins.

SELECT r1.a, r2.c FROM x.r1 JOIN y.r2 ON r1.b = r2.b      the view
x.r1(a, b): 1 2, 3 4                                      a relation, its columns and initial rows
y.r2(b, c):

x: +r1 5 6, -r1 1 2                                       a delivery; positions count 1, 2, ... per source
y T2: +r2 6 7                                             a part of global transaction T2
y T3(x y): +r2 6 8                                        a part of T3, which x and y take part in
y T4(x y)&T5(y z): +r2 6 9                                a merged capture with parts of two

- @ x0 y0                                                 a state: rows (here none), and the vector that is claimed
5 7, 2*5 8 @ x1 y2                                        2*: twice
"""

import re
from typing import Any

from viewkeeper.checker.history import History
from viewkeeper.messages import position

_VIEW, _RELATION, _DELIVERY, _STATE = r"SELECT ", r"\w+\.\w+\(", r"\w+( [^:]+)?:", r"-|\d"


def written(text: str) -> History:
    """The history that a text in this notation stands for."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    unknown = [line for line in lines if not re.match("|".join([_VIEW, _RELATION, _DELIVERY, _STATE]), line)]
    assert not unknown, unknown
    counts: dict[str, int] = {}
    return History.from_json(
        {
            "view": next(line for line in lines if re.match(_VIEW, line)),
            "relations": dict(_relation(line) for line in lines if re.match(_RELATION, line)),
            "deliveries": [_delivery(line, counts) for line in lines if re.match(_DELIVERY, line)],
            "states": [_state(line) for line in lines if re.match(_STATE, line)],
        }
    )


def _relation(line: str) -> tuple[str, dict[str, Any]]:
    match = re.fullmatch(r"(\w+)\.(\w+)\((.*?)\):(.*)", line)
    assert match, line
    source, table, columns, rows = match.groups()
    names = [column.strip() for column in columns.split(",")]
    return f"{source}.{table}", {
        "source": source,
        "columns": names,
        "types": ["BIGINT"] * len(names),
        "rows": _rows(rows),
    }


def _delivery(line: str, counts: dict[str, int]) -> dict[str, Any]:
    delivery, _, changes = line.partition(":")
    source, _, parts = delivery.partition(" ")
    counts[source] = counts.get(source, 0) + 1
    return {
        "source": source,
        "position": position(counts[source]),
        "changes": [_change(source, change) for change in changes.split(",") if change.strip()],
    } | _parts(parts)


def _parts(text: str) -> dict[str, Any]:
    found = [re.fullmatch(r"(\w+)(?:\((.*?)\))?", part) for part in text.split("&") if part]
    parts = [{"id": one[1], "participants": (one[2] or "").split()} for one in found if one]
    if len(parts) == 1:
        return {"global_id": parts[0]["id"], "participants": parts[0]["participants"]}
    return {"global_parts": parts}


def _change(source: str, text: str) -> list[Any]:
    action, *values = text.split()
    return [f"{source}.{action[1:]}", [int(value) for value in values], {"+": 1, "-": -1}[action[0]]]


def _state(line: str) -> dict[str, Any]:
    rows, _, vector = line.partition("@")
    claims = dict(_claim(claim) for claim in vector.split())
    return {"rows": [] if rows.strip() == "-" else _rows(rows), "vector": claims or None}


def _claim(text: str) -> tuple[str, str]:
    source = text.rstrip("0123456789")
    return source, position(int(text.removeprefix(source)))


def _rows(text: str) -> list[Any]:
    rows = []
    for part in text.split(","):
        if part.strip():
            count, _, values = part.rpartition("*")
            rows.append([[int(value) for value in values.split()], int(count or 1)])
    return rows
