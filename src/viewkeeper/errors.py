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
    └── UsageError                  options that do not fit together

An error carries `code` (stable, for programs), `detail` (what and where) and `hint` (what to do).
"""


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


class UsageError(ViewkeeperError):
    """Options that do not fit together."""

    code = "usage"
