"""What `propagate` and `refresh` say."""

from typing import Any

import pytest

from viewkeeper.cli.rounds import show_rounds

FIGURES = {"by_city": {"summary_delta": 1, "updated": 1, "deleted": 0}, "_vk_node_by_city_0": {"summary_delta": 2}}
REFRESHED: dict[str, Any] = {"decision": "incremental", "reason": "the core is not stored", "refresh_seconds": 0.0364}
SAID = {
    "propagated": ({"changes": 2, "propagate_seconds": 0.0071}, "2 changes, propagate 0.007 s"),
    "nothing to propagate": ({"changes": 0, "propagate_seconds": 0.0}, "no changes wait"),
    "refreshed": (
        {**REFRESHED, "changes": 1, "propagate_seconds": 0.02},
        "1 change, propagate 0.020 s, refresh 0.036 s",
    ),
    "refreshed by what waits": (
        {**REFRESHED, "changes": 0, "propagate_seconds": 0.0},
        "what was propagated before, refresh 0.036 s",
    ),
    "nothing to refresh": ({"changes": 0, "reason": "nothing has changed"}, "nothing has changed"),
    "recomputed": (
        {"decision": "recompute", "reason": "9 changes of 8 facts", "changes": 9, "recompute_seconds": 1.5},
        "9 changes, recompute 1.500 s, recomputed (9 changes of 8 facts)",
    ),
}


@pytest.mark.parametrize(("told", "said"), SAID.values(), ids=SAID)
def test_one_line_for_each_lattice(told: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_rounds({"shop.sales summaries": told}, as_json=False)
    assert capsys.readouterr().out == f"shop.sales summaries: {said}\n"


def test_one_line_for_each_table_that_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    show_rounds({"g": {**REFRESHED, "changes": 1, "tables": FIGURES}}, as_json=False)
    assert capsys.readouterr().out.splitlines()[1:] == ["  by_city: summary-delta of 1 row, 1 updated"]


def test_without_any(capsys: pytest.CaptureFixture[str]) -> None:
    show_rounds({}, as_json=False)
    assert capsys.readouterr().out == "there are no deferred summaries\n"
