"""The share of memory that the driver takes is one of what it may take."""

from pathlib import Path

import pytest

from viewkeeper.lake.tables.driver_memory import SHARE, share_of_memory


def test_without_limits_it_is_a_share_of_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    assert share_of_memory(tmp_path) == share_of_memory(tmp_path / "nothing") > 0


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_may_take_less(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("80000000\n")
    assert share_of_memory(tmp_path) == 80_000_000 // SHARE


def test_a_limit_above_what_is_installed_is_none(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert share_of_memory(tmp_path) == share_of_memory(tmp_path / "nothing")
