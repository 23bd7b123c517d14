"""`docs/explain.md`: what it shows is what `explain` prints, and its list of rules is that of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from page_examples import DOCS, ROOT, blocks, run_block
from viewkeeper.cli.main import viewkeeper

PAGE = DOCS / "explain.md"
TEXT = PAGE.read_text(encoding="utf-8")
ADVICE = ROOT / "src" / "viewkeeper" / "explaining" / "advice.py"
SHOWN = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
LEFT_OUT = "\n...\n"


def test_outputs_are_those_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = dict(SHOWN.findall(TEXT))
    for block in blocks(PAGE):
        if block.language == "python":
            run_block(block, names)
            continue
        ((_, *arguments),) = block.commands
        done = CliRunner().invoke(viewkeeper, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        rest = done.stdout
        for part in filter(None, shown.pop(block.code).split(LEFT_OUT)):
            assert part in rest, f"{block.code}\n{done.stdout}"
            rest = rest.split(part, 1)[1]
    assert shown == {}


def test_every_rule_is_on_the_page() -> None:
    rules = re.findall(r"Advice\(\s*\"([a-z-]+)\"", ADVICE.read_text(encoding="utf-8"))
    (_, table) = TEXT.split("\n| rule |", 1)
    assert sorted(set(rules)) == sorted(re.findall(r"^\| `([a-z-]+)` \|", table, flags=re.MULTILINE))
