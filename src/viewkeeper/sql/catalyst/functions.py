"""The names under which Spark's registry has the classes of functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.sql.catalyst.analysis import Analysis, elements

_KEY = "functions"


@dataclass(frozen=True)
class Dialect:
    """What the text of an expression depends on, besides the expression."""

    functions: Mapping[str, str]
    """names of functions by their classes"""
    zone: str
    """the time zone in which Spark's JSON writes a timestamp: that of the JVM"""


def dialect_of(analysis: Analysis) -> Dialect:
    """The dialect of a session."""
    return Dialect(function_names(analysis), analysis.jvm.java.util.TimeZone.getDefault().getID())


_PACKAGE = "org.apache.spark.sql.catalyst.expressions"
_OWN_NAMES = {
    "CreateNamedStruct": "named_struct",
    "StringLPad": "lpad",
    "StringRPad": "rpad",
    "StringInstr": "instr",
    "StartsWith": "startswith",
    "EndsWith": "endswith",
    "ArrayAggregate": "aggregate",
    "DateAdd": "date_add",
    "Log": "ln",
}
_BUILDERS = ("ExpressionBuilder", "Builder")
"""what stands in the registry for a class with several ways to call it"""


def function_names(analysis: Analysis) -> dict[str, str]:
    """Class to name; of several names the one that Spark itself uses, else the first."""
    if _KEY not in analysis.rules:
        names: dict[str, list[str]] = {}
        registry = analysis.functions
        for identifier in elements(registry.listFunction()):
            found = registry.lookupFunction(identifier)
            if found.isDefined():
                names.setdefault(_built(found.get().getClassName()), []).append(identifier.funcName())
        built = {f"{_PACKAGE}.{simple}": name for simple, name in _OWN_NAMES.items()}
        analysis.rules[_KEY] = {**{one: _best(one, listed) for one, listed in names.items()}, **built}
    known: dict[str, str] = analysis.rules[_KEY]
    return known


def _built(java_class: str) -> str:
    for ending in _BUILDERS:
        java_class = java_class.removesuffix(ending)
    return java_class


def _best(java_class: str, names: list[str]) -> str:
    """The name that is spelled like the class, if there is one."""
    simple = java_class.rpartition(".")[2].lower()
    return min(names, key=lambda name: (name.replace("_", "") != simple, not name.isidentifier(), len(name), name))


def is_nondeterministic(analysis: Analysis, java_class: str) -> bool:
    """Whether a class of expressions gives something else each time."""
    known: dict[str, bool] = analysis.rules.setdefault("nondeterministic", {})
    if java_class not in known:
        classes: Any = analysis.jvm.java.lang.Class
        trait = classes.forName("org.apache.spark.sql.catalyst.expressions.Nondeterministic")
        try:
            known[java_class] = trait.isAssignableFrom(classes.forName(java_class))
        except Exception:  # of py4j: a name in the JSON that is no class
            known[java_class] = False
    return known[java_class]
