"""What a load asks for, from the options of `spark.read` and `spark.readStream`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.errors import UsageError

LATEST = "latest"
VARIABLE = "VIEWKEEPER_WAREHOUSE"
MOST_STATES = 1000
"""States of one micro-batch of a stream, unless told otherwise."""

OPTIONS = ("warehouse", "view", "path", "state", "changes", "startingState", "endingState", "maxStatesPerTrigger")


@dataclass(frozen=True)
class Asked:
    """One load: which view of which warehouse; its rows at a state, or its signed rows from one state to another."""

    warehouse: str
    view: str
    state: int | None = None
    changes: bool = False
    starting_state: int | str | None = None
    """the first state whose changes are wanted, or `latest`: only those that are yet to come"""
    ending_state: int | None = None
    most_states: int = MOST_STATES


def read_options(options: Mapping[str, str]) -> Asked:
    """The load that options describe; UsageError for one that means nothing."""
    given = {name.lower(): value for name, value in options.items()}
    if unknown := sorted(given.keys() - {name.lower() for name in OPTIONS}):
        known = ", ".join(name for name in OPTIONS if name != "path")
        raise UsageError(f"the format viewkeeper has no option {unknown[0]!r}", f"it has: {known}")
    warehouse = given.get("warehouse") or os.environ.get(VARIABLE)
    if not warehouse:
        raise UsageError(
            "no warehouse is named", f".option('warehouse', '/path/of/it'), or {VARIABLE} in Spark's environment"
        )
    view, path = given.get("view"), given.get("path")
    if not (view or path) or (view and path and view != path):
        raise UsageError(
            "two views are named" if view and path else "no view is named",
            "name one: .load('v'), or .option('view', 'v')",
        )
    asked = Asked(
        warehouse,
        view or path or "",
        _number(given, "state"),
        _flag(given, "changes"),
        LATEST if given.get("startingstate", "").lower() == LATEST else _number(given, "startingState"),
        _number(given, "endingState"),
        _number(given, "maxStatesPerTrigger") or MOST_STATES,
    )
    if asked.state is not None and (asked.changes or asked.starting_state is not None):
        raise UsageError(
            "'state' asks for the rows of one state, and 'changes' and 'startingState' for what changes",
            "leave one of them out",
        )
    return asked


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise UsageError(f"{name} is {text!r}, and should be the number of a state", "'viewkeeper states' lists them")
    return int(text)


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in ("true", "false"):
        raise UsageError(f"{name} is {text!r}, and should be true or false", f".option({name!r}, 'true')")
    return text == "true"
