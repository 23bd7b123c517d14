"""The examples of a page: its fenced blocks of Python and of shell commands, and how they are run.

A block that cannot be run here, because it needs a server or a machine of its own, has a comment before it:

    <!-- not run: needs a PostgreSQL server -->

Its commands are then only parsed. All other blocks are run by a test, in the order of the page and in one folder.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from viewkeeper.cli.main import viewkeeper

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>.+?) -->\n\n?)?^```(?P<language>python|sh)\n(?P<code>.*?)^```",
    flags=re.DOTALL | re.MULTILINE,
)
_SEPARATORS = {"|", "||", "&&", ";", ">", ">>", "<", "&"}


@dataclass(frozen=True)
class Block:
    """`line` is that of its first line of code in the page; `not_run` says why it cannot be run, or is empty."""

    page: Path
    line: int
    language: str
    code: str
    not_run: str

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a shell block."""
        return commands_of(self.code)


def blocks(page: Path) -> Iterator[Block]:
    """In the order of the page."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        yield Block(page, line, found["language"], found["code"], found["why"] or "")


def commands_of(code: str) -> list[list[str]]:
    """The words of each command, without comments and without what it is redirected to."""
    return [words for line in _logical_lines(code) for words in _commands(line)]


def run_page(page: Path) -> None:
    """All blocks but those that cannot be run, in one namespace; the current folder is the one that they work in."""
    names: dict[str, Any] = {}
    for block in blocks(page):
        if not block.not_run:
            run_block(block, names)


def run_block(block: Block, names: dict[str, Any]) -> None:
    """Python in `names`; a command in this process, which must end with exit code 0."""
    if block.language == "python":
        # Padded, so that a failure names the line of the page.
        exec(compile("\n" * (block.line - 1) + block.code, str(block.page), "exec"), names)
        return
    for program, *arguments in block.commands:
        assert program == "viewkeeper", f"{block.page}:{block.line}: nothing here runs {program!r}"
        done = CliRunner().invoke(viewkeeper, arguments)
        assert done.exit_code == 0, f"{shlex.join(arguments)}\n{done.output}\n{done.exception!r}"


def _logical_lines(code: str) -> list[str]:
    """Lines, with those joined that end in a backslash or within a quoted text."""
    lines: list[str] = []
    open_line = ""
    for line in code.splitlines():
        open_line += line
        if open_line.endswith("\\"):
            open_line = open_line[:-1] + " "
            continue
        try:
            shlex.split(open_line, comments=True)
        except ValueError:
            open_line += "\n"
            continue
        lines.append(open_line)
        open_line = ""
    return [*lines, open_line] if open_line.strip() else lines


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, which pipes and the like separate; what they are redirected to is left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.commenters = "#"
    lexer.whitespace_split = True
    words: list[str] = []
    redirected = False
    for word in lexer:
        if word in _SEPARATORS:
            if not redirected and words:
                yield _without_variables(words)
            words, redirected = [], word in {">", ">>", "<"}
        else:
            words.append(word)
    if not redirected and words:
        yield _without_variables(words)


def _without_variables(words: list[str]) -> list[str]:
    """Without what is set for one command alone: NAME=value command."""
    first = next((place for place, word in enumerate(words) if not re.match(r"[A-Za-z_]\w*=", word)), len(words))
    return words[first:] or words
