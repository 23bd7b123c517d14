"""Queries that name tables of sources: each SELECT over them is answered from the cheapest stored ancestor.

    SELECT region, SUM(qty) FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID GROUP BY region

Such a SELECT may also stand in a subquery, a WITH or a UNION, beside others that read views. What is around it stays.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from viewkeeper.errors import NotAnswered, UnsupportedClause
from viewkeeper.maintenance.summaries.stored_ancestors import KnownTables
from viewkeeper.sql.syntax import not_too_deep, parse_statement, spark_sql
from viewkeeper.summary.answering import Answer, Way, first_sound, ways
from viewkeeper.summary.asked import AskedTable, asked
from viewkeeper.summary.defined import Defined
from viewkeeper.summary.unanswered import unfit

MOST_TOLD = 10
"""tables that an error names"""


@dataclass(frozen=True)
class AnsweredSelect:
    """A SELECT over tables of sources, and its answer."""

    select: exp.Select
    answer: Answer


@dataclass(frozen=True)
class AnsweredQuery:
    """A whole query, with the answers of those of its SELECTs that are over tables of sources."""

    tree: exp.Query
    parts: tuple[AnsweredSelect, ...]

    @property
    def whole(self) -> AnsweredSelect | None:
        """The SELECT that is the whole query, if it is one over tables of sources."""
        alone = len(self.parts) == 1 and self.parts[0].select is self.tree and not self.tree.args.get("with_")
        return self.parts[0] if alone else None

    def rewritten(self, sql: Callable[[AnsweredSelect], str]) -> exp.Query:
        """The tree with each of those SELECTs replaced by a statement."""
        instead = {id(part.select): parse_statement(sql(part)) for part in self.parts}
        for part in self.parts:
            instead[id(part.select)].set("with_", part.select.args.get("with_"))
        return _replaced(self.tree, instead)


def answered_query(query: str, named: Iterable[exp.Table], known: KnownTables) -> AnsweredQuery | None:
    """The answers that a query needs, which names these tables; None if none is of a source. NotAnswered if there is
    none."""
    dotted = [table for table in named if len(table.parts) > 1]
    if not dotted or not any(is_of_source(table, known.sources) for table in dotted):
        return None
    with not_too_deep():
        tree = parse_statement(query)
        assert isinstance(tree, exp.Query)
        selects = [select for select in _selects(tree) if tables_of_sources(select, known.sources)]
        return AnsweredQuery(tree, tuple(_answered(select, known) for select in selects))


def is_of_source(table: exp.Table, sources: Collection[str]) -> bool:
    """Whether a name in FROM begins with that of a source."""
    return len(table.parts) > 1 and table.parts[0].name.lower() in sources


def _selects(tree: exp.Query) -> Iterator[exp.Select]:
    for scope in traverse_scope(tree):
        if isinstance(scope.expression, exp.Select):
            yield scope.expression


def tables_of_sources(select: exp.Select, sources: Collection[str]) -> list[exp.Table]:
    """The tables in the FROM of a SELECT that are of sources."""
    return [table for table in _from(select) if is_of_source(table, sources)]


def _from(select: exp.Select) -> list[exp.Table]:
    from_ = select.args.get("from_")
    found = [from_.this] if from_ else []
    found += [join.this for join in select.args.get("joins") or ()]
    return [table for table in found if isinstance(table, exp.Table)]


def _refuse_mixed(select: exp.Select, known: KnownTables) -> None:
    """A summary, or a name of WITH, has no changes that a lattice could be over."""
    relations = {name.casefold() for name in known.relations}
    for table in _from(select):
        if not table.db and table.name.casefold() not in relations:
            ours = ", ".join(spark_sql(one.copy()) for one in tables_of_sources(select, known.sources))
            raise UnsupportedClause(
                f"one SELECT joins {table.name} with tables of sources, and no summary has both",
                f"aggregate these first: {table.name} JOIN (SELECT ... FROM {ours} GROUP BY ...) AS a ON ...",
            )


def _replaced(tree: exp.Query, instead: Mapping[int, exp.Expr]) -> exp.Query:
    if id(tree) in instead:
        found = instead[id(tree)]
        assert isinstance(found, exp.Query)
        return found
    # Nodes are known by identity, and a copy has others: the tree itself is changed, and nobody else has it.
    for node in list(tree.walk()):
        if id(node) in instead:
            node.replace(instead[id(node)])
    return tree


# --- the choice ---


def _answered(select: exp.Select, known: KnownTables) -> AnsweredSelect:
    _refuse_mixed(select, known)
    alone = select.copy()
    assert isinstance(alone, exp.Select)
    alone.set("with_", None)
    query = asked(alone, known.relations)
    return AnsweredSelect(select, Answer(query, tuple(_chosen(table, known) for table in query.tables)))


def _chosen(table: AskedTable, known: KnownTables) -> Way:
    way = first_sound(all_ways(table.defined, known), known.holds)
    if way is None:
        raise _not_answered(table.defined, known)
    return way


def all_ways(made: Defined, known: KnownTables) -> list[Way]:
    """The cheapest first; those of lattices that lag behind their facts last."""
    fresh = [one.stored for one in known.ancestors.values() if one.current]
    lagging = [one.stored for one in known.ancestors.values() if not one.current]
    return [*ways(made, fresh), *ways(made, lagging)]


def _not_answered(made: Defined, known: KnownTables) -> NotAnswered:
    fact, views = made.star.fact.name, known.snapshot.views
    stored = [one.stored for one in known.ancestors.values()]
    hint = "create a view with this SELECT, which then answers it"
    if views:
        hint += f"; or read the views by their names: {_listed(views)}"
    closest = unfit(made, stored)
    if not closest:
        return NotAnswered(
            f"no stored table answers the query: {fact} is at its source, and no summary of it is stored", hint
        )
    tables = _listed(
        f"{node.name} ({', '.join(node.keys) or 'no groups'})"
        for one in stored
        for node in one.nodes
        if node.fact == made.node.fact and not node.hidden
    )
    return NotAnswered(
        f"no stored table answers the query. Over {fact} there is {tables}. "
        f"{closest[0].table} comes closest, but {', and '.join(closest[0].missing)}",
        hint,
    )


def _listed(found: Iterable[str]) -> str:
    names = list(found)
    more = [f"and {len(names) - MOST_TOLD} more"] if len(names) > MOST_TOLD else []
    return ", ".join([*names[:MOST_TOLD], *more])
