"""Which algorithm maintains a view, from its properties.

    consistency    auto (complete), complete, strong, weak, convergent
    algorithm      auto, or a name: refused if it does not reach the level for the transactions of these sources

`auto` takes batched-sweep, for every level: it reaches complete, keeps transactions whole that span sources, needs no
keys, asks less for each transaction the more come at once, and keeps its latency. nested-sweep asks less still, where
the two have the same bound, since what it folds gets one state and not one each: docs/latency.md has the figures. A
lone update costs all of them n - 1 at most.
"""

from viewkeeper.algorithms.registry import Transactions, algorithm, prepare
from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.levels import Level
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.sources.multi_relation import BATCH
from viewkeeper.sql.view import View

CHEAPEST = "batched-sweep"
NESTED_UPDATES = "nested_updates"
_OF_SUMMARIES = ("refresh", "minmax", "core")


def choose(view: View, transactions: Transactions, *, before: str | None = None) -> Maintenance:
    """How a view will be maintained; AlgorithmRefused or DefinitionError if its properties do not fit together.

    `before` is the algorithm that it has been maintained by: `auto` stays with it, for the view is stored accordingly.
    """
    properties = dict(view.properties)
    for name in _OF_SUMMARIES:
        if name in properties:
            raise UnsupportedClause(f"the property {name} does not apply to {view.name}", "leave it out")
    level = _level(properties.get("consistency", "auto"))
    name = properties.get("algorithm", "auto")
    if name == "auto":
        name = before or CHEAPEST
    options: dict[str, int | bool] = {"batch": BATCH} if "batch" in algorithm(name).options else {}
    if NESTED_UPDATES in properties:
        if name != "nested-sweep":
            raise DefinitionError(
                f"{NESTED_UPDATES} is a property of nested-sweep, and {view.name} is maintained by {name}",
                "leave it out",
            )
        options["updates"] = _nested_updates(properties[NESTED_UPDATES])
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


def _nested_updates(text: str) -> int:
    most = algorithm("nested-sweep").most["updates"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else 0
    if not 1 <= number <= most:
        raise DefinitionError(
            f"{NESTED_UPDATES} is {text!r}, and must be a whole number from 1 to {most:,}",
            f"write '{NESTED_UPDATES}' = '64'",
        )
    return number
