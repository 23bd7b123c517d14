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
        names = catalyst.catalog.SessionCatalog(nothing, self.functions.clone(), tables.clone(), conf)
        self._analyzer = catalyst.analysis.Analyzer(names)
        self._parser = self.jvm.org.apache.spark.sql.execution.SparkSqlParser()
        self.rules: dict[str, Any] = {}

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

    def analyzed(self, sql: str, relations: Mapping[str, Relation]) -> Any:
        """The analyzed plan of a query; its leaves are named by the keys of `relations`. Spark's errors as they are."""
        parsed = self._parser.parseQuery(sql)
        bound = self.object(f"{CATALYST}.analysis.CTESubstitution").apply(parsed)
        plan = self._analyzer.execute(self._with_leaves(bound, relations))
        self._analyzer.checkAnalysis(plan)
        return plan

    def _with_leaves(self, plan: Any, relations: Mapping[str, Relation]) -> Any:
        spelled = {name.casefold(): name for name in relations}
        leaves = self.jvm.java.util.HashMap()
        for part in (plan, *elements(plan.subqueriesAll())):
            for leaf in elements(part.collectLeaves()):
                if leaf.getClass().getSimpleName() != "UnresolvedRelation":
                    continue
                names = elements(leaf.multipartIdentifier())
                key = spelled.get(".".join(names).casefold())
                if key is not None and not leaf.isStreaming() and leaf.options().isEmpty():
                    leaves.put(leaf, self._leaf(key, names, relations[key]))
        # A Scala map is a partial function: where it has a node, that is replaced.
        return plan.transformWithSubqueries(self._python().toScalaMap(leaves))

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
