"""Random expressions mean the same to Spark, by the text as it is written, and to viewkeeper.

Operators are mixed without parentheses, so that precedence decides; literals have suffixes; dates are computed with.
"""

import pytest

from run_size import some
from viewkeeper.clock import seeded
from viewkeeper.errors import ViewkeeperError
from viewkeeper.maintenance.spark_agreement import check_agreement
from viewkeeper.sql.parse_summary import parse_definition
from viewkeeper.sql.relation import Relation

TYPES = {
    "i": "INT",
    "j": "INT",
    "b": "BIGINT",
    "t": "TINYINT",
    "d": "DECIMAL(10, 2)",
    "e": "DECIMAL(7, 4)",
    "f": "DOUBLE",
    "p": "BOOLEAN",
    "q": "BOOLEAN",
    "s": "STRING",
    "u": "STRING",
    "day": "DATE",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
}
CATALOG = {"w.r": Relation("w.r", "w", tuple(TYPES), tuple(TYPES.values()))}
PER_VIEW = 25
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "<=>", "=="]
LITERALS = ["0", "1", "-1", "3", "3L", "-3S", "7Y", "2.5", "3.0BD", "1.50BD", "1e3", "1.5D", "2147483647", "100"]
DATES = [
    *("day", "DATE'2024-02-29'", "day + INTERVAL 1 DAY", "day - INTERVAL '1' MONTH", "date_add(day, 3)", "day + 1"),
    *("date_sub(day, 1)", "add_months(day, 2)", "last_day(day)", "trunc(day, 'MM')", "next_day(day, 'MON')"),
]
MOMENTS = ["at", "at + INTERVAL 2 HOURS", "date_trunc('HOUR', at)", "day + INTERVAL 1 HOUR", "dateadd(DAY, 1, day)"]
LOCAL = ["local", "TIMESTAMP_NTZ'2024-02-29 12:30:15'", "local - INTERVAL 1 DAY", "timestampadd(MONTH, 1, local)"]
COUNTS = [
    *("year(day)", "EXTRACT(MONTH FROM at)", "datediff(day, at)", "datediff(WEEK, day, local)", "unix_date(day)"),
    *(
        "i DIV 2",
        "b DIV 3L",
        "weekday(day)",
        "date_part('second', at)",
        "timestampdiff(MINUTE, at, local)",
        "length(s)",
    ),
]


class Writer:
    """Writes well-typed expressions, as Spark reads them."""

    def __init__(self, seed: int) -> None:
        self.random = seeded(seed)

    def number(self, depth: int) -> str:
        kind = self.random.randrange(9) if depth else 0
        if kind < 3:
            return self.random.choice([*"iijbtdef", *LITERALS, *COUNTS])
        if kind < 6:
            return f"{self.number(depth - 1)} {self.random.choice('+-*')} {self.factor(depth - 1)}"
        if kind == 6:
            divisor = self.random.choice(["3", "(-1)", "2.5", "3L"])
            return f"{self.factor(depth - 1)} {self.random.choice('%/')} {divisor}"
        if kind == 7:
            return f"CASE WHEN {self.truth(depth - 1)} THEN {self.factor(0)} ELSE {self.factor(0)} END"
        return f"coalesce({self.number(depth - 1)}, {self.number(0)})"

    def factor(self, depth: int) -> str:
        """What a sign or * can stand before."""
        text = self.number(depth)
        return f"({text})" if " " in text or text.startswith("-") else text

    def comparison(self, depth: int) -> str:
        kind = self.random.randrange(6)
        if kind == 0:
            pool = self.random.choice([DATES, MOMENTS, LOCAL])
            return f"{self.random.choice(pool)} {self.random.choice(COMPARISONS)} {self.random.choice(pool)}"
        if kind == 1:
            return f"s || 'a' {self.random.choice(COMPARISONS)} u"
        return f"{self.number(depth)} {self.random.choice(COMPARISONS)} {self.number(depth)}"

    def predicate(self, depth: int) -> str:
        """A comparison, and what binds weaker than it."""
        left = self.comparison(depth)
        match self.random.randrange(8):
            case 0:
                return f"{left} BETWEEN p AND true"
            case 1:
                return f"p BETWEEN q AND {self.comparison(depth)}"
            case 2:
                return f"{left} {self.random.choice(['IN', 'NOT IN'])} (p, {self.comparison(depth)})"
            case 3:
                return f"{left} IS {self.random.choice(['NULL', 'NOT NULL', 'TRUE', 'NOT FALSE', 'DISTINCT FROM p'])}"
            case 4:
                return f"{left} {self.random.choice(['=', '<>', '<=>'])} q"
            case 5:
                return f"s {self.random.choice(['LIKE', 'NOT LIKE'])} 'a%'"
            case 6:
                return f"{self.number(depth)} NOT BETWEEN {self.number(depth)} AND {self.number(depth)}"
            case _:
                return left

    def truth(self, depth: int) -> str:
        if not depth:
            return self.predicate(0)
        match self.random.randrange(5):
            case 0:
                return f"{self.truth(depth - 1)} {self.random.choice(['AND', 'OR'])} {self.truth(depth - 1)}"
            case 1:
                return f"NOT {self.predicate(depth - 1)}"
            case 2:
                return f"({self.truth(depth - 1)}) = p"
            case _:
                return self.predicate(depth - 1)

    def any(self) -> str:
        match self.random.randrange(4):
            case 0:
                return self.random.choice([*DATES, *MOMENTS, *LOCAL])
            case 1:
                return self.number(2)
            case _:
                return self.truth(2)


def accepted(sql: str) -> bool:
    """Whether viewkeeper takes an expression at all: mixing types without a CAST is refused, for one."""
    try:
        parse_definition(f"SELECT {sql} AS x FROM w.r", CATALOG)
    except ViewkeeperError:
        return False
    return True


def compare(seed: int, spark) -> None:
    writer = Writer(seed)
    written = [sql for _ in range(PER_VIEW) if accepted(sql := writer.any())]
    condition = writer.truth(2)
    items = ", ".join(f"{sql} AS x{place}" for place, sql in enumerate(written))
    where = f" WHERE {condition}" if accepted(condition) else ""
    sql = f"SELECT {items} FROM w.r{where}"
    assert len(written) > PER_VIEW / 2
    try:
        check_agreement(parse_definition(sql, CATALOG), CATALOG, lambda: spark)
    except ViewkeeperError as error:
        pytest.fail(f"{error}\nrepeat it: compare({seed}, spark)\n{sql}")


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_random_expressions(seed, spark):
    compare(seed, spark)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_random_expressions(seed, spark):
    compare(seed, spark)
