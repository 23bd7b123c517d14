"""The query of a view as its user wrote it, for Spark to read by itself.

    SELECT o.id FROM shop.orders o WHERE ...      over      SELECT o.id FROM `t0` o WHERE ...

Only names of tables are replaced, in the text, at the places where they stand: nothing of what viewkeeper understood of
the expressions goes into it. `pieces` cuts the text at its clauses, so that each expression can be evaluated by itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from viewkeeper.sql.definition import read_definition
from viewkeeper.sql.syntax import words

_BEGINS_QUERY = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
_ENDS_ON = frozenset(
    {
        TokenType.JOIN, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.CROSS,
        TokenType.OUTER, TokenType.COMMA, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
    }
)  # fmt: skip
_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSES = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)


def original_query(sql: str, tables: Sequence[str]) -> str:
    """The query of a definition with these names in FROM, in the order in which its tables stand there."""
    query = read_definition(sql, None).query
    named = [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
    edits = [_renamed(table, name) for table, name in zip(named, tables, strict=True)]
    own = {tuple(part.name.lower() for part in table.parts) for table in named if not table.alias}
    edits += [edit for column in query.find_all(exp.Column) if (edit := _without_source(column, own))]
    first, text = _first_of_query(sql), sql
    for start, end, written in sorted(edits, reverse=True):
        text = text[:start] + written + text[end:]
    last = next(word for word in reversed(words(text)) if word.token_type is not TokenType.SEMICOLON)
    return text[first : last.end + 1]  # without a comment that would hide what is put after it


def _renamed(table: exp.Table, name: str) -> tuple[int, int, str]:
    start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
    return start, end, name if table.alias else f"{name} AS {_quoted(table.name)}"


def _without_source(column: exp.Column, own: set[tuple[str, ...]]) -> tuple[int, int, str] | None:
    """`source.table.column` without its source: a name that was replaced has none."""
    parts = column.parts
    names = tuple(part.name.lower() for part in parts)
    for length in range(2, len(names)):
        if names[:length] in own:
            return parts[0].meta["start"], parts[length - 1].meta["start"], ""
    return None


def _first_of_query(text: str) -> int:
    found = words(text)
    if found[0].text.upper() != "CREATE":
        return found[0].start
    return next(
        word.start
        for before, word in pairwise(found)
        if before.token_type is TokenType.ALIAS and word.token_type in _BEGINS_QUERY
    )


@dataclass(frozen=True)
class Pieces:
    """The expressions of a query, as they are written. `on` has None for a join without ON."""

    items: tuple[str, ...]
    distinct: bool
    on: tuple[str | None, ...]
    where: str | None
    group_by: str | None
    having: str | None


def pieces(query: str) -> Pieces:
    """The text of a query cut at its clauses."""
    found = words(query)
    depths = list(_depths(found))
    starts = {
        word.token_type: place
        for place, word in reversed(list(enumerate(found)))
        if depths[place] == 0 and _is_clause(found, place)
    }
    after = sorted(starts.values())

    def text_of(kind: TokenType) -> str | None:
        if (place := starts.get(kind)) is None:
            return None
        end = next((other for other in after if other > place), len(found))
        return _text(query, found[place + 1 : end])

    select, from_ = starts[TokenType.SELECT], starts[TokenType.FROM]
    quantifier = found[select + 1].token_type
    distinct = quantifier is TokenType.DISTINCT
    listed = range(select + (2 if distinct or quantifier is TokenType.ALL else 1), from_)
    return Pieces(
        tuple(_split(query, found, depths, listed, TokenType.COMMA)),
        distinct,
        tuple(_conditions_of_joins(query, found, depths, from_)),
        text_of(TokenType.WHERE),
        text_of(TokenType.GROUP_BY),
        text_of(TokenType.HAVING),
    )


def conjuncts(condition: str) -> list[str]:
    """The parts of a condition that AND connects, also inside parentheses around all of it."""
    found = words(condition)
    depths = list(_depths(found))
    while len(found) > 1 and found[0].token_type is TokenType.L_PAREN and depths[1:-1] and min(depths[1:-1]) > 0:
        if found[-1].token_type is not TokenType.R_PAREN:
            break
        found, depths = found[1:-1], [depth - 1 for depth in depths[1:-1]]
    top = [place for place, depth in enumerate(depths) if depth == 0]
    if any(found[place].token_type in (TokenType.OR, TokenType.XOR) for place in top):
        return [_text(condition, found)]
    parts, start, between = [], 0, 0
    for place in top:
        kind = found[place].token_type
        between += kind is TokenType.BETWEEN
        if kind is TokenType.AND and between:
            between -= 1
        elif kind is TokenType.AND:
            parts.append(found[start:place])
            start = place + 1
    parts.append(found[start:])
    if len(parts) == 1:
        return [_text(condition, found)]
    return [inner for part in parts for inner in conjuncts(_text(condition, part))]


def _is_clause(found: Sequence[Token], place: int) -> bool:
    kind = found[place].token_type
    if kind is TokenType.FROM:  # not that of IS DISTINCT FROM
        return place == 0 or found[place - 1].token_type is not TokenType.DISTINCT
    return kind in (TokenType.SELECT, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)


def _depths(found: Sequence[Token]) -> Iterator[int]:
    """How many parentheses, brackets and CASE are around each word; those themselves are inside."""
    depth = 0
    for word in found:
        depth += word.token_type in _OPENS
        yield depth
        depth -= word.token_type in _CLOSES


def _conditions_of_joins(query: str, found: Sequence[Token], depths: Sequence[int], first: int) -> Iterator[str | None]:
    place = first + 1
    joined = False
    while place < len(found) and found[place].token_type not in (
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
    ):
        kind = found[place].token_type
        if depths[place] == 0 and kind in (TokenType.JOIN, TokenType.COMMA):
            if joined:
                yield None
            joined = True
        if depths[place] == 0 and kind is TokenType.ON:
            end = place + 1
            while end < len(found) and not (depths[end] == 0 and _ends_on(found, end)):
                end += 1
            yield _text(query, found[place + 1 : end])
            joined = False
            place = end - 1
        place += 1
    if joined:
        yield None


def _ends_on(found: Sequence[Token], place: int) -> bool:
    kind = found[place].token_type
    if kind in (TokenType.LEFT, TokenType.RIGHT):  # LEFT(s, 2) is a function
        return place + 1 == len(found) or found[place + 1].token_type is not TokenType.L_PAREN
    return kind in _ENDS_ON


def _split(
    query: str, found: Sequence[Token], depths: Sequence[int], places: range, separator: TokenType
) -> Iterator[str]:
    start = places.start
    for place in places:
        if depths[place] == 0 and found[place].token_type is separator:
            yield _text(query, found[start:place])
            start = place + 1
    yield _text(query, found[start : places.stop])


def _text(query: str, found: Sequence[Token]) -> str:
    return query[found[0].start : found[-1].end + 1] if found else ""


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
