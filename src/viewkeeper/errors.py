"""Every error that a user can meet, as one tree.

    ViewkeeperError                 all of them: catch this one
    ├── DefinitionError             a view's SQL
    │   ├── SyntaxProblem           it does not parse
    │   ├── UnknownName             a relation or column that no source has
    │   └── UnsupportedClause       understood, and outside what can be maintained
    ├── ExpressionError             an expression that the in-memory engine does not evaluate, or that fails on a row
    ├── AlgorithmRefused            the algorithm cannot serve this view, these sources or these transactions
    ├── ProtocolError               a source broke its contract (an answer nobody asked for, a row deleted twice, ...)
    ├── HistoryError                a history file that is not one
    ├── WarehouseError              the folder in which views are stored
    │   ├── NotAWarehouse           no warehouse there, or a folder with something else in it
    │   ├── FormatTooNew            written by a later viewkeeper
    │   ├── DamagedWarehouse        a record or a file that is missing, or is not what was written
    │   ├── WriterPresent           another process is writing to it
    │   ├── UnknownView             no view, group or column of that name
    │   ├── StateGone               a state that was never there, or is past the retention
    │   ├── BadDelta                a change that does not fit its view
    │   ├── CorruptChange           a change after which a summary table would count less than nothing
    │   ├── NotAnswered             a query over tables of sources that no stored summary answers
    │   └── StorageFailure          the disk is full, or a file cannot be read or written
    ├── SourceError                 a database, lake or folder that views are over
    │   ├── BadSourceUrl            a URL or an option in it that means nothing
    │   │   └── VariableNotAllowed  a stored URL that takes a variable which this user has not allowed for it
    │   ├── UnknownTable            no such table, or one that cannot be captured
    │   ├── UnsupportedType         a column whose values cannot be kept exactly
    │   ├── SourceUnfit             something that capture needs is missing: `doctor` says what, and what fixes it
    │   ├── SourceUnavailable       it cannot be reached now; it is tried again
    │   └── PositionLost            the changes after a position are gone from the source: reload the views
    ├── ProjectError                viewkeeper.yml, or a file that it names; the detail begins with file and line
    ├── SparkMissing                no Java for Spark to run on, or it does not start
    ├── EngineFailure               Spark, Arrow or Delta Lake failed in a way that nothing here foresees
    └── UsageError                  options that do not fit together

An error carries `code` (stable, for programs), `detail` (what and where) and `hint` (what to do).
"""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The beginning of a hint for a word that is not known: `did you mean orders? `, or nothing if none is close."""
    spelled = {name.casefold(): name for name in known}
    found = get_close_matches(word.casefold(), spelled, n=1, cutoff=0.7)
    return f"did you mean {spelled[found[0]]}? " if found else ""


class ViewkeeperError(Exception):
    """The base of the tree; the command line prints it and exits with 2."""

    code = "error"

    def __init__(self, detail: str, hint: str = "", *, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.detail}\n  hint: {self.hint}" if self.hint else self.detail


class DefinitionError(ViewkeeperError):
    """The SQL of a view cannot be used."""

    code = "definition"


class SyntaxProblem(DefinitionError):
    """The text is not SQL that the parser understands."""

    code = "syntax"


class UnknownName(DefinitionError):
    """A relation or a column that no source has."""

    code = "unknown-name"


class UnsupportedClause(DefinitionError):
    """A clause that is understood, and outside what can be maintained."""

    code = "unsupported"


class ExpressionError(ViewkeeperError):
    """An expression that the in-memory engine does not evaluate, or that fails on a row."""

    code = "expression"


class AlgorithmRefused(ViewkeeperError):
    """The algorithm cannot serve this view, these sources or these transactions."""

    code = "refused"


class ProtocolError(ViewkeeperError):
    """A source broke its contract."""

    code = "protocol"


class HistoryError(ViewkeeperError):
    """A history file that is not one."""

    code = "history"


class WarehouseError(ViewkeeperError):
    """Something about the folder in which views are stored."""

    code = "warehouse"


class NotAWarehouse(WarehouseError):
    """No warehouse there, or a folder with something else in it."""

    code = "not-a-warehouse"


class FormatTooNew(WarehouseError):
    """The warehouse was written by a later viewkeeper."""

    code = "format-too-new"


class DamagedWarehouse(WarehouseError):
    """A record or a file that is missing, or is not what was written."""

    code = "damaged"


class WriterPresent(WarehouseError):
    """Another process is writing to the warehouse."""

    code = "writer-present"


class UnknownView(WarehouseError):
    """No view or group of that name."""

    code = "unknown-view"


class StateGone(WarehouseError):
    """A state that was never there, or is past the retention."""

    code = "state-gone"


class BadDelta(WarehouseError):
    """A change that does not fit its view."""

    code = "bad-delta"


class CorruptChange(WarehouseError):
    """A change of a summary table that cannot be: a count below 0, or a sum of no values that is not 0."""

    code = "corrupt-change"


class NotAnswered(WarehouseError):
    """A query over tables of sources, and no stored summary that answers it."""

    code = "not-answered"


class StorageFailure(WarehouseError):
    """The disk is full, or a file cannot be read or written."""

    code = "storage"


class SourceError(ViewkeeperError):
    """Something about a source."""

    code = "source"


class BadSourceUrl(SourceError):
    """A URL, or an option in it, that means nothing."""

    code = "bad-source-url"


class VariableNotAllowed(BadSourceUrl):
    """A stored URL that takes a variable of the environment which this user has not allowed for it."""

    code = "variable-not-allowed"


class UnknownTable(SourceError):
    """No such table at the source, or one that cannot be captured."""

    code = "unknown-table"


class UnsupportedType(SourceError):
    """A column whose values cannot be kept exactly."""

    code = "unsupported-type"


class SourceUnfit(SourceError):
    """Something that capture needs is missing at the source."""

    code = "source-unfit"


class SourceUnavailable(SourceError):
    """The source cannot be reached now; it is tried again."""

    code = "source-unavailable"


class PositionLost(SourceError):
    """The changes behind a position are gone from the source."""

    code = "position-lost"


class ProjectError(ViewkeeperError):
    """Something in viewkeeper.yml, or in a file that it names."""

    code = "project"


class SparkMissing(ViewkeeperError):
    """There is no Java for Spark to run on, or it does not start."""

    code = "spark-missing"


class EngineFailure(ViewkeeperError):
    """Spark, Arrow or Delta Lake failed in a way that nothing here foresees."""

    code = "engine"


class UsageError(ViewkeeperError):
    """Options that do not fit together."""

    code = "usage"


ENGINES = {
    "pyspark": "Spark",
    "py4j": "Spark",
    "pyarrow": "Arrow",
    "deltalake": "Delta Lake",
    "_internal": "Delta Lake",
}
"""packages whose exceptions say nothing to a user, and what they are called"""


def is_of_engine(error: BaseException) -> bool:
    """Whether an exception comes from a data engine, as it is. None of them is imported to know."""
    return any(_package(kind) in ENGINES for kind in type(error).__mro__)


def as_viewkeeper_error(error: Exception, doing: str) -> ViewkeeperError:
    """Any exception as one of the tree: what an engine said in one line, a mistake of this program as it is."""
    if isinstance(error, ViewkeeperError):
        return error
    engine = next((ENGINES[_package(kind)] for kind in type(error).__mro__ if _package(kind) in ENGINES), None)
    if engine is not None:
        return EngineFailure(
            f"{doing}: {engine} failed: {first_line(error)}",
            "VIEWKEEPER_TRACEBACK=1 in the environment shows where; views are as they were committed",
        )
    return ProtocolError(f"{doing} failed: {error!r}", "its views are as they were committed")


_TRANSIENT = ("Py4JNetworkError", "SparkContext was shut down", "stopped SparkContext", "OutOfMemoryError")
"""what a JVM leaves that was ended or has no memory left: a type of exception, or words of one"""


def may_pass(error: BaseException | None) -> bool:
    """Whether something beside the rows failed, such as the disk, the memory or the process of Spark: what was tried
    may go well the next time. An error that explains another one is judged by that too."""
    while error is not None:
        if isinstance(error, (OSError, MemoryError, StorageFailure)):
            return True
        if is_of_engine(error) and any(word in f"{type(error).__name__} {error}" for word in _TRANSIENT):
            return True
        error = error.__cause__
    return False


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


_CAUSE = "Caused by: "


def first_line(error: Exception) -> str:
    """The message of an engine's error, in one line: the first, or that of the innermost cause if it names causes."""
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    if causes:
        exception, _, message = causes[-1].partition(": ")
        return message or exception
    return lines[0] if lines else type(error).__name__
