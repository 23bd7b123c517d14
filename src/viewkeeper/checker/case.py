"""What both ways of judging need of a history, and the form of what they find."""

from dataclasses import dataclass
from functools import cached_property

from viewkeeper.checker.history import History
from viewkeeper.checker.judgement import Violation
from viewkeeper.checker.schedule import Cut, Schedule
from viewkeeper.checker.source_states import Fingerprint, SourceStates


@dataclass(frozen=True)
class Case:
    """A history with its schedule and the view over its source states."""

    history: History

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.history)

    @cached_property
    def source_states(self) -> SourceStates:
        return SourceStates(self.history, self.schedule)

    @cached_property
    def shown(self) -> tuple[Fingerprint, ...]:
        """What each state shows."""
        return tuple(self.source_states.fingerprint(state.rows.weights()) for state in self.history.states)


@dataclass(frozen=True)
class Finding:
    """Whether one level's own condition holds (None: undecided), and the evidence: a mapping, or a violation."""

    holds: bool | None
    mapping: tuple[Cut | None, ...] = ()
    violation: Violation | None = None
