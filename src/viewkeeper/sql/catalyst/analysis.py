"""Spark's parser and analyzer over declared relations, with nothing of the user's session used or changed.

    text → parsed plan → CTEs bound → names of relations replaced by leaves → analyzed plan

The analyzer is one of our own: it has the built-in functions and an empty catalog, so a query sees the relations that
it was given and nothing else: no table of the session, no file, no function that somebody registered. The leaves are
relations without rows that no rule folds away. Settings come from a session beside the user's, with Spark's defaults
and the user's time zone; Spark looks for them in the thread, and there they are while a query is read.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from viewkeeper.sql.catalyst.type_text import quoted
from viewkeeper.sql.outside_sql import FUNCTIONS
from viewkeeper.sql.relation import Relation

CATALYST = "org.apache.spark.sql.catalyst"
LEAVES = "viewkeeper"
"""the database of the leaves: names that only this module gives and reads"""
_TIME_ZONE = "spark.sql.session.timeZone"
_SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "false"}


class Analysis:
    """What reads queries beside one session of Spark."""

    def __init__(self, session: Any) -> None:
        self.jvm = session._jvm
        self.version: str = session.version
        self._user = session._jsparkSession
        self._beside = self._user.newSession()
        conf = self._beside.sessionState().conf()
        conf.clear()
        for name, value in _SETTINGS.items():
            conf.setConfString(name, value)
        self._conf = conf
        catalyst = self.jvm.org.apache.spark.sql.catalyst
        self.functions = self.object(f"{CATALYST}.analysis.FunctionRegistry").builtin()
        tables = self.object(f"{CATALYST}.analysis.TableFunctionRegistry").builtin()
        nothing = catalyst.catalog.InMemoryCatalog(
            self.jvm.org.apache.spark.SparkConf(False), self.jvm.org.apache.hadoop.conf.Configuration(False)
        )
        names = catalyst.catalog.SessionCatalog(nothing, self._functions_of_sql(), tables.clone(), conf)
        sql = self.jvm.org.apache.spark.sql
        catalogs = sql.connector.catalog.DefaultCatalogManager(
            sql.execution.datasources.v2.V2SessionCatalog(names), names
        )
        no_cache = self.object(f"{CATALYST}.analysis.RelationCache").empty()
        self._analyzer = catalyst.analysis.Analyzer(catalogs, no_cache, self.object("scala.None"))
        self._parser = self.jvm.org.apache.spark.sql.execution.SparkSqlParser()
        self.rules: dict[str, Any] = {}

    def _functions_of_sql(self) -> Any:
        """The built-in functions but those that call methods of Java: Spark loads a class to analyze such a call."""
        known = self.functions.clone()
        place = [self.jvm.scala.Option.apply(part) for part in ("builtin", "system")]
        for name in FUNCTIONS:
            known.dropFunction(self.jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, *place))
        return known

    def object(self, name: str) -> Any:
        """A Scala object."""
        return getattr(getattr(self.jvm, f"{name}$"), "MODULE$")

    @contextmanager
    def settings(self) -> Iterator[None]:
        """While this is open, Spark reads with our settings in this thread."""
        sessions = self.jvm.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        self._conf.setConfString(_TIME_ZONE, self._user.sessionState().conf().sessionLocalTimeZone())
        sessions.setActiveSession(self._beside)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def parsed(self, sql: str) -> Any:
        """The plan of a query with the names that it defines itself bound: those of relations are left."""
        return self.object(f"{CATALYST}.analysis.CTESubstitution").apply(self._parser.parseQuery(sql))

    def analyzed(self, sql: str, relations: Mapping[str, Relation], names: Mapping[str, str] | None = None) -> Any:
        """The analyzed plan of a query; its leaves are named by the keys of `relations`. Spark's errors as they are.

        `names` has other names for relations, in place of their own."""
        spelled = {name.casefold(): name for name in relations} if names is None else dict(names)
        plan = self._analyzer.execute(self._with_leaves(self.parsed(sql), relations, spelled))
        self._analyzer.checkAnalysis(plan)
        return plan

    def _with_leaves(self, plan: Any, relations: Mapping[str, Relation], spelled: Mapping[str, str]) -> Any:
        leaves = {}
        for leaf in relations_in(plan):
            names = elements(leaf.multipartIdentifier())
            key = spelled.get(".".join(names).casefold())
            if key is not None and not leaf.isStreaming() and leaf.options().isEmpty():
                leaves[leaf] = self._leaf(key, names, relations[key])
        return self.replaced(plan, leaves)

    def replaced(self, plan: Any, nodes: Mapping[Any, Any]) -> Any:
        """A plan with other nodes in place of some, in its subqueries too."""
        pairs = self.jvm.java.util.HashMap()
        for old, new in nodes.items():
            pairs.put(old, new)
        # A Scala map is a partial function.
        return plan.transformWithSubqueries(self._python().toScalaMap(pairs))

    def _leaf(self, key: str, names: list[str], relation: Relation) -> Any:
        """The relation under all its qualifiers: source.schema.table.column, table.column, column."""
        catalyst = self.jvm.org.apache.spark.sql.catalyst
        required = set(relation.key or ())
        types = dict(zip(relation.columns, relation.types, strict=True))
        ddl = ", ".join(
            f"{quoted(column)} {types[column]}{' NOT NULL' if column in required else ''}" for column in relation.there
        )
        schema = self.object(f"{CATALYST}.util.CharVarcharUtils").replaceCharVarcharWithStringInSchema(
            self.jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
        )
        columns = self.object(f"{CATALYST}.types.DataTypeUtils").toAttributes(schema)
        some, none = self.jvm.scala.Option.apply, self.object("scala.None")
        name = catalyst.TableIdentifier(key, some(LEAVES), some("spark_catalog"))
        tables = self.object(f"{CATALYST}.catalog.CatalogTable")
        described = tables.apply(
            name,
            self.object(f"{CATALYST}.catalog.CatalogTableType").MANAGED(),
            self.object(f"{CATALYST}.catalog.CatalogStorageFormat").empty(),
            schema,
            *(getattr(tables, one)() for one in self._defaults(tables)),
        )
        leaf = catalyst.catalog.HiveTableRelation(described, columns, self._sequence([]), none, none)
        alias = catalyst.AliasIdentifier(names[-1], self._sequence(names[:-1]))
        return catalyst.plans.logical.SubqueryAlias(alias, leaf)

    def _defaults(self, tables: Any) -> list[str]:
        """The methods that give what a description of a table has unless something else is said."""
        if "defaults" not in self.rules:
            prefix = "apply$default$"
            found = [method.getName() for method in tables.getClass().getMethods()]
            numbers = sorted(int(name.removeprefix(prefix)) for name in found if name.startswith(prefix))
            self.rules["defaults"] = [f"{prefix}{number}" for number in numbers]
        return list(self.rules["defaults"])

    def _python(self) -> Any:
        return self.jvm.org.apache.spark.api.python.PythonUtils

    def _sequence(self, values: list[Any]) -> Any:
        return self._python().toSeq(values)


def relations_in(plan: Any) -> list[Any]:
    """The relations that a parsed plan names, in its subqueries too."""
    parts = (plan, *elements(plan.subqueriesAll()))
    leaves = [leaf for part in parts for leaf in elements(part.collectLeaves())]
    return [leaf for leaf in leaves if leaf.getClass().getSimpleName() == "UnresolvedRelation"]


def elements(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(place) for place in range(sequence.size())]


_known: "WeakKeyDictionary[Any, Analysis]" = WeakKeyDictionary()
_making = threading.Lock()


def analysis_of(session: Any) -> Analysis:
    """What reads queries beside this session; made once for each."""
    with _making:
        found = _known.get(session)
        if found is None:
            found = _known[session] = Analysis(session)
        return found
