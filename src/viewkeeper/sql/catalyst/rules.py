"""The rules of Spark's optimizer that make an analyzed plan one of joins, aggregates and the other operators we have.

They are applied one by one. Left out: what folds expressions (current_date() stays as it was written), what looks at
sizes, and what adds operators for the sake of execution.
"""

from typing import Any

from viewkeeper.sql.catalyst.analysis import CATALYST, Analysis, elements

_ANALYSIS, _OPTIMIZER = f"{CATALYST}.analysis", f"{CATALYST}.optimizer"

NAMES = (
    f"{_ANALYSIS}.EliminateSubqueryAliases",
    f"{_ANALYSIS}.EliminateView",
    f"{CATALYST}.expressions.EliminatePipeOperators",
    f"{_OPTIMIZER}.EliminateResolvedHint",
)
"""after these, a name is nothing but a column's number"""

SETS = (
    f"{_OPTIMIZER}.RewriteExceptAll",
    f"{_OPTIMIZER}.RewriteIntersectAll",
    f"{_OPTIMIZER}.ReplaceIntersectWithSemiJoin",
    f"{_OPTIMIZER}.ReplaceExceptWithAntiJoin",
    f"{_OPTIMIZER}.ReplaceDistinctWithAggregate",
    f"{_OPTIMIZER}.PullOutGroupingExpressions",
)
"""INTERSECT, EXCEPT and DISTINCT as joins and aggregates"""

CORRELATED = (
    f"{_OPTIMIZER}.PullOutNestedDataOuterRefExpressions",
    f"{_OPTIMIZER}.PullupCorrelatedPredicates",
)
"""conditions of a subquery over the columns outside of it, as conditions of the join that it becomes"""

SUBQUERIES = (
    *CORRELATED,
    f"{_OPTIMIZER}.RewriteCorrelatedScalarSubquery",
    f"{_OPTIMIZER}.RewriteLateralSubquery",
    f"{_OPTIMIZER}.RewritePredicateSubquery",
    f"{_OPTIMIZER}.RewriteNonCorrelatedExists",
)
"""subqueries as joins; a scalar one without correlation stays in its expression"""

SHAPE = (
    f"{_OPTIMIZER}.BooleanSimplification",
    f"{_OPTIMIZER}.PushDownPredicates",
    f"{_OPTIMIZER}.EliminateOuterJoin",
    f"{_OPTIMIZER}.ReorderJoin",
    f"{_OPTIMIZER}.CombineUnions",
    f"{_OPTIMIZER}.CollapseProject",
    f"{_OPTIMIZER}.RemoveNoopOperators",
)
"""conditions where they belong: in the joins and at the leaves"""

_ROUNDS = 20


def rewritten(analysis: Analysis, plan: Any) -> Any:
    """The plan after these rules; the plans of subqueries that stay in expressions are not touched."""
    for rule in NAMES:
        plan = _rule(analysis, rule).apply(plan)
    inline = getattr(analysis.jvm, f"{_OPTIMIZER}.InlineCTE")(True, False, False)
    plan = inline.apply(plan)
    plan = _pulled_up(analysis, plan)
    for _ in range(_ROUNDS):
        before = plan
        for rule in (*NAMES, *SETS, *SUBQUERIES):
            plan = _rule(analysis, rule).apply(plan)
        if plan.fastEquals(before):
            break
    for _ in range(_ROUNDS):
        before = plan
        for rule in SHAPE:
            plan = _rule(analysis, rule).apply(plan)
        if plan.fastEquals(before):
            break
    return plan


def _pulled_up(analysis: Analysis, plan: Any) -> Any:
    """Conditions of correlated subqueries in subqueries pulled up: Spark's rule does it for one level."""
    for _ in range(_ROUNDS):
        for inner in elements(plan.subqueriesAll()):
            pulled = inner
            for rule in CORRELATED:
                pulled = _rule(analysis, rule).apply(pulled)
            if not pulled.fastEquals(inner):
                plan = analysis.replaced(plan, {inner: pulled})
                break
        else:
            break
    return plan


def _rule(analysis: Analysis, name: str) -> Any:
    if name not in analysis.rules:
        analysis.rules[name] = analysis.object(name)
    return analysis.rules[name]
