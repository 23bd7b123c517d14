"""Which algorithm maintains a view, from its properties.

    consistency    auto (complete), complete, strong, weak, convergent
    algorithm      auto, or a name: refused if it does not reach the level for the transactions of these sources

`auto` takes batched-sweep for complete. For less it takes nested-sweep, whose states may skip source states, so that
fewer questions and fewer states do. Where transactions span sources only algorithms that keep them whole will do.
"""

from viewkeeper.algorithms.registry import Transactions, algorithm, prepare
from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.levels import Level
from viewkeeper.mediator.maintained import BATCH, Maintenance
from viewkeeper.sql.view import View

_CHEAPEST = {
    Level.COMPLETE: ("batched-sweep",),
    Level.STRONG: ("nested-sweep", "batched-sweep"),
    Level.WEAK: ("nested-sweep", "batched-sweep"),
    Level.CONVERGENT: ("nested-sweep", "batched-sweep"),
}
_LATER = ("storage", "refresh", "minmax", "core")


def choose(view: View, transactions: Transactions) -> Maintenance:
    """How a view will be maintained; AlgorithmRefused or DefinitionError if its properties do not fit together."""
    properties = dict(view.properties)
    for name in _LATER:
        if name in properties:
            raise UnsupportedClause(f"the property {name} does not apply to {view.name}", "leave it out")
    level = _level(properties.get("consistency", "auto"))
    name = properties.get("algorithm", "auto")
    if name == "auto":
        name = next(name for name in _CHEAPEST[level] if algorithm(name).levels[transactions] >= level)
    options: dict[str, int | bool] = {"batch": BATCH} if "batch" in algorithm(name).options else {}
    if "nested_depth" in properties:
        options["depth"] = _whole_number("nested_depth", properties["nested_depth"])
        if "depth" not in algorithm(name).options:
            raise DefinitionError(
                f"nested_depth is a property of nested-sweep, and {view.name} is maintained by {name}", "leave it out"
            )
    asked = level if "consistency" in properties and properties["consistency"] != "auto" else None
    how = Maintenance(view, name, transactions, options)
    parts = how.parts
    target = parts.assembly if parts else view
    prepare(name, target, transactions, level=asked, wrapped=parts is not None, options=options)
    return how


def promised(how: Maintenance) -> Level:
    """The level that a view's algorithm reaches over its sources."""
    return algorithm(how.algorithm).levels[how.transactions]


def _level(name: str) -> Level:
    return Level.COMPLETE if name == "auto" else Level[name.upper()]


def _whole_number(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise DefinitionError(f"{name} is {text!r}, and must be a whole number above 0", f"write '{name}' = '8'")
    return int(text)
