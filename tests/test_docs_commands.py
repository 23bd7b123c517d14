"""Every `viewkeeper ...` that a page or a help text shows can be typed: the verb is there, and so is each option.

Nothing is executed, so this also holds for examples that need a server.
"""

import re
import shlex
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import pytest

from page_examples import DOCS, PAGES, ROOT, Block, blocks, commands_of
from viewkeeper.cli.main import VERBS, viewkeeper

WITH_COMMANDS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
ROOT_CONTEXT = click.Context(viewkeeper, info_name="viewkeeper")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def why_not(words: list[str]) -> str | None:
    """What is wrong with the words behind `viewkeeper`, or None."""
    verb, *rest = words
    command = viewkeeper if verb.startswith("-") else viewkeeper.get_command(ROOT_CONTEXT, verb)
    if command is None:
        return f"there is no verb {verb}"
    try:
        command.make_context(verb, rest if command is not viewkeeper else [verb], parent=ROOT_CONTEXT)
    except click.exceptions.Exit:
        return None  # --help, --version
    except click.exceptions.NoArgsIsHelpError:
        return "it would only show its help"
    except click.ClickException as error:
        return error.format_message()
    return None


def shell_blocks(page: Path) -> Iterator[Block]:
    return (block for block in blocks(page) if block.language == "sh")


@pytest.mark.parametrize("page", [page for page in WITH_COMMANDS if any(shell_blocks(page))], ids=named)
def test_commands_of_pages_parse(page: Path) -> None:
    wrong = {
        f"line {block.line}: {shlex.join(words)}": problem
        for block in shell_blocks(page)
        for words in block.commands
        if words[0] == "viewkeeper" and (problem := why_not(words[1:])) is not None
    }
    assert wrong == {}


@pytest.mark.parametrize("verb", VERBS)
def test_examples_of_help_texts_parse(verb: str) -> None:
    command = viewkeeper.get_command(ROOT_CONTEXT, verb)
    assert command is not None
    assert "\\b" not in (command.help or ""), "a backslash too many: click would wrap the examples"
    # Examples are indented, and kept as they are by \b.
    indented = re.findall(r"(?:^ {2,}.*\n)+", cleandoc(command.help or "") + "\n", flags=re.MULTILINE)
    typed = [words for part in indented for words in commands_of(part) if words[0] == "viewkeeper"]
    assert typed, "there is no example"
    wrong = {shlex.join(words): problem for words in typed if (problem := why_not(words[1:])) is not None}
    assert wrong == {}


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=named)
def test_commands_within_sentences_are_there(page: Path) -> None:
    """`viewkeeper verb ...` in a sentence may leave arguments out, but names a verb and options that exist."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    wrong = []
    for shown in re.findall(r"`viewkeeper ([^`]+)`", text):
        verb, *words = shown.split()
        if verb.startswith("-") or verb == "VERB":
            continue
        command = viewkeeper.get_command(ROOT_CONTEXT, verb)
        if command is None:
            wrong.append(f"{shown}: there is no verb {verb}")
            continue
        known = {"-h", "--help", *(name for one in command.params for name in (*one.opts, *one.secondary_opts))}
        options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
        wrong += [f"{shown}: there is no option {option}" for option in options if option not in known]
    assert wrong == []


@pytest.mark.parametrize("words", ["nothing", "simulate --nothing", "states", "simulate --relations many"])
def test_what_cannot_be_typed_is_found(words: str) -> None:
    assert why_not(words.split()) is not None


def test_a_page_says_why_a_block_is_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nviewkeeper run -w 'a b' \\\n  --json | head -1 > out  # a comment\n```\n\n"
        "<!-- not run: needs a server -->\n\n```python\nx = 1\n```\n",
        encoding="utf-8",
    )
    shell, code = blocks(page)
    assert shell.commands == [["viewkeeper", "run", "-w", "a b", "--json"], ["head", "-1"]]
    assert (shell.not_run, code.not_run, code.line) == ("", "needs a server", 9)


def test_every_reason_not_to_run_something_is_given_before_a_block() -> None:
    """A mistyped comment would let a block be run, or one be skipped, unnoticed."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        marked = sum(bool(block.not_run) for block in blocks(page))
        assert len(re.findall(r"<!-- *not run", text)) == marked, page.relative_to(DOCS)
