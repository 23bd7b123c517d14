"""The algorithm that a view gets, from its properties."""

import pytest
from live_shop import CATALOG, THREE_WAY

from viewkeeper.algorithms.registry import Transactions
from viewkeeper.errors import AlgorithmRefused, DefinitionError, UnsupportedClause
from viewkeeper.levels import Level
from viewkeeper.mediator.choice import choose, promised
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.view import View


def view(**properties: str) -> View:
    told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    return parse_view(f"CREATE MATERIALIZED VIEW v {f'TBLPROPERTIES({told})' if told else ''} AS {THREE_WAY}", CATALOG)


@pytest.mark.parametrize("transactions", list(Transactions))
@pytest.mark.parametrize("consistency", ["auto", "complete", "strong", "weak", "convergent", "none"])
def test_auto_reaches_what_is_asked_for(consistency: str, transactions: Transactions) -> None:
    how = choose(view(consistency=consistency), transactions)
    asked = Level.COMPLETE if consistency == "auto" else Level[consistency.upper()]
    assert promised(how) >= asked


def test_a_name_is_taken_at_its_word_and_refused_if_it_does_not_reach_the_level() -> None:
    assert choose(view(algorithm="t-strobe"), Transactions.LOCAL).algorithm == "t-strobe"
    with pytest.raises(AlgorithmRefused, match="t-strobe cannot maintain v"):
        choose(view(algorithm="t-strobe", consistency="complete"), Transactions.LOCAL)
    with pytest.raises(AlgorithmRefused):
        choose(view(algorithm="sweep", consistency="strong"), Transactions.GLOBAL)


@pytest.mark.parametrize(
    ("name", "transactions", "level"),
    [
        ("conventional", Transactions.SINGLE, "none"),
        ("conventional", Transactions.LOCAL, "none"),
        ("recompute", Transactions.LOCAL, "convergent"),
        ("strobe", Transactions.LOCAL, "convergent"),
        ("c-strobe", Transactions.LOCAL, "convergent"),
        ("t-strobe", Transactions.GLOBAL, "weak"),
        ("sweep", Transactions.GLOBAL, "weak"),
    ],
)
def test_less_than_strong_is_refused_unless_it_is_asked_for(name: str, transactions: Transactions, level: str) -> None:
    for asked in ({}, {"consistency": "auto"}):
        with pytest.raises(AlgorithmRefused, match="less than strong must be requested") as refused:
            choose(view(algorithm=name, **asked), transactions)
        assert f"'consistency' = '{level}'" in refused.value.hint
        assert "batched-sweep" in refused.value.hint
    how = choose(view(algorithm=name, consistency=level), transactions)
    assert str(promised(how)) == level
    with pytest.raises(AlgorithmRefused, match="not strong"):
        choose(view(algorithm=name, consistency="strong"), transactions)


def test_what_single_updates_are_enough_for_is_in_the_hint() -> None:
    with pytest.raises(AlgorithmRefused) as refused:
        choose(view(algorithm="strobe"), Transactions.LOCAL)
    assert "--transactions single" in refused.value.hint
    assert promised(choose(view(algorithm="strobe"), Transactions.SINGLE)) is Level.STRONG
    assert promised(choose(view(algorithm="c-strobe", consistency="complete"), Transactions.SINGLE)) is Level.COMPLETE
    with pytest.raises(AlgorithmRefused) as refused:
        choose(view(algorithm="recompute"), Transactions.LOCAL)
    assert "--transactions single" not in refused.value.hint


def test_a_view_stays_with_its_algorithm() -> None:
    assert choose(view(), Transactions.LOCAL, before="nested-sweep").algorithm == "nested-sweep"
    assert choose(view(algorithm="sweep"), Transactions.LOCAL, before="nested-sweep").algorithm == "sweep"
    assert choose(view(), Transactions.LOCAL, before="conventional").algorithm == "batched-sweep", "it is not strong"
    assert choose(view(), Transactions.GLOBAL, before="t-strobe").algorithm == "batched-sweep"


def test_options_are_properties_of_the_algorithms_that_have_them() -> None:
    periodic = choose(
        view(algorithm="periodic-c-strobe", period="3", interval="2 minutes", grouped="false"), Transactions.LOCAL
    )
    assert periodic.options == {"period": 3, "interval": 120, "grouped": False}
    assert choose(view(algorithm="pipelined-sweep", window="2"), Transactions.LOCAL).options == {"window": 2}
    assert choose(view(algorithm="c-t-strobe", grouped="true"), Transactions.LOCAL).options == {"grouped": True}
    with pytest.raises(DefinitionError, match="interval is a property of periodic-c-strobe, and v is maintained by"):
        choose(view(algorithm="c-t-strobe", interval="3 s"), Transactions.LOCAL)
    with pytest.raises(DefinitionError, match="window"):
        choose(view(window="3"), Transactions.LOCAL)
    with pytest.raises(DefinitionError, match="period is '0'"):
        choose(view(algorithm="periodic-c-strobe", period="0"), Transactions.LOCAL)
    for wrong in ({"grouped": "yes"}, {"share": "1"}, {"interval": "soon"}, {"interval": "0.2 s"}):
        with pytest.raises(DefinitionError):
            view(algorithm="periodic-c-strobe", **wrong)
    with pytest.raises(DefinitionError) as unknown:
        view(algorithm="periodic-c-strobe", perod="3")
    assert "period" in unknown.value.hint


def test_properties_that_do_not_apply() -> None:
    assert choose(view(algorithm="nested-sweep", nested_updates="3"), Transactions.LOCAL).options == {"updates": 3}
    with pytest.raises(DefinitionError, match="nested_updates"):
        choose(view(nested_updates="3"), Transactions.LOCAL)
    for value in ("deep", "0", "4097", "9" * 5_000):
        with pytest.raises(DefinitionError, match="whole number from 1 to 4,096"):
            choose(view(algorithm="nested-sweep", nested_updates=value), Transactions.LOCAL)
    with pytest.raises(DefinitionError, match="nested_depth is replaced by nested_updates"):
        view(algorithm="nested-sweep", nested_depth="8")
    with pytest.raises(UnsupportedClause, match="minmax"):
        choose(view(minmax="node"), Transactions.LOCAL)
