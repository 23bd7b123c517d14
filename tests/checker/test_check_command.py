"""`viewkeeper check`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from history_notation import written

from viewkeeper.cli.check import check
from viewkeeper.errors import HistoryError

STRONG = """
    SELECT a FROM x.r1
    x.r1(a): 1
    x: +r1 2
    x: +r1 3
    1 @ x0
    1, 2, 3 @ x2
"""


def run(tmp_path: Path, history: str, *options: str) -> Result:
    path = tmp_path / "history.json"
    written(history).save(path)
    return CliRunner().invoke(check, [str(path), *options])


def test_text(tmp_path: Path) -> None:
    result = run(tmp_path, STRONG)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "strong: 2 states over 2 transactions, as their vectors claim",
        "  ✓ convergent",
        "  ✓ weak",
        "  ✓ strong",
        "  ✗ complete: the source state after transaction 1 (x at 1) has no state of its own: "
        "state 0 comes before it and state 1 shows more",
    ]


def test_a_violation_is_told_once(tmp_path: Path) -> None:
    result = run(tmp_path, STRONG.replace("1, 2, 3", "1, 7, 3"), "--blind")
    assert result.output.splitlines() == [
        "none: 2 states over 2 transactions, matched blindly",
        "  ✗ convergent: the last state (1) shows [1], [7] and [3], and the final source state gives [1], [2] and [3]",
        "  ✗ weak: state 1 shows [1], [7] and [3], which no combination of source states gives",
        "  ✗ strong",
        "  ✗ complete",
    ]


def test_merged_transactions_are_reported(tmp_path: Path) -> None:
    crossing = """
        SELECT r1.a FROM x.r1 CROSS JOIN y.r2
        x.r1(a):
        y.r2(a):
        x T: +r1 1
        y U: +r2 1
        x U: +r1 2
        y T: +r2 2
        - @ x0 y0
        2*1, 2*2 @ x2 y2
    """
    result = run(tmp_path, crossing)
    assert result.output.splitlines()[0].startswith("complete")
    assert result.output.splitlines()[-1] == "  note: the parts of T, U cross; they count as one transaction"


def test_json(tmp_path: Path) -> None:
    judgement = json.loads(run(tmp_path, STRONG, "--json").output)
    assert judgement["level"] == "strong"
    assert judgement["verdict"] == {"convergent": True, "weak": True, "strong": True, "complete": False}
    assert judgement["violation"] == judgement["violations"][0]
    assert judgement["violation"]["reason"] == "skipped-source-state"
    assert judgement["violation"]["state"] == 1
    assert [transaction["source"] for transaction in judgement["violation"]["transactions"]] == ["x"]
    assert judgement["mode"] == "claimed"
    assert judgement["states"] == 2
    assert judgement["transactions"] == 2
    assert judgement["merged_units"] == []
    assert len(judgement["mapping"]) == 2


@pytest.mark.parametrize(("level", "code"), [("none", 0), ("weak", 0), ("strong", 0), ("complete", 1)])
def test_at_least(tmp_path: Path, level: str, code: int) -> None:
    assert run(tmp_path, STRONG, "--at-least", level).exit_code == code
    assert run(tmp_path, STRONG, "--json", "--at-least", level).exit_code == code


def test_bad_input_is_left_to_the_caller(tmp_path: Path) -> None:
    result = CliRunner().invoke(check, [str(tmp_path / "nowhere.json")])
    assert isinstance(result.exception, HistoryError)
