"""A source that is opened when it is first needed, and again if that failed: one that is out of reach holds up nobody.

Its relations are those that were registered. If the database has others when it is opened, the difference is sent
where the stream begins, as a disruption. So are relations that were altered and registered again, to those who come
from before that.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from viewkeeper.messages import Fetch, Position
from viewkeeper.sources.base import PATIENCE, Batch, Disruption, Finding, Reading, Source
from viewkeeper.sources.layout import Alteration, alterations
from viewkeeper.sql.relation import Relation


class LazySource(Source):
    """Stands for a source that may not be there yet."""

    def __init__(
        self,
        name: str,
        relations: Mapping[str, Relation],
        open: Callable[[], Source],
        anew: Mapping[str, Sequence[tuple[Position, Alteration]]] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.relations = relations
        self._anew = anew or {}
        self._open = open
        self._opening = threading.Lock()
        self._opened: Source | None = None
        self._held: set[Position] = set()

    def opened(self) -> Source:
        """The source itself; SourceUnavailable if it cannot be reached."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
                for position in self._held:
                    self._opened.will_start_behind(position)
            return self._opened

    def doctor(self) -> list[Finding]:
        return self.opened().doctor()

    def obstacles(self) -> list[Finding]:
        return self.opened().obstacles()

    def install(self) -> None:
        self.opened().install()

    def note(self, kept: Collection[str] = ()) -> None:
        self.opened().note(kept)

    @property
    def found(self) -> Mapping[str, Relation]:
        return self.opened().found

    def altered(self) -> Mapping[str, Sequence[Alteration]]:
        """Also the columns and types that are not those that were registered."""
        return altered_since(self.relations, self.opened())

    def remove(self) -> list[str]:
        return self.opened().remove()

    def end(self) -> Position:
        return self.opened().end()

    def reach(self) -> None:
        self.opened().reach()

    def transactions(self, after: Position | None, stop: threading.Event) -> Iterator[Batch]:
        source = self.opened()
        here = after or ""
        changed = [
            Disruption.of(name, here, one, standing=True)
            for name, relation in self.relations.items()
            for one in alterations(relation, source.found.get(name))
        ]
        # Who was there before a relation was registered again has rows of what it was.
        changed += [
            Disruption.of(name, here, one, standing=True, until=until)
            for name, several in self._anew.items()
            for until, one in several
            if here < until
        ]
        if changed:
            yield Batch(changed, after or "")
        yield from source.transactions(after, stop)

    def reading(self, fetches: Sequence[Fetch]) -> AbstractContextManager[Reading]:
        return self.opened().reading(fetches)

    def will_start_behind(self, position: Position) -> None:
        self._held.add(position)
        if self._opened is not None:
            self._opened.will_start_behind(position)

    def acknowledge(self, position: Position) -> None:
        self.opened().acknowledge(position)
        self._held = {held for held in self._held if held > position}

    def retained(self) -> int | None:
        return self.opened().retained()

    def estimated_rows(self, relation: str) -> int | None:
        return self.opened().estimated_rows(relation)

    def close(self) -> None:
        with self._opening:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def stream_starts(self, after: Position | None) -> None:
        if self._opened is not None:
            self._opened.stream_starts(after)

    def stream_broke(self, error: Exception) -> None:
        if self._opened is not None:
            self._opened.stream_broke(error)

    def wait_for_stream(self, position: Position, patience: float = PATIENCE) -> None:
        self.opened().wait_for_stream(position, patience)


def altered_since(registered: Mapping[str, Relation], source: Source) -> dict[str, tuple[Alteration, ...]]:
    """The relations whose rows are not what they were when they were registered, and how; more columns do no harm."""
    noted = source.altered()
    found = {
        name: (*noted.get(name, ()), *alterations(relation, source.found.get(name)))
        for name, relation in registered.items()
    }
    return {name: several for name, several in found.items() if several}
