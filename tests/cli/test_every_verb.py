"""What holds for every verb: it has help with an example, writes JSON, and its help imports nothing heavy."""

import subprocess
import sys
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import SECTIONS, VERBS, viewkeeper

HEAVY = {"pyspark", "py4j", "deltalake", "pyarrow", "pandas", "sqlglot", "rich", "psycopg", "pymysql"}
HELP_OF_EACH = """
import contextlib, io, sys
from viewkeeper.cli.main import VERBS, viewkeeper
for words in (["--help"], *([verb, "--help"] for verb in VERBS)):
    with contextlib.redirect_stdout(io.StringIO()):
        viewkeeper.main(words, standalone_mode=False)
    print(words[0], *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def helped(*words: str) -> str:
    done = CliRunner().invoke(viewkeeper, [*words, "--help"], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def command(verb: str) -> click.Command:
    home = verb.replace("-", "_")
    found = getattr(import_module(f"viewkeeper.cli.{home}"), home)
    assert isinstance(found, click.Command)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(verb: str) -> None:
    _, _, examples = helped(verb).partition("Example")
    assert f"viewkeeper {verb}" in examples


@pytest.mark.parametrize("verb", VERBS)
def test_it_writes_json(verb: str) -> None:
    options = [name for parameter in command(verb).params for name in parameter.opts]
    assert "--json" in options


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str) -> None:
    silent = [one.name for one in command(verb).params if isinstance(one, click.Option) and not one.help]
    assert silent == []


@pytest.mark.processes
def test_no_help_imports_anything_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP_OF_EACH], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    imported = {words[0]: set(words[1:]) & HEAVY for words in map(str.split, done.stdout.splitlines())}
    assert imported == {name: set() for name in ("--help", *VERBS)}


def test_the_help_lists_every_verb_once_and_says_what_the_exit_codes_mean() -> None:
    assert len(set(VERBS)) == len(VERBS)
    told = helped()
    lines = [line.split() for line in told.splitlines() if line.startswith("  ")]
    assert [verb for verb in VERBS if [words[0] for words in lines if words].count(verb) != 1] == []
    assert all(f"{title}:" in told for title in SECTIONS)
    assert "a group has failed" in " ".join(told.split())
    lines = list(map(str.split, told.partition("Exit codes:")[2].splitlines()))
    codes = {words[0]: " ".join(words) for words in lines if words}
    for code, meaning in {"0": "all is well", "1": "found something wrong", "2": "bad input", "130": "Ctrl-C"}.items():
        assert meaning in codes[code]
