"""What a summary table cannot have is refused when it is created, with the reason and a way out."""

import pytest

from viewkeeper.errors import DefinitionError, UnknownName, UnsupportedClause
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Catalog
from viewkeeper.sql.summary_view import SummaryView

KEEP_ROWS = "keep the rows in a view without GROUP BY, and compute it when reading that view"
HOLISTIC = "it is holistic, so that what it is for parts of a group cannot be put together when rows are deleted"
UNDETERMINED = "which row it takes is not determined"
SUMS = "keep the sums that it is made of"

# A call over retail.pos, what it is called in the message, the reason and the way out.
FUNCTIONS = [
    ("MEDIAN(qty)", "MEDIAN", HOLISTIC, KEEP_ROWS),
    ("PERCENTILE(qty, 0.5)", "PERCENTILE", HOLISTIC, KEEP_ROWS),
    ("PERCENTILE_APPROX(qty, 0.5)", "PERCENTILE_APPROX", HOLISTIC, KEEP_ROWS),
    ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY qty)", "PERCENTILE_CONT", HOLISTIC, KEEP_ROWS),
    ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY qty)", "PERCENTILE_DISC", HOLISTIC, KEEP_ROWS),
    ("MODE(qty)", "MODE", HOLISTIC, KEEP_ROWS),
    ("COLLECT_LIST(qty)", "COLLECT_LIST", HOLISTIC, KEEP_ROWS),
    ("ARRAY_AGG(qty)", "COLLECT_LIST", HOLISTIC, KEEP_ROWS),
    ("COLLECT_SET(qty)", "COLLECT_SET", HOLISTIC, "SELECT DISTINCT of the groups and the value"),
    ("COLLECT_SET(qty) FILTER (WHERE gift)", "COLLECT_SET", HOLISTIC, "SELECT DISTINCT"),
    ("STRING_AGG(note)", "LISTAGG", HOLISTIC, KEEP_ROWS),
    ("LISTAGG(note, ',') WITHIN GROUP (ORDER BY note)", "LISTAGG", HOLISTIC, KEEP_ROWS),
    ("HISTOGRAM_NUMERIC(qty, 5)", "HISTOGRAM_NUMERIC", HOLISTIC, KEEP_ROWS),
    ("COUNT_MIN_SKETCH(qty, 0.1, 0.9, 1)", "COUNT_MIN_SKETCH", HOLISTIC, KEEP_ROWS),
    ("HLL_SKETCH_AGG(qty)", "HLL_SKETCH_AGG", HOLISTIC, KEEP_ROWS),
    ("BIT_AND(qty)", "BIT_AND", HOLISTIC, KEEP_ROWS),
    ("BIT_OR(qty)", "BIT_OR", HOLISTIC, KEEP_ROWS),
    ("BIT_XOR(qty)", "BIT_XOR", HOLISTIC, KEEP_ROWS),
    ("MAX_BY(note, qty)", "MAX_BY", HOLISTIC, "keep MAX or MIN of the second argument"),
    ("MIN_BY(note, qty)", "MIN_BY", HOLISTIC, "keep MAX or MIN of the second argument"),
    ("APPROX_COUNT_DISTINCT(qty)", "APPROX_COUNT_DISTINCT", "an estimate cannot be corrected", "COUNT(DISTINCT x)"),
    ("FIRST(qty)", "FIRST", UNDETERMINED, "write MIN or MAX"),
    ("FIRST(qty) IGNORE NULLS", "FIRST", UNDETERMINED, "write MIN or MAX"),
    ("LAST(qty)", "LAST", UNDETERMINED, "write MIN or MAX"),
    ("FIRST_VALUE(qty)", "FIRST_VALUE", UNDETERMINED, "write MIN or MAX"),
    ("LAST_VALUE(qty)", "LAST_VALUE", UNDETERMINED, "write MIN or MAX"),
    ("ANY_VALUE(qty)", "ANY_VALUE", UNDETERMINED, "write MIN or MAX"),
    ("CORR(qty, weight)", "CORR", "made of sums that no other function needs", SUMS),
    ("COVAR_POP(qty, weight)", "COVAR_POP", "made of sums that no other function needs", SUMS),
    ("COVAR_SAMP(qty, weight)", "COVAR_SAMP", "made of sums that no other function needs", SUMS),
    ("SKEWNESS(qty)", "SKEWNESS", "made of sums that no other function needs", SUMS),
    ("KURTOSIS(qty)", "KURTOSIS", "made of sums that no other function needs", SUMS),
    ("REGR_SLOPE(qty, weight)", "REGR_SLOPE", "made of sums that no other function needs", SUMS),
    ("BOOL_AND(gift)", "BOOL_AND", "not maintained under this name", "write MIN of the condition"),
    ("EVERY(gift)", "EVERY", "not maintained under this name", "write MIN of the condition"),
    ("BOOL_OR(gift)", "BOOL_OR", "not maintained under this name", "write MAX of the condition"),
    ("SOME(gift)", "SOME", "not maintained under this name", "write MAX of the condition"),
    ("ANY(gift)", "ANY", "not maintained under this name", "write MAX of the condition"),
    ("TRY_SUM(qty)", "TRY_SUM", "an overflow stops a refresh instead", "write SUM or AVG"),
    ("TRY_AVG(qty)", "TRY_AVG", "an overflow stops a refresh instead", "write SUM or AVG"),
]


@pytest.mark.parametrize(("call", "name", "reason", "hint"), FUNCTIONS)
def test_functions_that_are_not_maintained(retail: Catalog, call: str, name: str, reason: str, hint: str) -> None:
    for sql in (f"SELECT {call} AS x FROM retail.pos", f"SELECT storeID, -({call}) AS x FROM retail.pos GROUP BY 1"):
        with pytest.raises(UnsupportedClause) as refused:
            parse_definition(sql, retail)
        assert f"the aggregate {name} is not supported in a view: " in refused.value.detail
        assert reason in refused.value.detail
        assert hint in refused.value.hint
    with pytest.raises(UnsupportedClause, match=f"the aggregate {name} "):
        parse_view(f"SELECT {call} AS x FROM retail.pos", retail)


@pytest.mark.parametrize(
    "instead",
    [
        "MIN(gift)",
        "MAX(qty > 1)",
        "COUNT(DISTINCT CONCAT(qty, '/', note))",
        "COUNT(CASE WHEN qty IS NOT NULL AND note IS NOT NULL THEN 1 END)",
        "SUM(CAST(note AS DOUBLE))",
        "AVG(CAST(gift AS INT))",
        "MIN(extra['key'])",
        "SUM(CAST(TRY_DIVIDE(qty, 2) AS BIGINT))",
        "SUM(qty * weight)",
    ],
)
def test_ways_out_are_open(retail: Catalog, instead: str) -> None:
    assert isinstance(parse_definition(f"SELECT {instead} AS x FROM retail.pos", retail), SummaryView)


POS = "SELECT {} FROM retail.pos"
UNSUPPORTED = [
    # arguments
    (POS.format("SUM(DISTINCT qty) AS x"), "SUM(DISTINCT qty) is not", "last duplicate", "compute SUM when reading it"),
    (
        POS.format("MEAN(DISTINCT qty) AS x"),
        "MEAN(DISTINCT qty) is not",
        "last duplicate",
        "compute MEAN when reading it",
    ),
    (POS.format("STD(DISTINCT qty) AS x"), "STD(DISTINCT qty) is not", "last duplicate", "compute STD when reading it"),
    (POS.format("COUNT(qty, note) AS x"), "COUNT(qty, note) is", "NULL in any", "THEN 1 END)"),
    (POS.format("COUNT(pos.*) AS x"), "COUNT(pos.*) is", "NULL in any", "THEN 1 END)"),
    (POS.format("COUNT(DISTINCT qty, note) AS x"), "COUNT(DISTINCT qty, note) is", "NULL in any", "CONCAT(a, '/', b)"),
    (POS.format("COUNT(DISTINCT (qty, note)) AS x"), "COUNT(DISTINCT (qty, note)) is", "NULL", "CONCAT(a, '/', b)"),
    (POS.format("COUNT(DISTINCT *) AS x"), "COUNT(DISTINCT *) is", "NULL in any", "CONCAT(a, '/', b)"),
    (POS.format("COUNT() AS x"), "COUNT of 0 arguments", "it takes one", "write COUNT(*)"),
    (POS.format("MAX(qty, weight) AS x"), "MAX of 2 arguments", "it takes one", "write MAX(column)"),
    (POS.format("STD(qty, weight) AS x"), "STD of 2 arguments", "it takes one", "write STD(column)"),
    (POS.format("MEAN() AS x"), "MEAN of 0 arguments", "it takes one", "write MEAN(column)"),
    (POS.format("SUM(*) AS x"), "SUM(*) is", "one value of each row", "write SUM(column)"),
    (POS.format("SUM(qty ORDER BY note) AS x"), "ORDER BY inside SUM", "does not matter", "leave it out"),
    (POS.format("SUM(qty) IGNORE NULLS AS x"), "IGNORE NULLS after SUM", "no meaning", "leave it out"),
    (POS.format("MAX(qty) RESPECT NULLS AS x"), "RESPECT NULLS after MAX", "no meaning", "leave it out"),
    (POS.format("AVG(qty) WITHIN GROUP (ORDER BY qty) AS x"), "WITHIN GROUP after AVG", "no meaning", "leave it out"),
    # places
    (POS.format("SUM(MAX(qty)) AS x"), "SUM of MAX", "aggregates twice", "define a view with the inner one"),
    (POS.format("SUM(qty + COUNT(*)) AS x"), "SUM of COUNT", "aggregates twice", "define a view with the inner one"),
    (POS.format("SUM(GROUPING(qty)) AS x"), "SUM of GROUPING", "aggregates twice", "define a view with the inner one"),
    (POS.format("qty") + " WHERE SUM(qty) > 3 GROUP BY qty", "SUM in WHERE", "not made yet", "into HAVING"),
    (POS.format("qty") + " WHERE qty > MEAN(qty)", "MEAN in WHERE", "not made yet", "into HAVING"),
    (
        "SELECT qty FROM retail.pos p JOIN retail.stores s ON MAX(qty) = s.storeID GROUP BY qty",
        "MAX in ON",
        "not made yet",
        "into HAVING",
    ),
    (POS.format("qty") + " GROUP BY qty, SUM(qty)", "SUM in GROUP BY", "not made yet", "leave the aggregate out"),
    (POS.format("qty") + " GROUP BY GROUPING(qty)", "GROUPING in GROUP BY", "not made yet", "leave the aggregate out"),
    (POS.format("SUM(qty) FILTER (WHERE MAX(qty) > 1) AS x"), "MAX in FILTER", "not made yet", "leave the aggregate"),
    (POS.format("UPPER(note) FILTER (WHERE gift) AS x"), "FILTER after UPPER(note)", "no aggregate", "into WHERE"),
    (POS.format("COUNT(*) AS n, UPPER(note) FILTER (WHERE gift) AS x"), "FILTER after UPPER", "no aggregate", "WHERE"),
    # clauses
    (
        POS.format("DISTINCT qty, COUNT(*) AS n") + " GROUP BY qty",
        "SELECT DISTINCT with GROUP BY",
        "twice",
        "leave DIS",
    ),
    (POS.format("DISTINCT qty") + " HAVING qty > 1", "SELECT DISTINCT with HAVING", "twice", "leave DISTINCT out"),
    (POS.format("DISTINCT COUNT(*) AS n"), "SELECT DISTINCT of an aggregate", "one row", "leave DISTINCT out"),
    (POS.format("DISTINCT ON (qty) qty, note"), "DISTINCT ON", "not determined", "write GROUP BY, and MIN or MAX"),
    (POS.format("qty") + " GROUP BY qty WITH TOTALS", "WITH TOTALS", "Spark has none", "write WITH ROLLUP"),
    (POS.format("qty") + " GROUP BY ALL qty", "GROUP BY ALL and", "Spark has neither", "write GROUP BY and the list"),
    (POS.format("qty") + " GROUP BY DISTINCT qty", "GROUP BY DISTINCT", "neither", "write GROUP BY and the list"),
    # what no view has
    (POS.format("qty, COUNT(*) AS n") + " GROUP BY qty ORDER BY n", "ORDER BY", "no order", "when|reads"),
    (POS.format("qty, COUNT(*) AS n") + " GROUP BY qty LIMIT 3", "LIMIT", "which rows are first", "reads"),
    (POS.format("RANK() AS x, COUNT(*) AS n"), "a window function (RANK())", "every row of a window", "when reading"),
    (POS.format("SUM(qty) OVER (PARTITION BY note) AS x") + " GROUP BY qty", "a window", "every row", "when reading"),
    (POS.format("qty, RAND() AS r, COUNT(*) AS n") + " GROUP BY qty", "RAND", "without any change", "literal"),
    (POS.format("SUM(RAND()) AS r"), "RAND", "without any change", "literal"),
    (POS.format("COUNT(*) AS n") + " HAVING MAX(date) < CURRENT_DATE", "CURRENT_DATE", "without any", "literal"),
    (POS.format("COUNT(*) AS n") + " HAVING COUNT(*) > (SELECT 1)", "a subquery", "its rows can change", "write its"),
    (POS.format("MY_SUM(qty) AS x, COUNT(*) AS n"), "my_sum", "it is not known", "built-in"),
    (POS.format("COUNT(*) AS n") + " PIVOT (SUM(qty) FOR gift IN (TRUE))", "PIVOT", "in disguise", "one SUM(CASE WHEN"),
    (
        "SELECT city, COUNT(*) AS n FROM retail.pos p LEFT JOIN retail.stores s ON p.storeID = s.storeID GROUP BY city",
        "LEFT JOIN is not supported in a summary",
        "without a partner",
        "make the outer join a view of its own, with TBLPROPERTIES ('storage' = 'outerjoin'), and summarize that",
    ),
    (
        "SELECT city, COUNT(*) AS n FROM retail.pos p, retail.stores s GROUP BY city",
        "no condition joins s to p",
        "every combination",
        "CROSS JOIN",
    ),
    (
        "SELECT city, COUNT(*) AS n FROM retail.pos p, retail.stores s GROUP BY CUBE (city)",
        "no condition joins s to p",
        "every combination",
        "CROSS JOIN",
    ),
]


@pytest.mark.parametrize(("sql", "what", "reason", "hint"), UNSUPPORTED)
def test_unsupported(retail: Catalog, sql: str, what: str, reason: str, hint: str) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        parse_definition(sql, retail)
    assert what in refused.value.detail
    assert reason in refused.value.detail
    assert any(part in refused.value.hint for part in hint.split("|"))


WRONG = [
    (
        POS.format("storeID, note, COUNT(*) AS n") + " GROUP BY storeID",
        "the column note in the output column note is neither grouped by nor aggregated (line 1, column 17)",
        "add note to GROUP BY, or aggregate it, for example MIN(note)",
    ),
    (
        POS.format("storeID + qty AS x, COUNT(*) AS n") + " GROUP BY storeID",
        "the column qty in the output column x is neither",
        "add qty to GROUP BY",
    ),
    (
        POS.format("qty, COUNT(*) AS n") + " GROUP BY qty + 1",
        "the column qty in the output column qty is neither",
        "add qty to GROUP BY",
    ),
    (POS.format("qty, COUNT(*) AS n"), "the column qty in the output column qty is neither", "add qty to GROUP BY"),
    (POS.format("qty") + " HAVING qty > 1", "the column qty in the output column qty is neither", "add qty"),
    (
        POS.format("qty + SUM(weight) AS x") + " GROUP BY ALL",
        "the column qty in the output column x is neither",
        "add qty to GROUP BY",
    ),
    (POS.format("*") + " GROUP BY qty", "the column storeID in the output column storeID is neither", "add storeID"),
    (
        POS.format("qty, COUNT(*) AS n") + " GROUP BY qty HAVING note = 'a'",
        "the column note in HAVING is neither",
        "add note to GROUP BY",
    ),
    (POS.format("qty") + " GROUP BY qty HAVING COUNT(*)", "the condition COUNT(*) is BIGINT, not BOOLEAN", "<> 0"),
    (POS.format("SUM(qty) FILTER (WHERE qty) AS x"), "is INT, not BOOLEAN (line 1, column 31)", "<> 0"),
    (POS.format("qty, COUNT(*)") + " GROUP BY qty", "the output column COUNT(*) has no name", "COUNT(*) AS name"),
    (POS.format("qty, COUNT(*) AS Qty") + " GROUP BY qty", "two output columns are called Qty", "AS Qty2"),
    (POS.format("COUNT(*) AS _vk_n"), "the output column _vk_n starts with _vk", "choose another name"),
    (POS.format("SUM(qty) AS total") + " GROUP BY total", "GROUP BY total is GROUP BY SUM(qty)", "leave total out"),
    (POS.format("SUM(qty) AS x") + " GROUP BY 1", "GROUP BY 1 is GROUP BY SUM(qty)", "leave 1 out of GROUP BY"),
    (POS.format("qty") + " GROUP BY 2", "GROUP BY 2: the items of SELECT are numbered from 1 to 1", "count again"),
    (POS.format("qty") + " GROUP BY 0", "GROUP BY 0: the items", "count again"),
    (POS.format("*, COUNT(*) AS n") + " GROUP BY 1", "one of them is *", "name the columns in GROUP BY"),
    (POS.format("qty, GROUPING(qty) AS g") + " GROUP BY qty", "GROUPING without grouping sets", "with CUBE, ROLLUP or"),
    (POS.format("GROUPING_ID() AS g"), "GROUPING_ID without grouping sets", "with CUBE, ROLLUP or"),
    # types
    (POS.format("SUM(note) AS x"), "SUM(note) needs a number, and note is STRING", "SUM(CAST(note AS DOUBLE))"),
    (POS.format("AVG(date) AS x"), "AVG(date) needs a number, and date is DATE", "AVG(CAST(date AS DOUBLE))"),
    (POS.format("VARIANCE(gift) AS x"), "and gift is BOOLEAN", "VAR_SAMP(CAST(gift AS INT))"),
    (POS.format("STDDEV(note) AS x"), "STDDEV_SAMP(note) needs a number", "STDDEV_SAMP(CAST(note AS DOUBLE))"),
    (POS.format("SUM(note) FILTER (WHERE gift) AS x"), "THEN note END is STRING", "SUM(CAST(CASE WHEN gift"),
    (
        POS.format("SUM(TRY_DIVIDE(qty, 2)) AS x"),
        "the type of TRY_DIVIDE(qty, 2) in SUM(TRY_DIVIDE(qty, 2)) is not known",
        "SUM(CAST(TRY_DIVIDE(qty, 2) AS",
    ),
    (
        POS.format("TRY_DIVIDE(qty, 2) AS h") + " GROUP BY 1",
        "the type of TRY_DIVIDE(qty, 2) in GROUP BY is not known",
        "CAST(TRY_DIVIDE(qty, 2) AS",
    ),
    (POS.format("COUNT(NULL) AS x"), "COUNT(NULL) is always the same", "write COUNT(column)"),
    (POS.format("SUM(NULL) AS x"), "SUM(NULL) is always the same", "write SUM(column)"),
    (POS.format("MIN(extra) AS x"), "MIN(extra) compares values, and MAP<STRING, INT> has no order", "column['key']"),
    (POS.format("COUNT(DISTINCT extra) AS x"), "COUNT(DISTINCT extra) compares values", "column['key']"),
    (POS.format("extra") + " GROUP BY extra", "extra is MAP<STRING, INT>, and values of that type", "extra['key']"),
    (POS.format("DISTINCT extra"), "extra is MAP<STRING, INT>, and values of that type", "extra['key']"),
    (POS.format("DISTINCT CAST(NULL AS ARRAY<MAP<INT, INT>>) AS x"), "cannot be grouped", "['key']"),
]


@pytest.mark.parametrize(("sql", "detail", "hint"), WRONG)
def test_wrong(retail: Catalog, sql: str, detail: str, hint: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(sql, retail)
    assert type(refused.value) is DefinitionError
    assert detail in refused.value.detail
    assert hint in refused.value.hint


NAMES = [
    (POS.format("COUNT(*) AS n") + " GROUP BY noote", "no table in FROM has a column noote", "did you mean note"),
    (POS.format("COUNT(*) AS n") + " HAVING m > 1", "no table in FROM has a column m", "there is"),
    (POS.format("SUM(qty) AS n") + " HAVING SUM(n) > 1", "no table in FROM has a column n", "there is|did you mean"),
    (
        "SELECT COUNT(*) AS n FROM retail.pos p JOIN retail.stores s ON p.storeID = s.storeID GROUP BY storeID",
        "the column storeid is ambiguous",
        "write p.storeid or s.storeid",
    ),
]


@pytest.mark.parametrize(("sql", "detail", "hint"), NAMES)
def test_unknown_name(retail: Catalog, sql: str, detail: str, hint: str) -> None:
    with pytest.raises(UnknownName) as refused:
        parse_definition(sql, retail)
    assert detail in refused.value.detail
    assert any(part in refused.value.hint for part in hint.split("|"))


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT city, COUNT(*) AS n FROM retail.stores GROUP BY city", "GROUP BY"),
        ("SELECT DISTINCT city FROM retail.stores", "DISTINCT"),
        ("SELECT MEAN(storeID) AS x FROM retail.stores", "the aggregate MEAN"),
    ],
)
def test_where_a_join_is_asked_for(retail: Catalog, sql: str, what: str) -> None:
    with pytest.raises(UnsupportedClause) as refused:
        parse_view(sql, retail)
    assert what in refused.value.detail
    assert refused.value.hint == "a summary table aggregates, and this must be the join alone: leave the aggregate out"


@pytest.mark.parametrize(
    ("key", "value", "choices"),
    [
        ("minmax", "nodes", "node, recompute"),
        ("core", "true", "none, stored"),
        ("consistency", "strict", "auto, none, convergent, weak, strong, complete"),
    ],
)
def test_properties_with_a_choice(retail: Catalog, key: str, value: str, choices: str) -> None:
    sql = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('{}'='{}') AS SELECT COUNT(*) AS n FROM retail.pos"
    with pytest.raises(DefinitionError) as refused:
        parse_definition(sql.format(key, value), retail)
    assert refused.value.code == "unknown-property"
    assert refused.value.detail == f"there is no {key} {value}"
    assert refused.value.hint == f"choose one of {choices}"
    last = choices.rpartition(" ")[2]
    view = parse_definition(sql.format(key, last), retail)
    assert isinstance(view, SummaryView)
    assert view.properties == ((key, last),)
