"""Statements in the log: what is written there as text, and which tables it concerns.

Rows come as row events. As text come the ends of transactions, savepoints, XA, and what changes tables as a whole.
"""

import re
from dataclasses import dataclass

# In one pass: what begins first decides what a quote or a comment in it means.
_QUOTED = re.compile(
    r"(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<literal>'(?:[^'\\]|''|\\.)*')"
    r"|(?P<either>\"(?:[^\"\\]|\"\"|\\.)*\")"
    r"|/\*(?!M?!).*?\*/|--(?=\s|\Z)[^\n]*|#[^\n]*"  # comments
    r"|/\*M?!\d*|\*/",  # the ends of those that are executed
    re.DOTALL,
)
_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TABLE = re.compile(rf"({_NAME})(?:\s*\.\s*({_NAME}))?")
_ALTER = re.compile(
    rf"ALTER\s+(?:ONLINE\s+)?(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?({_NAME}(?:\s*\.\s*{_NAME})?)", re.IGNORECASE
)
_ALTER_OTHER = re.compile(
    rf"(?:RENAME\s+(?:TO\s+|AS\s+)?|WITH\s+TABLE\s+|CONVERT\s+TABLE\s+)({_NAME}(?:\s*\.\s*{_NAME})?)", re.IGNORECASE
)
_CREATE = re.compile(rf"CREATE\s+OR\s+REPLACE\s+TABLE\s+({_NAME}(?:\s*\.\s*{_NAME})?)", re.IGNORECASE)
_DATABASE = re.compile(rf"DROP\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+EXISTS\s+)?({_NAME})", re.IGNORECASE)
_FOR_ONE = re.compile(r"SET\s+STATEMENT\s+.*?\s+FOR\s+", re.IGNORECASE | re.DOTALL)
_WHOLE = re.compile(r"(TRUNCATE|DROP\s+TABLE|RENAME\s+TABLES?|ALTER|CREATE\s+OR\s+REPLACE\s+TABLE)\b", re.IGNORECASE)
_ROWS = re.compile(r"(INSERT|UPDATE|DELETE|REPLACE|LOAD)\b", re.IGNORECASE)
_SAVEPOINT = re.compile(rf"(SAVEPOINT|ROLLBACK\s+TO(?:\s+SAVEPOINT)?)\s+({_NAME})\s*$", re.IGNORECASE)
_XA = re.compile(r"XA\s+(\w+)\s*(.*)$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Concerned:
    """A table that a statement changes as a whole, or row by row without telling the rows; None: every table there."""

    database: str
    table: str | None
    how: str
    columns: tuple[tuple[str, str], ...] | None = None
    """the columns alone that it alters, each with the text of its new type, '' if it has none; None: the whole table"""


_HARMLESS = re.compile(
    r"""(?:ADD\s+(?:CONSTRAINT\b.*?\b)?(?:INDEX|KEY|UNIQUE|FULLTEXT|SPATIAL|PRIMARY|CHECK|CONSTRAINT|FOREIGN)\b
    |DROP\s+(?:INDEX|KEY|PRIMARY|FOREIGN|CONSTRAINT|CHECK)\b|RENAME\s+(?:INDEX|KEY)\b
    |ALTER\s+(?:INDEX|CHECK|CONSTRAINT)\b|ALTER\s+(?:COLUMN\s+)?\S+\s+(?:SET|DROP)\s+(?:DEFAULT|VISIBLE|INVISIBLE)\b
    |ADD\s+(?:COLUMN\b|\()|(?:COMMENT|AUTO_INCREMENT|ALGORITHM|LOCK)\s*=?\s*\S+$|$)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ACTING = re.compile(r"\b(?:CASCADE|SET\s+NULL|SET\s+DEFAULT)\b", re.IGNORECASE)
_EXISTS = r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?"
_ADD = re.compile(rf"ADD\s+{_EXISTS}{_NAME}\s+[\w`]", re.IGNORECASE)
_DROP = re.compile(rf"DROP\s+(?:COLUMN\s+)?{_EXISTS}({_NAME})", re.IGNORECASE)
_MODIFY = re.compile(rf"MODIFY\s+(?:COLUMN\s+)?{_EXISTS}({_NAME})\s+(.*)", re.IGNORECASE | re.DOTALL)
_CHANGE = re.compile(rf"CHANGE\s+(?:COLUMN\s+)?{_EXISTS}({_NAME})\s+({_NAME})\s+(.*)", re.IGNORECASE | re.DOTALL)
_RENAME = re.compile(rf"RENAME\s+COLUMN\s+({_NAME})\s+TO\s+({_NAME})", re.IGNORECASE)


def savepoint(statement: str) -> tuple[bool, str] | None:
    """Whether a statement goes back to a savepoint (or sets it), and its name."""
    found = _SAVEPOINT.match(statement)
    return None if found is None else (not found[1].upper().startswith("SAVEPOINT"), _bare(found[2]))


def xa(statement: str) -> tuple[str, str] | None:
    """The verb of an XA statement and the transaction's id, as the log spells it."""
    found = _XA.match(statement)
    return None if found is None else (found[1].upper(), "".join(found[2].split()))


def concerned(statement: str, database: str) -> list[Concerned]:
    """The tables that a statement changes without row events; `database` is where it was run."""
    text = _QUOTED.sub(_plain, statement).strip()
    # Settings for one statement stand in front of it.
    if prefix := _FOR_ONE.match(text):
        text = text[prefix.end() :]
    whole = _WHOLE.match(text)
    if whole is None:
        dropped = _DATABASE.match(text)
        if dropped is not None:
            return [Concerned(_bare(dropped[1]), None, "DROP DATABASE")]
        if _ROWS.match(text):
            how = f"{text.split(None, 1)[0].upper()} that was logged as a statement (binlog_format of its session)"
            return [Concerned(*place, how) for place in _all_places(text, database)]
        return []
    how = " ".join(whole[1].upper().split())
    if how == "ALTER":
        altered = _ALTER.match(text)
        if altered is None:
            return []
        columns = _altered_columns(text[altered.end() :])
        if columns is not None:
            return [Concerned(*_place(altered[1], database), "ALTER TABLE", columns)]
        names = [altered[1], *(found[1] for found in _ALTER_OTHER.finditer(text, altered.end()))]
        return [Concerned(*_place(name, database), "ALTER TABLE") for name in names]
    if how.startswith("CREATE"):
        created = _CREATE.match(text)
        return [Concerned(*_place(created[1], database), how)] if created else []
    return [Concerned(*place, how) for place in _all_places(text[whole.end() :], database)]


def _altered_columns(text: str) -> tuple[tuple[str, str], ...] | None:
    """The columns that the specifications of an ALTER TABLE alter, with their new types; None if they do more."""
    columns: list[tuple[str, str]] = []
    for one in _specifications(text):
        if renamed := _RENAME.match(one):
            columns.append((_bare(renamed[1]), ""))
        elif _HARMLESS.match(one) or _ADD.match(one):
            # A column that is added under a known name was dropped before, which is told there.
            if "FOREIGN" in one.upper() and _ACTING.search(one):
                return None
        elif changed := _CHANGE.match(one):
            before, now = _bare(changed[1]), _bare(changed[2])
            columns.append((before, changed[3] if before.lower() == now.lower() else ""))
        elif modified := _MODIFY.match(one):
            columns.append((_bare(modified[1]), modified[2]))
        elif dropped := _DROP.match(one):
            columns.append((_bare(dropped[1]), ""))
        else:
            return None
    return tuple(columns)


def _specifications(text: str) -> list[str]:
    """What stands between commas, but for those in parentheses."""
    parts, depth = [""], 0
    for token in re.finditer(r"`(?:[^`]|``)*`|.", text, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token[0]
    return [part.strip() for part in parts]


def _plain(quoted: re.Match[str]) -> str:
    """Names as they are, literals empty, comments gone.

    In double quotes is a literal, or a name if the session has ANSI_QUOTES: a name too many does no harm.
    """
    if quoted["name"] is not None:
        return quoted[0]
    if quoted["literal"] is not None:
        return "''"
    if quoted["either"] is not None:
        return "`" + quoted[0][1:-1].replace('""', '"').replace("`", "``") + "`"
    return " "


def _all_places(text: str, database: str) -> list[tuple[str, str]]:
    """Every name in a text that could be a table's: too many do no harm, a word is seldom one of ours."""
    return [_place(found[0], database) for found in _TABLE.finditer(text)]


def _place(name: str, database: str) -> tuple[str, str]:
    found = _TABLE.match(name)
    assert found is not None
    first, second = found[1], found[2]
    return (database, _bare(first)) if second is None else (_bare(first), _bare(second))


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
