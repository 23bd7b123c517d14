"""viewkeeper keeps materialized views fresh over several autonomous databases, at a consistency level you choose.

The public names. They are imported when they are first used, so that `import viewkeeper` costs nothing.

    parse_view       a view definition from SQL
    Relation         a base relation: source, columns, key
    ALGORITHMS       every maintenance algorithm: what it reaches, needs and costs
    Transactions     single, local, global
    Level            none < convergent < weak < strong < complete
    Scenario         what to simulate; everything random comes from its seed
    simulate         run a scenario
    judge            a run, and the level that it reached
    History          what the sources did and what the view showed
    check            the level of a history
    Warehouse        the stored views: commit, read, snapshot, sql
    Project          what a warehouse is to hold, from viewkeeper.yml or Python: plan, apply
    materialized_view    makes a view of a project of a function that returns SQL
    ViewkeeperError  the base of all errors
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viewkeeper.algorithms.registry import ALGORITHMS, Transactions
    from viewkeeper.checker.history import History
    from viewkeeper.checker.judge import check
    from viewkeeper.errors import ViewkeeperError
    from viewkeeper.levels import Level
    from viewkeeper.project.decorators import materialized_view
    from viewkeeper.project.project import Project
    from viewkeeper.sim.report import judge
    from viewkeeper.sim.run import simulate
    from viewkeeper.sim.scenario import Scenario
    from viewkeeper.sql.parse import parse_view
    from viewkeeper.sql.relation import Relation
    from viewkeeper.warehouse import Warehouse

__all__ = [
    "ALGORITHMS",
    "History",
    "Level",
    "Project",
    "Relation",
    "Scenario",
    "Transactions",
    "ViewkeeperError",
    "Warehouse",
    "check",
    "judge",
    "materialized_view",
    "parse_view",
    "simulate",
]

_HOMES = {
    "ALGORITHMS": "algorithms.registry",
    "History": "checker.history",
    "Level": "levels",
    "Project": "project.project",
    "Relation": "sql.relation",
    "Scenario": "sim.scenario",
    "Transactions": "algorithms.registry",
    "ViewkeeperError": "errors",
    "Warehouse": "warehouse",
    "check": "checker.judge",
    "judge": "sim.report",
    "materialized_view": "project.decorators",
    "parse_view": "sql.parse",
    "simulate": "sim.run",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'viewkeeper' has no attribute {name!r}")
    return getattr(import_module(f"viewkeeper.{_HOMES[name]}"), name)
