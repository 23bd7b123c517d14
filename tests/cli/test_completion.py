"""What a shell completes: by the classes of click that it asks."""

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class
from click.testing import CliRunner

from viewkeeper import Warehouse
from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.cli.completion import PROGRAM, VARIABLE
from viewkeeper.cli.main import VERBS, viewkeeper


def completed(*words: str, begun: str = "") -> list[str]:
    asked = ShellComplete(viewkeeper, {}, PROGRAM, VARIABLE)
    return [item.value for item in asked.get_completions(list(words), begun)]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A warehouse with two views, a hidden table and a source, without any source being asked."""
    monkeypatch.delenv("VIEWKEEPER_WAREHOUSE", raising=False)
    folder = tmp_path / "lake"
    with Warehouse.open(folder) as warehouse, warehouse.commit() as commit:
        for name in ("big_orders", "big_people"):
            commit.create(name, {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (1,)))
        commit.create("_vk_hidden", {"n": "BIGINT"}, rows=MemoryZSet.of(("n",), (1,)))
    with Warehouse.open(folder) as warehouse, warehouse.commit() as commit:
        commit.drop("big_people")
        commit.create("small", {"n": "BIGINT"}, properties={"family": "all_sizes"})
    (folder / "_viewkeeper" / "sources").mkdir(exist_ok=True)
    (folder / "_viewkeeper" / "sources" / "shop.json").write_text("{}")
    return str(folder)


def test_verbs_and_options() -> None:
    assert completed(begun="") == list(VERBS)
    assert completed(begun="st") == [verb for verb in VERBS if verb.startswith("st")]
    assert "--warehouse" in completed("status", begun="--")
    assert completed("completion", begun="") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize(
    "verb", ["states", "drop-view", "path", "publish", "compact", "audit", "reload", "explain", "bench"]
)
def test_views_of_the_last_commit(verb: str, lake: str) -> None:
    assert completed(verb, "-w", lake, begun="") == ["all_sizes", "big_orders", "small"]
    assert completed(verb, "-w", lake, begun="bi") == ["big_orders"]


def test_a_view_that_is_named_is_not_offered_again(lake: str) -> None:
    assert completed("audit", "-w", lake, "small", begun="s") == []


def test_the_warehouse_of_the_environment(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEPER_WAREHOUSE", lake)
    assert completed("states", begun="s") == ["small"]
    assert completed("lattice", "--view", begun="s") == ["small"]


@pytest.mark.parametrize("verb", ["doctor", "remove-source"])
def test_sources(verb: str, lake: str) -> None:
    assert completed(verb, "-w", lake, begun="") == ["shop"]


def test_where_there_is_no_warehouse_there_are_no_names(tmp_path: Path) -> None:
    assert completed("states", "-w", str(tmp_path), begun="") == []
    assert completed("doctor", "-w", str(tmp_path / "none"), begun="") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_for_its_own_completions(shell: str) -> None:
    script = CliRunner().invoke(viewkeeper, ["completion", shell], catch_exceptions=False).stdout
    assert f"{VARIABLE}={shell}_complete" in script
    told = CliRunner().invoke(viewkeeper, ["completion", shell, "--json"], catch_exceptions=False).stdout
    assert json.loads(told)["script"] + "\n" == script
    assert get_completion_class(shell) is not None
