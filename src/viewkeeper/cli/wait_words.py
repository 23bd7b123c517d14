"""Missing parts of global transactions, in words."""

import shlex
from typing import TYPE_CHECKING

from viewkeeper.cli.tables import moment, vector

if TYPE_CHECKING:
    from viewkeeper.maintenance.incomplete import GroupGivenUp, GroupWait
    from viewkeeper.mediator.waits import GivenUp, Wait
    from viewkeeper.serving.status import Status


def missing(wait: "Wait | GivenUp") -> str:
    """`part from west`, `parts from west and 2 parts from north`."""
    named = dict.fromkeys(wait.missing)
    return " and ".join(
        f"part from {source}"
        if wait.missing.count(source) == 1
        else f"{wait.missing.count(source)} parts from {source}"
        for source in named
    )


def waits_for(wait: "Wait") -> str:
    """Which part of which transaction, since when, and what is there."""
    there = ", ".join(vector({source: place}) for source, place in wait.arrived)
    return f"global transaction {wait.id} waits for its {missing(wait)} since {moment(wait.since)}; it has {there}"


def wait_lines(found: "Status") -> list[str]:
    """What is waited for, with the way out, and what was given up."""
    lines = []
    for one in found.waits:
        lines.append(f"waiting: {', '.join(one.views)}: {waits_for(one.wait)}")
        lines.append(f"  {way_on(one)}")
    return lines + given_up_lines(found)


def way_on(one: "GroupWait") -> str:
    if one.asked:
        return "it is given up when the views are maintained the next time, if the part has not come by then"
    return f"the way out: commit that part, or viewkeeper give-up {shlex.quote(one.wait.id)}"


def given_up_lines(found: "Status") -> list[str]:
    return [given_up_line(one) for one in found.given_up]


def given_up_line(one: "GroupGivenUp") -> str:
    """What was given up, and what that does to the level."""
    given = one.given
    why = "after its timeout" if given.why == "timeout" else "as asked"
    line = f"given up: global transaction {given.id} without its {missing(given)}, {why}, {moment(given.time)}"
    return line + (
        f"; {weak(one.views)} until {'it has' if len(given.missing) == 1 else 'they have'} come" if one.views else ""
    )


def weak(views: tuple[str, ...]) -> str:
    """What giving up does to views."""
    return f"{', '.join(views)} {'is' if len(views) == 1 else 'are'} weakly consistent"
