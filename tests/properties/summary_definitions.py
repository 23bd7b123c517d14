"""Random summaries over a star: groups, aggregates, conditions and joins from a pool that they share.

What summaries of one world have in common makes lattices of them: the same terms under other aliases, in another order,
joined by ON or by WHERE.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from summary_schemas import Role, Schema

from viewkeeper.clock import Random

NUMBERS = ("INT", "BIGINT", "DECIMAL(8, 2)", "DOUBLE")
GROUPS: dict[str, tuple[str, ...]] = {
    "INT": ("{0}", "{0}", "{0} % 3", "COALESCE({0}, 0)", "{0} > 0", "CASE WHEN {0} > 0 THEN 'up' ELSE 'down' END"),
    "BIGINT": ("{0}", "{0}", "{0} % 7", "ABS({0})", "-{0}"),
    "DECIMAL(8, 2)": ("{0}", "{0}", "{0} + 1", "{0} > 1"),
    "DATE": ("{0}", "{0}", "{0} >= DATE '2024-01-01'", "COALESCE({0}, DATE '2020-01-01')"),
    "STRING": ("{0}", "{0}", "COALESCE({0}, 'none')", "{0} || 'x'", "{0} = 'a'"),
    "BOOLEAN": ("{0}", "NOT {0}", "{0} IS NULL"),
    "DOUBLE": ("{0}", "{0}", "{0} * 2", "{0} IS NULL"),
}
ONLY_IN_SPARK: dict[str, tuple[str, ...]] = {
    "DATE": ("YEAR({0})", "MONTH({0})"),
    "STRING": ("UPPER({0})", "LENGTH({0})"),
}
"""groups that the engine on the driver leaves to Spark"""
CONDITIONS: dict[str, tuple[str, ...]] = {
    "INT": ("{0} > 0", "{0} IS NOT NULL", "{0} BETWEEN -1 AND 2"),
    "BIGINT": ("{0} <> 4", "{0} IN (0, 4)"),
    "DECIMAL(8, 2)": ("{0} > 0.5", "{0} < 99"),
    "DATE": ("{0} >= DATE '2024-01-01'", "{0} IS NULL OR {0} < DATE '2025-01-01'"),
    "STRING": ("{0} <> 'a'", "{0} LIKE 'a%'", "{0} IN ('a', 'b', '')"),
    "BOOLEAN": ("{0}", "{0} IS NOT TRUE"),
    "DOUBLE": ("{0} > 0", "{0} <= 0.5"),
}
SPREAD = ("VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")
PROPERTIES = ("refresh", "group", "core", "minmax", "consistency")


@dataclass(frozen=True)
class Term:
    """An expression over columns, each of the fact (None) or of a dimension in a role."""

    template: str
    columns: tuple[tuple[Role | None, str], ...]
    type: str

    def sql(self, aliases: dict[Role | None, str]) -> str:
        return self.template.format(*(f"{aliases[role]}.{column}" for role, column in self.columns))

    @property
    def roles(self) -> set[Role]:
        return {role for role, _ in self.columns if role is not None}


@dataclass(frozen=True)
class Definition:
    """A summary: its SELECT over tables `{0}f`, and the columns that are compared with a tolerance."""

    name: str
    select: str
    properties: dict[str, str]
    rounded: frozenset[int]

    def query(self, prefix: str = "") -> str:
        return self.select.replace("§", prefix)

    def statement(self, prefix: str = "") -> str:
        told = ", ".join(f"'{name}' = '{value}'" for name, value in self.properties.items())
        properties = f" TBLPROPERTIES ({told})" if told else ""
        return f"CREATE MATERIALIZED VIEW {self.name}{properties} AS {self.query(prefix)}"


class Definitions:
    """Makes summaries over one star."""

    def __init__(self, schema: Schema, rng: Random, *, in_spark: bool = False) -> None:
        self.schema, self.rng, self._in_spark = schema, rng, in_spark
        self._columns: list[tuple[Role | None, str, str]] = [(None, n, t) for n, t in schema.fact.columns.items()]
        for role in schema.roles:
            self._columns += [(role, name, type) for name, type in role.table.columns.items()]
        templates = {type: GROUPS[type] + (ONLY_IN_SPARK.get(type, ()) if in_spark else ()) for type in GROUPS}
        self.groups = [self._term(templates) for _ in range(6)]
        self.conditions = [self._term(CONDITIONS) for _ in range(3)]
        self.values = [self._term(templates) for _ in range(3)]
        self.numbers = [self._number() for _ in range(4)]

    def _term(self, templates: dict[str, tuple[str, ...]]) -> Term:
        role, column, type = self.rng.choice(self._columns)
        return Term(self.rng.choice(templates[type]), ((role, column),), type)

    def _number(self) -> Term:
        """Something to add up, perhaps across tables."""
        # Sums of DOUBLE are left to Spark by the engine on the driver.
        found = [one for one in self._columns if one[2] in NUMBERS and (self._in_spark or one[2] != "DOUBLE")]
        if not found:
            return Term("1", (), "INT")
        role, column, type = self.rng.choice(found)
        exact = [column for column in found if column[2] in ("INT", "DECIMAL(8, 2)")]
        shape = self.rng.choice(["one", "one", "two", "case", "twice"])
        if shape == "two" and exact and type in ("INT", "DECIMAL(8, 2)"):
            other, with_column, _ = self.rng.choice(exact)
            operator = self.rng.choice("+*-")
            return Term(f"{{0}} {operator} {{1}}", ((role, column), (other, with_column)), type)
        template = {"case": "CASE WHEN {0} > 0 THEN {0} END", "twice": "{0} * 2"}.get(shape, "{0}")
        return Term(template, ((role, column),), type)

    # --- one summary ---

    def make(self, name: str, properties: dict[str, str]) -> Definition:
        rng = self.rng
        shape = rng.choice(["groups"] * 6 + ["all", "distinct", "family", "family"])
        groups = rng.sample(self.groups, rng.choice([1, 1, 2, 2, 3]))
        if shape == "all":
            groups = []
        if shape == "family":
            groups = list(dict.fromkeys(groups))[:2]
        conditions = rng.sample(self.conditions, rng.choice([0, 0, 0, 0, 1, 1, 2]))
        calls = [] if shape == "distinct" else [self._call() for _ in range(rng.choice([1, 2, 2, 3]))]
        used = [*groups, *conditions, *(term for _, term in calls if term is not None)]
        roles = self._roles({role for term in used for role in term.roles})
        aliases = self._aliases(roles)
        source, where = self._join(roles, aliases, [term.sql(aliases) for term in conditions])
        written = list(dict.fromkeys(term.sql(aliases) for term in groups))
        items, rounded = [f"{text} AS c{place}" for place, text in enumerate(written)], set[int]()
        if shape == "groups" and len(items) > 1 and rng.random() < 0.15:
            items.pop()
        for number, (function, term) in enumerate(calls):
            text = call_text(function, term, aliases)
            if function in (*SPREAD, "AVG"):
                rounded.add(len(items))
            elif rng.random() < 0.1 and function in ("COUNT", "SUM"):
                text = f"{text} * 2 + COUNT(*)"
            items.append(f"{text} AS m{number}")
        if shape == "distinct":
            return Definition(name, f"SELECT DISTINCT {', '.join(items)} {source}{where}", properties, frozenset())
        grouped = self._group_by(shape, written, items)
        having = self._having(aliases, used) if shape != "all" and rng.random() < 0.2 else ""
        select = f"SELECT {', '.join(items)} {source}{where}{grouped}{having}"
        return Definition(name, select, properties, frozenset(rounded))

    def _call(self) -> tuple[str, Term | None]:
        rng = self.rng
        function = rng.choice(
            ["COUNT(*)", "COUNT", "SUM", "SUM", "MIN", "MIN", "MAX", "MAX", "AVG", "DISTINCT", rng.choice(SPREAD)]
        )
        if function == "COUNT(*)":
            return function, None
        if function in ("SUM", "AVG", *SPREAD):
            term = rng.choice(self.numbers)
            # DuckDB knows no average of infinities.
            odd = self.schema.odd and term.type == "DOUBLE"
            # Squares are left to Spark, and those of products have more digits than DuckDB keeps.
            squares = function in SPREAD and not (self._in_spark and len(term.columns) == 1)
            return "SUM" if odd or squares else function, term
        return function, rng.choice([*self.values, *self.numbers, *self.groups])

    def _roles(self, used: Iterable[Role]) -> list[Role]:
        roles = dict.fromkeys(one for role in sorted(used, key=repr) for one in role.chain)
        if self.rng.random() < 0.2:
            roles |= dict.fromkeys(self.rng.choice(self.schema.roles).chain)
        return list(roles)

    def _aliases(self, roles: Sequence[Role]) -> dict[Role | None, str]:
        letters = self.rng.sample("pqrstuvwxyz", len(roles) + 1)
        return dict(zip([None, *roles], letters, strict=True))

    def _join(self, roles: Sequence[Role], aliases: dict[Role | None, str], conditions: list[str]) -> tuple[str, str]:
        on = {role: self._on(role, aliases) for role in roles}
        conditions = [f"({condition})" for condition in conditions]
        if self.rng.random() < 0.5:
            joins = "".join(
                f" JOIN §{role.table.name} AS {aliases[role]} ON {' AND '.join(on[role])}" for role in roles
            )
            source = f"FROM §f AS {aliases[None]}{joins}"
        else:
            tables = [("f", aliases[None]), *((role.table.name, aliases[role]) for role in roles)]
            self.rng.shuffle(tables)
            source = "FROM " + ", ".join(f"§{table} AS {alias}" for table, alias in tables)
            conditions = [*(one for pairs in on.values() for one in pairs), *conditions]
            self.rng.shuffle(conditions)
        return source, f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _on(self, role: Role, aliases: dict[Role | None, str]) -> list[str]:
        pairs = [
            (f"{aliases[role.behind]}.{column}", f"{aliases[role]}.{key}")
            for column, key in zip(role.columns, role.table.key, strict=True)
        ]
        return [" = ".join(pair if self.rng.random() < 0.5 else pair[::-1]) for pair in pairs]

    def _group_by(self, shape: str, written: list[str], items: list[str]) -> str:
        rng = self.rng
        if not written:
            return ""
        if shape != "family":
            shown = len([item for item in items if " AS c" in item]) == len(written)
            text = rng.choice([", ".join(written), "ALL" if shown else ", ".join(written)])
            return f" GROUP BY {text}"
        if rng.random() < 0.5:
            items.append(f"GROUPING({written[0]}) AS g")
        # The parser takes bare columns there, and other expressions in parentheses.
        written = [text if text.replace(".", "").replace("_", "").isalnum() else f"({text})" for text in written]
        sets = [f"({', '.join(written)})", f"({written[-1]})" if len(written) > 1 else "()"]
        forms = [f"CUBE({', '.join(written)})", f"ROLLUP({', '.join(written)})", f"GROUPING SETS ({', '.join(sets)})"]
        return f" GROUP BY {rng.choice(forms)}"

    def _having(self, aliases: dict[Role | None, str], used: Sequence[Term]) -> str:
        rng = self.rng
        known = [term for term in self.numbers if term.roles <= {role for role in aliases if role is not None}]
        choices: list[Any] = ["COUNT(*) > 1"]
        if known:
            number = rng.choice(known).sql(aliases)
            choices += [f"SUM({number}) > 0", f"MIN({number}) IS NOT NULL", f"COUNT(DISTINCT {number}) < 3"]
        return f" HAVING {rng.choice(choices)}"


def call_text(function: str, term: Term | None, aliases: dict[Role | None, str]) -> str:
    """An aggregate as it is written."""
    if term is None:
        return function
    text = term.sql(aliases)
    return f"COUNT(DISTINCT {text})" if function == "DISTINCT" else f"{function}({text})"
