"""A query over tables of sources, as the summaries that it asks for.

    SELECT region, SUM(qty) / COUNT(*) FROM ... GROUP BY region ORDER BY SUM(qty) DESC LIMIT 3
    =  ORDER BY `order_1` DESC LIMIT 3 ( SELECT region, SUM(qty) / COUNT(*) AS column_2, SUM(qty) AS order_1 ... )

What is inside is a summary, or one for each grouping set, and is read as the definition of a view is. A query may do
more than a view: its columns need no names, and it may have an order, which may be by something that it does not show.
"""

import re
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.sql.aggregate_calls import has_call
from viewkeeper.sql.grouping import read_group_by
from viewkeeper.sql.names import bind_tables, visible_columns
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.syntax import spark_sql
from viewkeeper.sql.view import View
from viewkeeper.summary.defined import Defined, defined

QUERY = "the query"
_OUTER = ("order", "limit", "offset")
_POSITION = re.compile(r" \(line \d+, column \d+\)|^line \d+, column \d+: ")


@dataclass(frozen=True)
class AskedTable:
    """One of the summaries; `padded` makes rows of the query from its rows, and is empty if they are the same."""

    defined: Defined
    padded: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Asked:
    """What a query asks for. `columns` are those that it shows; their names may be made up."""

    tables: tuple[AskedTable, ...]
    columns: tuple[str, ...]
    order: str
    """ORDER BY, LIMIT and OFFSET, over the columns and those that only the order needs"""


def asked(select: exp.Select, relations: Catalog) -> Asked:
    """What a SELECT over relations asks for; DefinitionError if it is nothing that summaries can answer."""
    try:
        return _Reader(select.copy(), relations).asked()
    except DefinitionError as error:
        # Positions are those of another text.
        detail = _POSITION.sub("", error.detail).replace(" in a view", "")
        raise type(error)(
            f"the query is over tables of sources, and no summary can answer it: {detail}", error.hint, code=error.code
        ) from error


class _Reader:
    def __init__(self, select: exp.Select, relations: Catalog) -> None:
        self._relations = relations
        self._outer = {name: select.args.get(name) for name in _OUTER}
        for name in _OUTER:
            select.set(name, None)
        self._select = select
        self._taken = {item.alias_or_name.lower() for item in select.expressions}
        self._place_names()
        self._items: dict[str, exp.Expr] = {
            item.alias_or_name.lower(): item.unalias() for item in select.expressions if not item.is_star
        }
        self._added = 0

    def asked(self) -> Asked:
        order = [self._ordered(one) for one in self._outer["order"].expressions] if self._outer["order"] else []
        parsed = parse_definition(spark_sql(self._select), self._relations, name=QUERY)
        if isinstance(parsed, View | OuterJoinView):
            raise UnsupportedClause(
                "it shows rows, and summaries have groups",
                "create a view of these rows, and query that; or aggregate them",
            )
        tables = self._tables(parsed)
        columns = parsed.columns[: len(parsed.columns) - self._added]
        return Asked(tables, columns, self._order(order, columns))

    def _place_names(self) -> None:
        """Give every column a name of its own; Spark's are put back in the end."""
        seen: set[str] = set()
        for place, item in enumerate(self._select.expressions, 1):
            if item.is_star:
                continue
            name = item.alias_or_name if isinstance(item.unnest(), exp.Alias | exp.Column) else ""
            if name and name.lower() not in seen:
                seen.add(name.lower())
            else:
                item.replace(exp.alias_(item.unalias().copy(), self._free(f"column_{place}"), quoted=True))

    def _free(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    # --- ORDER BY ---

    def _ordered(self, one: exp.Expr) -> exp.Expr:
        """An element of ORDER BY over what the query shows, or over a column that is added for it."""
        ordered = one.copy()
        key = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        if isinstance(key, exp.Literal) and key.is_int:
            return ordered
        over_shown = key.copy().transform(self._shown)
        if any("shown" not in column.meta for column in over_shown.find_all(exp.Column)) or has_call(over_shown):
            if self._select.args.get("distinct"):
                raise UnsupportedClause(
                    f"SELECT DISTINCT is ordered by {spark_sql(key)}, which it does not show",
                    "order by what it shows, or add it to SELECT",
                )
            self._added += 1
            name = self._free(f"order_{self._added}")
            self._select.append("expressions", exp.alias_(key.transform(self._spelled_out), name, quoted=True))
            over_shown = exp.column(exp.to_identifier(name, quoted=True))
        key.replace(over_shown)
        return ordered

    def _shown(self, part: exp.Expr) -> exp.Expr:
        """A column of the query for its name, or for the same expression."""
        named = (name for name in self._items if self._names(part, name))
        alike = (name for name, item in self._items.items() if part == item)
        name = next(named, None) or next(alike, None)
        if name is None:
            return part
        column = exp.column(exp.to_identifier(self._spelling(name), quoted=True))
        column.meta["shown"] = True
        return column

    def _spelled_out(self, part: exp.Expr) -> exp.Expr:
        for name, item in self._items.items():
            if self._names(part, name) and not part.find_ancestor(exp.AggFunc):
                return exp.paren(item.copy())
        return part

    @staticmethod
    def _names(part: exp.Expr, name: str) -> bool:
        return isinstance(part, exp.Column) and len(part.parts) == 1 and part.name.lower() == name

    def _spelling(self, name: str) -> str:
        names: list[str] = [item.alias_or_name for item in self._select.expressions]
        return next(one for one in names if one.lower() == name)

    def _order(self, order: list[exp.Expr], columns: tuple[str, ...]) -> str:
        for one in order:
            key = one.this if isinstance(one, exp.Ordered) else one
            if isinstance(key, exp.Literal) and key.is_int:
                place = int(key.name)
                if not 1 <= place <= len(columns):
                    raise DefinitionError(
                        f"ORDER BY {place}: the columns are numbered from 1 to {len(columns)}", "count again"
                    )
                key.replace(exp.column(exp.to_identifier(columns[place - 1], quoted=True)))
        clauses = [exp.Order(expressions=order)] if order else []
        clauses += [clause for name in ("limit", "offset") if (clause := self._outer[name])]
        return "\n".join(spark_sql(clause).strip() for clause in clauses)

    # --- the summaries ---

    def _tables(self, parsed: SummaryView | Family) -> tuple[AskedTable, ...]:
        if isinstance(parsed, SummaryView):
            return (AskedTable(defined(parsed)),)
        if len(parsed.members) < self._sets():
            # Spark repeats its rows; a family has each set once.
            raise UnsupportedClause("a grouping set is requested twice", "leave one of the two out")
        return tuple(AskedTable(defined(member.view), member.padded) for member in parsed.members)

    def _sets(self) -> int:
        select = self._select.copy()
        assert isinstance(select, exp.Select)
        sets = read_group_by(select, visible_columns(select, bind_tables(select, self._relations))).sets
        return len(sets or ())
