"""What is told of every view besides its own details: data, for programs."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RelationCost:
    """What a transaction costs that changes one relation, alone; of many that come together each costs less."""

    relation: str
    questions: int
    """to sources, at most, if rows are inserted or changed"""
    questions_of_deletion: int
    """the same if rows are only deleted"""
    asks: tuple[str, ...]
    """the sources that are asked, in the order of the questions"""
    rows: float | None
    """that come back for each changed row, about; of a summary, groups that are touched; None: unknown yet"""
    rows_told: str
    """the same in words, with what is known of it"""
    lookups: int
    """in tables of the warehouse"""
    work: str
    """where it is done: on the driver, or by jobs of Spark"""
    transactions_per_hour: float | None = None
    """of its source, as far as the commit log knows; None: unknown yet"""


@dataclass(frozen=True)
class Measured:
    """What the newest commits say of refreshes: of all views of a group together, or of all tables of a lattice."""

    refreshes: int
    seconds: float
    """that one took, the median"""
    updates: int
    """transactions, or of a deferred summary changes, that they brought"""
    questions_per_update: float | None
    """None of a deferred summary"""
    commits: int
    """that were looked at, the newest"""
    own_seconds: float | None = None
    """of a summary: how much of a refresh is propagating and applying, for all tables of its lattice; the median"""

    @property
    def told(self) -> str:
        """In words."""
        number = "1 refresh" if self.refreshes == 1 else f"{self.refreshes:,} refreshes"
        what = "change" if self.questions_per_update is None else "transaction"
        brought = f"{self.updates:,} {what}{'' if self.updates == 1 else 's'}"
        asked = f", {self.questions_per_update:.3g} questions for each" if self.questions_per_update is not None else ""
        whose = "its group" if self.own_seconds is None else "its lattice"
        parts = "" if self.own_seconds in (None, self.seconds) else f", of which its tables {self.own_seconds:.2g} s"
        window = "the last commit" if self.commits == 1 else f"the newest {self.commits:,} commits"
        return f"{number} of {whose} in {window} with {brought}{asked}; one took some {self.seconds:.2g} s{parts}"


@dataclass(frozen=True)
class Advice:
    """Something that the user could change."""

    rule: str
    """which rule gave it: a stable name, for programs"""
    change: str
    """what to change"""
    effect: str
    """what that would make cheaper or stronger, and what it would cost"""
    statement: str | None = None
    """the property, command or statement that does it, if it is one"""


@dataclass(frozen=True)
class InWords:
    """All of it."""

    how: tuple[str, ...] = ()
    """what happens when a row changes, step by step"""
    why: tuple[str, ...] = ()
    """why at this level and by this algorithm; for its storage see `Explanation.storage_reasons`"""
    costs: tuple[RelationCost, ...] = ()
    measured: Measured | None = None
    advice: tuple[Advice, ...] = field(default=())
