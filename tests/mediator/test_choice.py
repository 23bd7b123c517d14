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
@pytest.mark.parametrize("consistency", ["auto", "complete", "strong", "weak", "convergent"])
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


def test_a_view_stays_with_its_algorithm() -> None:
    assert choose(view(), Transactions.LOCAL, before="nested-sweep").algorithm == "nested-sweep"
    assert choose(view(algorithm="sweep"), Transactions.LOCAL, before="nested-sweep").algorithm == "sweep"


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
