"""The project's own rules: a light start-up, one home for time and randomness, layered imports, clean files."""

import re
import shutil
import subprocess
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

import pytest

from run_size import LONGEST

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))
LAYERS = [
    "errors",
    "clock",
    "levels",
    "sql",
    "algebra",
    "messages",
    "algorithms",
    "sources",
    "mediator",
    "checker",
    "storage",
    "summary",
    "lake",
    "planner",
    "maintenance",
    "explaining",
    "serving",
    "warehouse",
    "sim",
    "project",
    "demo",
    "cli",
]


def run(*command: str | Path, cwd: Path = ROOT, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=120)


# A light start-up

HELP_THEN_MODULES = """
import sys
from viewkeeper.cli.main import main
sys.argv = ["viewkeeper", "--help"]
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def test_help_imports_nothing_heavy() -> None:
    done = run(sys.executable, "-c", HELP_THEN_MODULES)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout
    imported = set(done.stderr.split())
    assert "viewkeeper" in imported
    assert not imported & {"sqlglot", "rich", "hypothesis", "pyspark", "pandas", "pyarrow"}


# One home for time and randomness

BANNED = [
    "import random",
    "from random import Random",
    "import time",
    "from time import monotonic",
    "import secrets",
    "import datetime\n\ndatetime.datetime.now()",
    "from datetime import datetime\n\ndatetime.utcnow()",
    "from datetime import datetime\n\ndatetime.today()",
    "from datetime import date\n\ndate.today()",
    "import uuid\n\nuuid.uuid1()",
    "from uuid import uuid4",
    "from os import urandom",
    "import numpy.random",
    "import numpy as np\n\nnp.random.default_rng()",
]


def ruff_codes(source: str, filename: str) -> set[str]:
    done = run(
        SCRIPTS / "ruff",
        "check",
        "--no-cache",
        "--output-format=concise",
        f"--stdin-filename={filename}",
        "-",
        stdin=source + "\n",
    )
    assert done.returncode in {0, 1}, done.stderr
    return set(re.findall(r"^[^:\n]+:\d+:\d+: ([A-Z]+\d+)", done.stdout, flags=re.MULTILINE))


@pytest.mark.parametrize("source", BANNED)
def test_time_and_randomness_are_banned(source: str) -> None:
    assert "TID251" in ruff_codes(source, "src/viewkeeper/x.py")


@pytest.mark.parametrize("filename", ["src/viewkeeper/sim/clock.py", "tests/test_x.py"])
def test_the_ban_holds_in_tests_and_in_namesakes(filename: str) -> None:
    assert "TID251" in ruff_codes("import random", filename)


@pytest.mark.parametrize("filename", ["src/viewkeeper/clock.py", "benchmarks/x.py"])
def test_the_ban_spares(filename: str) -> None:
    codes = ruff_codes("import random", filename)
    assert "F401" in codes
    assert "TID251" not in codes


# Layered imports


def lint_imports(cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(SCRIPTS / "lint-imports", "--no-cache", "--no-logo", cwd=cwd)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder with this project's contracts and a package `viewkeeper` of empty layers."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "viewkeeper"
    package.mkdir()
    (package / "__init__.py").touch()
    for layer in LAYERS:
        (package / layer).mkdir()
        (package / layer / "__init__.py").touch()
    return tmp_path


def test_import_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 kept, 0 broken" in done.stdout


def test_import_contracts_allow_what_goes_downwards(tiny: Path) -> None:
    for lower, upper in pairwise(LAYERS):
        if upper != "checker":
            (tiny / "viewkeeper" / upper / "x.py").write_text(f"import viewkeeper.{lower}\n")
    (tiny / "viewkeeper" / "storage" / "y.py").write_text("import pandas\n")
    (tiny / "viewkeeper" / "cli" / "y.py").write_text("import viewkeeper.storage.y\n")
    (tiny / "viewkeeper" / "sim" / "x.py").write_text("import viewkeeper.algorithms\n")
    done = lint_imports(tiny)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        *((lower, f"viewkeeper.{upper}", "Each layer") for lower, upper in pairwise(LAYERS)),
        *(("checker", f"viewkeeper.{layer}", "The checker") for layer in ["algorithms", "sources", "mediator", "sim"]),
        *(("algorithms", engine, "The core") for engine in ["pyspark", "pandas", "pyarrow.parquet", "deltalake"]),
        *((layer, "pandas", "The core") for layer in ["errors", "clock", "sql", "messages", "checker", "sim"]),
        *(("cli", engine, "The verbs") for engine in ["pyspark", "pandas", "pyarrow.parquet", "deltalake"]),
    ],
)
def test_import_contracts_catch(tiny: Path, importer: str, imported: str, contract: str) -> None:
    (tiny / "viewkeeper" / importer / "x.py").write_text(f"import {imported}\n")
    done = lint_imports(tiny)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"^{contract}.* BROKEN", done.stdout, flags=re.MULTILINE), done.stdout


@pytest.mark.parametrize(
    ("upper", "lower"), [("views", "tables"), ("tables", "log")], ids=["views over tables", "tables over log"]
)
def test_import_contracts_catch_inside_the_lake(tiny: Path, upper: str, lower: str) -> None:
    for part in (upper, lower):
        (tiny / "viewkeeper" / "lake" / f"{part}.py").touch()
    (tiny / "viewkeeper" / "lake" / f"{lower}.py").write_text(f"import viewkeeper.lake.{upper}\n")
    done = lint_imports(tiny)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Views rest on tables, and tables on the log BROKEN" in done.stdout


def test_import_contracts_catch_a_cycle_that_only_type_hints_make(tiny: Path) -> None:
    planner = tiny / "viewkeeper" / "planner"
    (planner / "x.py").write_text("import viewkeeper.planner.y\n")
    (planner / "y.py").write_text(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import viewkeeper.planner.x\n"
    )
    done = lint_imports(tiny)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "No import cycle BROKEN" in done.stdout


# Clean files

HOSTS = [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("deb", "debian", "org")]
UNWANTED = re.compile(
    r"(?<![\w.~/-])/(?:work|root)(?![\w-])" + "".join("|" + re.escape(".".join(host)) for host in HOSTS)
)


@pytest.mark.parametrize("text", ["cd @work", "'@root/.cache'", "=@work/x", "https:@@" + ".".join(HOSTS[0])])
def test_unwanted_is_recognised(text: str) -> None:
    # Samples have @ for / so that this file is clean itself.
    assert UNWANTED.search(text.replace("@", "/"))


def test_no_machine_paths_or_registry_hosts() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert listed.returncode == 0, listed.stderr
    names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
    assert "pyproject.toml" in names
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in names
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if UNWANTED.search(line)
    ]
    assert not found, "\n".join(found)


def test_files_that_are_started_first_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / "tests" / name).exists()] == []
