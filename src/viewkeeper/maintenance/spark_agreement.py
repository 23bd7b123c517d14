"""A new view is understood as Spark understands its text, or it is refused.

    Spark(text)  =  Spark(our text of the tree)  =  driver(tree)        types, and values on a sample of rows

The sample has rows of the relations and edge values. The relations are paired row by row, so that every expression sees
every kind of value, whether or not rows would meet in the join. Views of plain columns have nothing to compare and need
no Spark.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from viewkeeper.errors import DefinitionError, ExpressionError
from viewkeeper.sql.expressions import Expression, qualified
from viewkeeper.sql.outer_join import OuterJoinView
from viewkeeper.sql.relation import Catalog, Relation
from viewkeeper.sql.sample_rows import Row, sample_rows
from viewkeeper.sql.summary_view import Family, SummaryView
from viewkeeper.sql.syntax import spark_sql, words
from viewkeeper.sql.type_families import type_named
from viewkeeper.sql.view import OutputColumn, View
from viewkeeper.sql.written_expressions import Written, WrittenView, is_plain, written_view
from viewkeeper.summary.recompute_sql import select_of_summary
from viewkeeper.summary.statements import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AnyView = View | OuterJoinView | SummaryView | Family
_Statement = tuple[str, Callable[..., None]]
"""what Spark evaluates, and what judges the answer"""
_Part = Callable[[Sequence[str], str], list[_Statement]]
"""the statements of a part of a view, over tables with the sample and their join"""

SAMPLE, REAL = 48, 24
"""rows that are generated, and rows of each relation, for one comparison"""
_ROW, _HAVING = "_vk_row", "_vk_having"
_HINT = "write it with parentheses and CASTs so that it can be read in one way only, or compute it at the source"
_agreed: set[tuple[object, ...]] = set()
"""What was compared in this process: what Spark reads in a text does not change."""


def check_agreement(
    view: AnyView, catalog: Catalog, spark: "Callable[[], SparkSession]", contents: Mapping[str, Any] | None = None
) -> None:
    """DefinitionError if Spark reads the text of a view in another way; `contents` has rows of its relations."""
    if all(is_plain(one.node) for one in _expressions(view)):
        return
    written = written_view(view.sql, catalog)
    relations = {operand.relation.name: operand.relation for operand in written.operands}
    key = (view.sql, *((name, one.columns, one.types) for name, one in sorted(relations.items())))
    if key not in _agreed:
        _Comparison(view, written, spark(), _real_rows(relations, contents or {})).run()
        _agreed.add(key)


def _summaries(view: AnyView) -> list[SummaryView]:
    if isinstance(view, Family):
        return [member.view for member in view.members]
    return [view] if isinstance(view, SummaryView) else []


def _core(view: AnyView) -> View | OuterJoinView:
    summaries = _summaries(view)
    if summaries:
        return summaries[0].core
    assert isinstance(view, View | OuterJoinView)
    return view


def _expressions(view: AnyView) -> Iterator[Expression]:
    core = _core(view)
    yield from (column.expression for column in core.output)
    yield from core.conditions if isinstance(core, View) else ()
    if isinstance(core, OuterJoinView):
        yield from core.where
        yield from (condition for step in core.steps for condition in step.conditions)
    for summary in _summaries(view):
        yield from (column.expression for column in summary.output)
        yield from [summary.having] if summary.having is not None else []


def _real_rows(relations: Mapping[str, Relation], contents: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Some rows of each relation, if they are on the driver."""
    found = {}
    for name, relation in relations.items():
        held = contents.get(name)
        if held is not None and getattr(held, "in_memory", False):
            found[name] = [row for row, _ in islice(held.keep(relation.columns).weights(), REAL)]
    return found


@dataclass
class _Comparison:
    view: AnyView
    written: WrittenView
    spark: "SparkSession"
    real: Mapping[str, Sequence[Row]]

    def run(self) -> None:
        """All at once, on all rows or on those on which arithmetic does not fail. If Spark evaluates neither, each
        expression by itself: what it cannot evaluate even on rows of the relations alone is compared by its type."""
        samples = [self._rows(SAMPLE, mild=mild) for mild in (False, True)]
        if any(self._compared(rows, self._everything) for rows in samples):
            return
        samples += [self._rows(0, mild=True) if self.real else [], []]
        for part in self._parts():
            any(self._compared(rows, part) for rows in samples)

    # --- what is compared: statements, and who judges their answers ---

    @property
    def _pairs(self) -> list[Written]:
        return [*self.written.items, *self.written.conditions]

    @property
    def _own(self) -> list[Expression]:
        return [column.expression for column in _core(self.view).output] if _summaries(self.view) else []

    def _everything(self, tables: Sequence[str], joined: str) -> list[_Statement]:
        return [self._row_by_row(joined, self._pairs, self._own), *self._grouped(tables, joined)]

    def _parts(self) -> Iterator[_Part]:
        for one in self._pairs:
            yield partial(self._alone, [one], [])
        for own in self._own:
            yield partial(self._alone, [], [own])
        yield lambda tables, joined: list(self._grouped(tables, joined))

    def _alone(self, pairs: list[Written], own: list[Expression], _: Sequence[str], joined: str) -> list[_Statement]:
        return [self._row_by_row(joined, pairs, own)]

    # --- rows: one of each operand, side by side ---

    def _rows(self, count: int, *, mild: bool) -> list[Row]:
        nodes = [one.node for one in _expressions(self.view)]
        parts = []
        for index, operand in enumerate(self.written.operands):
            generated = sample_rows(operand.relation.types, nodes, count, mild=mild, operand=index)
            real = self.real.get(operand.relation.name) or generated or [(None,) * len(operand.columns)]
            parts.append([*(real[(place + index) % len(real)] for place in range(REAL)), *generated])
        rows = [sum(several, ()) for several in zip(*parts, strict=True)]
        joined = [self._with_using(row) for row in rows]
        return [row for row in joined if not any(_fails(one, self._columns, row) for one in self._understood)]

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(column for operand in self.written.operands for column in operand.columns)

    def _with_using(self, row: Row) -> Row:
        """The columns of USING have one value."""
        values = dict(zip(self._columns, row, strict=True))
        seen: dict[str, Any] = {}
        for operand, using in zip(self.written.operands, ((), *self.written.using), strict=True):
            for flat, column in zip(operand.columns, operand.relation.columns, strict=True):
                if column.lower() in using and column.lower() in seen:
                    values[flat] = seen[column.lower()]
                seen.setdefault(column.lower(), values[flat])
        return tuple(values.values())

    @property
    def _understood(self) -> list[Expression]:
        core = _core(self.view)
        return [
            *(one.expression for one in (*self.written.items, *self.written.conditions)),
            *(column.expression for column in core.output),
        ]

    # --- the comparison ---

    def _compared(self, rows: Sequence[Row], part: _Part) -> bool:
        """False if Spark cannot evaluate something of a part on these rows."""
        from viewkeeper.summary.propagate import TemporaryNames

        with TemporaryNames(self.spark) as temporary:
            tables = [
                temporary.name(self._frame(operand.relation, start, rows))
                for operand, start in zip(self.written.operands, self._starts(), strict=True)
            ]
            results = part(tables, self._joined(tables))
            answers = []
            for statement, _ in results:
                frame = self._analyzed(statement)
                try:
                    answers.append((frame, frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).toArrow()))
                except Exception as error:
                    if _is_of_a_row(error) and rows:
                        return False
                    raise
            try:
                for (_, judge), (frame, answer) in zip(results, answers, strict=True):
                    judge(frame, answer, rows)
            except ExpressionError:  # a date that Python cannot hold
                return False
        return True

    def _starts(self) -> Iterator[int]:
        start = 0
        for operand in self.written.operands:
            yield start
            start += len(operand.columns)

    def _frame(self, relation: Relation, start: int, rows: Sequence[Row]) -> "DataFrame":
        import pyarrow as pa

        from viewkeeper.algebra.pyspark_names import F
        from viewkeeper.lake.log.columns import arrow_type, spark_schema
        from viewkeeper.maintenance.contents import frame_of_table

        arrays, names = [pa.array(range(len(rows)), pa.int32())], [_ROW]
        for place, (name, type) in enumerate(zip(relation.columns, relation.types, strict=True), start):
            try:
                arrays.append(pa.array([row[place] for row in rows], arrow_type(type)))
                names.append(name)
            except (KeyError, pa.ArrowException):
                continue  # a type that has no values on the driver: NULL
        frame = frame_of_table(self.spark, pa.Table.from_arrays(arrays, names))
        fields = spark_schema(tuple(zip(relation.columns, relation.types, strict=True)), signed=False).fields
        columns = [
            (F.col(quoted(field.name)) if field.name in names else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in fields
        ]
        return frame.select(F.col(_ROW), *columns)

    def _joined(self, tables: Sequence[str]) -> str:
        first, *others = zip(tables, self.written.operands, strict=True)
        text = f"{first[0]} AS {quoted(first[1].alias)}"
        for (table, operand), using in zip(others, self.written.using, strict=True):
            columns = ", ".join([_ROW, *map(quoted, using)])
            text += f" JOIN {table} AS {quoted(operand.alias)} USING ({columns})"
        return text

    def _row_by_row(self, joined: str, pairs: Sequence[Written], own: Sequence[Expression]) -> _Statement:
        texts = [one.text if one in self.written.items else f"({one.text})" for one in pairs]
        trees = [spark_sql(one.expression.node) for one in pairs] + [spark_sql(one.node) for one in own]
        statement = f"SELECT {', '.join([_ROW, *texts, *(f'({tree})' for tree in trees)])} FROM {joined}"

        def judge(frame: "DataFrame", answer: Any, rows: Sequence[Row]) -> None:
            places, *columns = (_values(f"c{place}", column) for place, column in enumerate(answer.columns))
            types = [field.dataType.simpleString() for field in frame.schema.fields[1:]]
            originals, ours = columns[: len(pairs)], columns[len(pairs) :]
            for place, one in enumerate(pairs):
                _refuse_type(one, types[place])
                _refuse_values(one, rows, places, originals[place], ours[place], "viewkeeper's text of it")
            for place, expression in enumerate([*(one.expression for one in pairs), *own]):
                evaluated = self._on_driver(expression, [rows[number] for number in places])
                if evaluated is not None:
                    one = pairs[place] if place < len(pairs) else Written("the view", str(expression), expression)
                    _refuse_values(one, rows, places, ours[place], evaluated, "viewkeeper")

        return statement, judge

    def _on_driver(self, expression: Expression, rows: Sequence[Row]) -> list[Any] | None:
        try:
            evaluate = expression.compile(self._columns)
        except ExpressionError:
            return None
        return [evaluate(row) for row in rows]

    def _grouped(self, tables: Sequence[str], joined: str) -> Iterator[_Statement]:
        """The aggregates and HAVING, over groups of the sample."""
        summaries = _summaries(self.view)
        cut = self.written.pieces
        if not summaries or any(item.endswith("*") for item in cut.items):
            return
        group_by = f" GROUP BY {cut.group_by}" if cut.group_by else ""
        distinct = "DISTINCT " if cut.distinct or summaries[0].repeated_sets else ""
        shown = [*cut.items, f"({cut.having}) AS {_HAVING}"] if cut.having else cut.items
        statement = f"SELECT {distinct}{', '.join(shown)} FROM {joined}{group_by}"
        as_item = bool(cut.having) and not self._names_of_having() and self._is_analyzed(statement)
        if cut.having and not as_item:
            statement = f"SELECT {distinct}{', '.join(cut.items)} FROM {joined}{group_by} HAVING {cut.having}"
        yield statement, self._remember
        names = {operand.alias: table for operand, table in zip(self.written.operands, tables, strict=True)}
        yield " UNION ALL ".join(self._member(one, names, as_item) for one in summaries), self._judge_groups

    def _names_of_having(self) -> set[str]:
        """Names in HAVING that are an output column's and a table's: HAVING means the first, a list of items the
        second."""
        output = {column.name.lower() for one in _summaries(self.view) for column in one.output}
        columns = {column.lower() for operand in self.written.operands for column in operand.relation.columns}
        return {word.text.lower() for word in words(self.written.pieces.having or "")} & output & columns

    def _is_analyzed(self, statement: str) -> bool:
        try:
            self._analyzed(statement)
        except DefinitionError:
            return False
        return True

    def _member(self, summary: SummaryView, names: Mapping[str, str], as_item: bool) -> str:
        first, *others = (operand.alias for operand in self.written.operands)
        paired = [
            Expression.from_node(exp.EQ(this=qualified(f"{first}.{_ROW}"), expression=qualified(f"{other}.{_ROW}")))
            for other in others
        ]
        output, having = summary.output, summary.having
        if as_item:
            assert having is not None
            output, having = (*output, OutputColumn(_HAVING, having)), None
        operands = tuple(
            replace(one, relation=replace(one.relation, name=names[one.alias])) for one in summary.core.operands
        )
        core = replace(summary.core, operands=operands, conditions=(*paired, *self._by_using()))
        select = select_of_summary(
            replace(summary, having=having, output=output, core=core), {table: table for table in names.values()}
        )
        if not isinstance(self.view, Family):
            return f"({select})"
        padded = next(member.padded for member in self.view.members if member.view is summary)
        items = [f"{sql} AS {quoted(name)}" for name, sql in padded] + ([_HAVING] if as_item else [])
        return f"(SELECT {', '.join(items)} FROM ({select}))"

    def _by_using(self) -> Iterator[Expression]:
        for operand, using in zip(self.written.operands[1:], self.written.using, strict=True):
            own = {column.lower(): column for column in operand.relation.columns}
            for name in using:
                yield Expression.from_node(
                    exp.Is(this=qualified(f"{operand.alias}.{own[name]}"), expression=exp.Null()).not_()
                )

    def _remember(self, frame: "DataFrame", answer: Any, rows: Sequence[Row]) -> None:
        self._expected = (frame, answer)

    def _judge_groups(self, frame: "DataFrame", answer: Any, rows: Sequence[Row]) -> None:
        expected, original = self._expected
        for place, field in enumerate(expected.schema.fields):
            ours = frame.schema.fields[place].dataType.simpleString()
            if _type(field.dataType.simpleString()) != _type(ours):
                raise _other_type(f"the output column {field.name}", field.dataType.simpleString(), ours)
        wanted, found = _bag(original), _bag(answer)
        if len(wanted) != len(found) or not all(map(_same_row, wanted, found)):
            different = next((pair for pair in zip(wanted, found, strict=False) if not _same_row(*pair)), None)
            shown = f": Spark gives {different[0]}, and viewkeeper {different[1]}" if different else ""
            raise DefinitionError(
                f"the aggregates of {self.view.name} mean something else to Spark than to viewkeeper{shown}", _HINT
            )

    def _analyzed(self, statement: str) -> "DataFrame":
        from viewkeeper.algebra.pyspark_names import AnalysisException
        from viewkeeper.errors import first_line

        try:
            return self.spark.sql(statement)
        except AnalysisException as error:  # a text that does not parse included
            raise DefinitionError(
                f"Spark does not read the definition of {self.view.name}: {first_line(error)}", _HINT
            ) from error


def _fails(expression: Expression, columns: tuple[str, ...], row: Row) -> bool:
    try:
        evaluate = expression.compile(columns)
    except ExpressionError:
        return False
    try:
        evaluate(row)
    except ExpressionError:
        return True
    return False


def _is_of_a_row(error: Exception) -> bool:
    """Whether an expression failed on a row: an overflow, a division by zero, a text that is no date."""
    from viewkeeper.algebra.pyspark_names import PySparkException

    return isinstance(error, PySparkException)


def _refuse_type(one: Written, found: str) -> None:
    if one.expression.type and _type(found) != _type(one.expression.type):
        raise _other_type(f"{one.place}, {one.text}", found, one.expression.type)


def _other_type(what: str, found: str, ours: str) -> DefinitionError:
    return DefinitionError(f"{what}: its type is {found.upper()} in Spark, and viewkeeper takes it for {ours}", _HINT)


def _type(name: str) -> str:
    return type_named(name.upper()).name.replace(" ", "").upper()


def _refuse_values(
    one: Written, rows: Sequence[Row], places: Sequence[int], wanted: Sequence[Any], found: Sequence[Any], whose: str
) -> None:
    for place, expected, value in zip(places, wanted, found, strict=True):
        if not _same(expected, value):
            raise DefinitionError(
                f"{one.place} means something else to Spark than to viewkeeper: {one.text} is {expected!r} in "
                f"Spark and {value!r} by {whose}, for the values {rows[place]}",
                _HINT,
            )


def _values(name: str, column: Any) -> list[Any]:
    import pyarrow as pa

    from viewkeeper.algebra.arrow_rows import python_values

    if pa.types.is_nested(column.type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    return python_values(name, column)


def _bag(answer: Any) -> list[tuple[Any, ...]]:
    columns = [_values(name, column) for name, column in zip(answer.column_names, answer.columns, strict=True)]
    return sorted(zip(*columns, strict=True), key=lambda row: tuple(_rounded(value) for value in row))


def _rounded(value: Any) -> str:
    """For an order in which rows that differ by rounding alone are neighbours."""
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _same_row(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(map(_same, row, other))


def _same(one: Any, other: Any) -> bool:
    from math import isclose

    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other) or isclose(one, other, rel_tol=1e-9)
    return bool(one == other) and (one is None) == (other is None)
