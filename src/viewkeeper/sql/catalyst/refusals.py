"""What no view may have: values that differ each time, and what leaves SQL."""

from collections.abc import Iterator

from viewkeeper.errors import UnsupportedClause
from viewkeeper.sql.catalyst.analysis import Analysis
from viewkeeper.sql.catalyst.functions import function_names, is_nondeterministic
from viewkeeper.sql.catalyst.plan_json import Node, is_nodes, nested

_LEAVES_SQL = ("CallMethodViaReflection", "TryReflect", "ScriptTransformation", "PythonUDF", "PythonUDTF", "ScalaUDF")
_OF_THE_SESSION = ("CurrentUser", "CurrentDatabase", "CurrentCatalog", "CurrentPath", "SessionUser")
_RANDOM = ("Sample", "Uuid", "Shuffle", "RandStr", "Uniform", "Rand", "Randn", "AesEncrypt")
_STREAMS = ("StreamingRelation", "StreamingRelationV2", "EventTimeWatermark")


def refuse(analysis: Analysis, plan: Node) -> None:
    """UnsupportedClause if the same rows would not always give the same answer, or something other than SQL runs."""
    names = function_names(analysis)
    for node in everything(plan):
        what = names.get(node.java_class, node.name)
        if node.name in _LEAVES_SQL:
            raise UnsupportedClause(
                f"the function {what} is refused: it runs code",
                "compute the value in your own program, or at the source",
            )
        if node.name in _OF_THE_SESSION:
            raise UnsupportedClause(
                f"the function {what} is refused: its value depends on the session", "write the value as a literal"
            )
        if node.name in _STREAMS:
            raise UnsupportedClause("a view over a stream is refused", "name the table without STREAM or WATERMARK")
        if node.name == "Sample":
            raise UnsupportedClause(
                "TABLESAMPLE is refused: it takes other rows each time", "filter by a hash of the key"
            )
        if node.name in _RANDOM or is_nondeterministic(analysis, node.java_class):
            raise UnsupportedClause(
                f"the function {what} is refused: it gives another value each time",
                "use a function of the row's columns, such as hash(...)",
            )


def everything(node: Node) -> Iterator[Node]:
    """The nodes and expressions of a plan, in its subqueries too."""
    yield node
    for child in node.children:
        yield from everything(child)
    for value in node.fields.values():
        yield from _within(value)


def _within(value: object) -> Iterator[Node]:
    if is_nodes(value):
        yield from everything(nested(value))  # type: ignore[arg-type]
    elif isinstance(value, list):
        for one in value:
            yield from _within(one)
