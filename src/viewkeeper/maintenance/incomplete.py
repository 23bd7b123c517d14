"""Global transactions with missing parts, as they are remembered between runs: `_viewkeeper/global/`.

waits/GROUP.json       what a group waits for; written by the process that maintains it
asked/KEY.json         a wait that is to be given up; written by `give-up`, also while that process is at work
given_up/KEY.json      a wait that was given up, until all parts have come; written by that process
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from viewkeeper.clock import unique_id
from viewkeeper.durations import seconds
from viewkeeper.errors import DamagedWarehouse, StorageFailure, UsageError
from viewkeeper.lake.log.catalog import Definition
from viewkeeper.lake.log.commit_log import HOME
from viewkeeper.lake.log.record import seal, unseal
from viewkeeper.lake.log.store import LocalStore
from viewkeeper.levels import Level
from viewkeeper.mediator.waits import GivenUp, Wait
from viewkeeper.messages import Vector
from viewkeeper.planner.summaries.naming import SUMMARY
from viewkeeper.planner.view_properties import LEVEL, SOURCES
from viewkeeper.sql.definition import GLOBAL_TIMEOUT

_WAITS, _ASKED, _GIVEN_UP = (f"{HOME}/global/{folder}" for folder in ("waits", "asked", "given_up"))


@dataclass(frozen=True)
class GroupWait:
    """A wait of one group, and the views that it holds up."""

    group: str
    views: tuple[str, ...]
    wait: Wait
    asked: bool
    """whether it is to be given up when the views are maintained the next time"""


@dataclass(frozen=True)
class GroupGivenUp:
    """A wait that a group has given up, and the views that show the transaction half."""

    group: str
    views: tuple[str, ...]
    given: GivenUp


class IncompleteTransactions:
    """The files of one warehouse."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.noted: list[tuple[str, GivenUp]] = []
        """what was given up, or was about to become whole, since this object was made"""

    # --- for the process that maintains the views ---

    def waits(self, group: str) -> list[Wait]:
        return [wait for name, one in self._all(_WAITS) if name == group for wait in _waits(one)]

    def note_waits(self, group: str, waits: Collection[Wait]) -> None:
        file = f"{_WAITS}/{hashlib.sha256(group.encode()).hexdigest()[:32]}.json"
        if waits:
            self._write(file, group, {"waits": [asdict(wait) for wait in waits]})
        else:
            self._store.delete(file)

    def asked(self, group: str) -> list[Wait]:
        return [wait for name, one in self._all(_ASKED) if name == group for wait in _waits(one)]

    def forget_asked(self, group: str, waits: Collection[Wait]) -> None:
        for file in self._files(_ASKED):
            told = self._read(file)
            if told["group"] == group and all(wait in waits for wait in _waits(told)):
                self._store.delete(file)

    def given_up(self, group: str) -> list[GivenUp]:
        return [_given_up(one) for name, one in self._all(_GIVEN_UP) if name == group]

    def note_given_up(self, group: str, given: GivenUp) -> None:
        self.noted.append((group, given))
        self._write(f"{_GIVEN_UP}/{given.key}.json", group, asdict(given))

    def forget_given_up(self, group: str, given: GivenUp) -> None:
        self._store.delete(f"{_GIVEN_UP}/{given.key}.json")

    def forget_skipped(self, group: str, before: Vector, at: Vector) -> None:
        """A reload took a group from one vector to another; a late part that is between these is not delivered."""
        moved = {source: position for source, position in at.items() if before.get(source) != position}
        for given in self.given_up(group):
            places = (*given.arrived, *given.late)
            if any(source in moved for source in given.outstanding) or any(
                source in moved and position > moved[source] for source, position in places
            ):
                self.forget_given_up(group, given)

    def forget_other_groups(self, groups: Collection[str]) -> None:
        """Only these are left."""
        for folder in (_WAITS, _ASKED, _GIVEN_UP):
            for file in self._files(folder):
                if self._read(file)["group"] not in groups:
                    self._store.delete(file)

    # --- for everybody ---

    def all_waits(self, catalog: Mapping[str, Definition]) -> tuple[GroupWait, ...]:
        return tuple(
            GroupWait(group, views, wait, any(_asks_for(one, wait) for one in self.asked(group)))
            for group, one in self._all(_WAITS)
            if (views := views_of(catalog, group))
            for wait in _waits(one)
        )

    def all_given_up(self, catalog: Mapping[str, Definition]) -> tuple[GroupGivenUp, ...]:
        found = [(group, _given_up(one)) for group, one in self._all(_GIVEN_UP)]
        return tuple(
            GroupGivenUp(group, tuple(name for name in views if shows_half(catalog[name], given)), given)
            for group, given in sorted(found, key=lambda entry: entry[1].time)
            if (views := views_of(catalog, group))
        )

    def give_up(self, catalog: Mapping[str, Definition], id: str, view: str | None) -> tuple[GroupWait, ...]:
        """Ask that the waits for parts of a global transaction be given up, in all groups or in that of a view."""
        waits = self.all_waits(catalog)
        found = [one for one in waits if one.wait.id == id and (view is None or view in one.views)]
        if not found:
            named = ", ".join(dict.fromkeys(one.wait.id for one in waits if view is None or view in one.views))
            where = f"view {view}" if view is not None else "no view"
            what = f"{where} does not wait" if view is not None else f"{where} waits"
            raise UsageError(
                f"{what} for a missing part of global transaction {id}",
                f"what is waited for: {named}" if named else "nothing is waited for; 'viewkeeper status' names waits",
            )
        for one in found:
            if one.wait not in self.asked(one.group):
                self.ask(one.group, one.wait)
        return tuple(found)

    def ask(self, group: str, wait: Wait) -> None:
        """Ask that a wait be given up."""
        self._write(f"{_ASKED}/{unique_id()}.json", group, {"waits": [asdict(wait)]})

    # --- files ---

    def _all(self, folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for file in self._files(folder):
            try:
                told = self._read(file)
            except StorageFailure:
                if self._store.exists(file):
                    raise
                # The process that maintains the views has just deleted it.
                continue
            yield told.pop("group"), told

    def _files(self, folder: str) -> list[str]:
        return [f"{folder}/{name}" for name in self._store.names(folder) if name.endswith(".json")]

    def _read(self, file: str) -> dict[str, Any]:
        try:
            told = unseal(self._store.read(file))
            return {"group": told.pop("group"), **told}
        except (ValueError, KeyError) as error:
            raise DamagedWarehouse(f"{self._store.path(file)} is damaged: {error}", "delete it") from error

    def _write(self, file: str, group: str, told: Mapping[str, Any]) -> None:
        self._store.write(file, seal({"group": group, **told}))


def views_of(catalog: Mapping[str, Definition], group: str) -> tuple[str, ...]:
    """The views that follow the states of a group: its own, and the summaries of its facts."""
    return tuple(sorted(view.name for view in catalog.values() if not view.hidden and maintained_in(view) == group))


def maintained_in(view: Definition) -> str:
    """The group whose transactions a view follows: of a summary, that of its facts."""
    return str(view.properties[SUMMARY]["facts"]["core"]) if SUMMARY in view.properties else view.group


def give_up_after(catalog: Mapping[str, Definition], group: str) -> float | None:
    """Seconds after which a group gives up a wait: the fewest that one of its views asks for, for they share states."""
    asked = [
        seconds(view.properties[GLOBAL_TIMEOUT])
        for view in catalog.values()
        if GLOBAL_TIMEOUT in view.properties and maintained_in(view) == group
    ]
    return min(asked, default=None)


def shows_half(view: Definition, given: GivenUp) -> bool:
    """Whether a view reads sources on both sides of what was given up; one over views is taken to."""
    sources = set(view.properties.get(SOURCES, ()))
    arrived = {source for source, _ in given.arrived}
    return not sources or (not sources.isdisjoint(arrived) and not sources.isdisjoint(given.missing))


def reached_level(view: Definition, given: Collection[GroupGivenUp]) -> str | None:
    """What a view reaches now: what it promises, or weak while it shows a global transaction half."""
    promised = view.properties.get(LEVEL)
    if promised is None or not any(view.name in one.views for one in given):
        return promised
    return str(min(Level[promised.upper()], Level.WEAK))


def _asks_for(asked: Wait, wait: Wait) -> bool:
    """Whether a request is for this wait; a later run may have noted its parts at later positions."""
    return asked.id == wait.id and any(
        source == of and position <= at for source, position in asked.arrived for of, at in wait.arrived
    )


def _waits(told: Mapping[str, Any]) -> list[Wait]:
    return [Wait(one["id"], tuple(one["missing"]), _places(one["arrived"]), one["since"]) for one in told["waits"]]


def _given_up(told: Mapping[str, Any]) -> GivenUp:
    return GivenUp(
        told["key"],
        told["id"],
        tuple(told["missing"]),
        _places(told["arrived"]),
        told["since"],
        told["time"],
        told["why"],
        _places(told["late"]),
        told.get("closed", False),
    )


def _places(told: Collection[Collection[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((source, position) for source, position in told)
