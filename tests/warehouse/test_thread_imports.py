"""Threads import nothing whose parts import each other: two that do so at once may see a module half initialized."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pending_changes import make_pending

import viewkeeper

SOURCE = Path(viewkeeper.__file__).parent
SCRIPT = Path(__file__).with_name("importing_process.py")


@pytest.fixture(scope="module")
def pending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pending(tmp_path_factory.mktemp("pending"))


def start(pending: Path, place: Path, *options: str) -> "subprocess.Popen[str]":
    shutil.copytree(pending, place)
    return subprocess.Popen(
        [sys.executable, SCRIPT, "lake", *options],
        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def imported_by(file: Path) -> set[str]:
    """The packages that a module imports, at whatever place in it; not those that only type checkers see."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names = [
        *(alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names),
        *(node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)),
    ]
    return {name.partition(".")[0] for name in names}


def test_all_of_spark_is_imported_in_one_place() -> None:
    """Whichever thread is the first to need it: another one that does waits for the same module."""
    files = [file for file in SOURCE.rglob("*.py") if "data_source" not in file.parts]  # which Spark's workers import
    assert [file.name for file in files if {"pyspark", "py4j"} & imported_by(file)] == ["pyspark_names.py"]


@pytest.mark.parametrize("options", [(), ("7",)], ids=["small", "spark"])
def test_no_thread_imports_an_engine(pending: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    process = start(pending, tmp_path / "copy", *options)
    told, _ = process.communicate(timeout=300)
    assert (process.returncode, told) == (0, "")


@pytest.mark.parametrize("starts", [2, pytest.param(50, marks=pytest.mark.soak)])
def test_many_starts_with_pending_changes(pending: Path, tmp_path: Path, starts: int) -> None:
    """Two at a time: a machine that is busy switches threads at other places."""
    for number in range(0, starts, 2):
        pair = [start(pending, tmp_path / str(number + one)) for one in range(2)]
        for process in pair:
            told, _ = process.communicate(timeout=300)
            assert (process.returncode, told) == (0, "")
