"""Which algorithm maintains a view, from its properties.

    consistency    auto, complete, strong, weak, convergent, none
    algorithm      auto, or a name: refused if it does not reach the level for the transactions of these sources
    options        period, interval, grouped, window, share, nested_updates: of the algorithms that have them

`auto` takes batched-sweep, for every level: it reaches complete, keeps transactions whole that span sources, needs no
keys, asks less for each transaction the more come at once, and keeps its latency. nested-sweep asks less still, where
the two have the same bound, since what it folds gets one state and not one each: docs/latency.md has the figures. A
lone update costs all of them n - 1 at most.

A name without a level is refused if it reaches less than strong: whoever accepts that says so.
"""

from collections.abc import Mapping

from viewkeeper.algorithms.registry import ALGORITHMS, Transactions, algorithm, prepare
from viewkeeper.durations import seconds
from viewkeeper.errors import DefinitionError, UnsupportedClause
from viewkeeper.levels import Level
from viewkeeper.mediator.maintained import Maintenance
from viewkeeper.sources.multi_relation import BATCH
from viewkeeper.sql.definition import INTERVAL, OF_ALGORITHMS
from viewkeeper.sql.view import View

CHEAPEST = "batched-sweep"
ENOUGH = Level.STRONG
"""what an algorithm must reach unless a lower level is requested"""
_OF_SUMMARIES = ("refresh", "minmax", "core")
_OPTIONS = {"nested_updates": "updates"}
"""options that have another name as a property"""
_LONGEST = 9
"""digits of an option"""


def choose(view: View, transactions: Transactions, *, before: str | None = None) -> Maintenance:
    """How a view will be maintained; AlgorithmRefused or DefinitionError if its properties do not fit together.

    `before` is the algorithm that it has been maintained by: `auto` stays with it, for the view is stored accordingly.
    """
    properties = dict(view.properties)
    for name in _OF_SUMMARIES:
        if name in properties:
            raise UnsupportedClause(f"the property {name} does not apply to {view.name}", "leave it out")
    consistency = properties.get("consistency", "auto")
    asked = None if consistency == "auto" else Level[consistency.upper()]
    name = properties.get("algorithm", "auto")
    if name == "auto":
        stays = before is not None and algorithm(before).levels.get(transactions, Level.NONE) >= (asked or ENOUGH)
        name = before if before is not None and stays else CHEAPEST
    options: dict[str, int | bool] = {"batch": BATCH} if "batch" in algorithm(name).options else {}
    options |= _options_of(view.name, name, properties)
    how = Maintenance(view, name, transactions, options)
    parts = how.parts
    target = parts.assembly if parts else view
    prepare(name, target, transactions, level=asked, least=ENOUGH, wrapped=parts is not None, options=options)
    return how


def promised(how: Maintenance) -> Level:
    """The level that a view's algorithm reaches over its sources."""
    return algorithm(how.algorithm).levels[how.transactions]


def with_option(prop: str) -> list[str]:
    """The algorithms that have the option which a property sets."""
    option = _OPTIONS.get(prop, prop)
    return [one.name for one in ALGORITHMS.values() if option in one.options]


def _options_of(view: str, name: str, properties: Mapping[str, str]) -> dict[str, int | bool]:
    options: dict[str, int | bool] = {}
    for prop in OF_ALGORITHMS:
        if prop not in properties:
            continue
        option, text = _OPTIONS.get(prop, prop), properties[prop]
        if option not in algorithm(name).options:
            raise DefinitionError(
                f"{prop} is a property of {' and '.join(with_option(prop))}, and {view} is maintained by {name}",
                "leave it out, or name such an algorithm",
            )
        if isinstance(algorithm(name).options[option], bool):
            options[option] = text == "true"
        elif prop == INTERVAL:
            options[option] = round(seconds(text))
        else:
            options[option] = _whole_number(prop, text, name, option)
    return options


def _whole_number(prop: str, text: str, name: str, option: str) -> int:
    most = algorithm(name).most.get(option)
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else 0
    if not 1 <= number <= (most or number):
        allowed = "above 0" if most is None else f"from 1 to {most:,}"
        raise DefinitionError(
            f"{prop} is {text!r}, and must be a whole number {allowed}",
            f"write '{prop}' = '{algorithm(name).options[option]}'",
        )
    return number
