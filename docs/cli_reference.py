"""Writes the reference of the command line, in Markdown, from the verbs themselves.

click's help of a verb   =  usage, paragraphs, options, examples
here                     =  a heading, the paragraphs, a table, a block of examples
"""

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc

import click

from viewkeeper.cli.main import SECTIONS, viewkeeper

PARSED = "<!-- not run: each verb's own tests run it; tests/test_docs_commands.py parses it -->"


def markdown() -> str:
    """All verbs, by their sections."""
    root = click.Context(viewkeeper, info_name="viewkeeper")
    parts = []
    for title, verbs in SECTIONS.items():
        parts.append(f"## {title}")
        for verb in verbs:
            command = viewkeeper.get_command(root, verb)
            assert command is not None
            parts += _verb(verb, command, click.Context(command, info_name=verb, parent=root))
    return "\n\n".join(parts)


def _verb(verb: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### {verb}"
    yield f"`{context.command_path} {' '.join(command.collect_usage_pieces(context))}`"
    for paragraph in re.split(r"\n\s*\n", cleandoc(command.help or "")):
        yield _examples(paragraph) if paragraph.startswith("\b") else _plain(" ".join(paragraph.split()))
    records = [record for one in command.params if (record := one.get_help_record(context)) and record[1]]
    rows = [f"| `{_cell(names)}` | {_cell(_plain(text))} |" for names, text in records]
    if rows:
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])


def _examples(paragraph: str) -> str:
    """A paragraph that click must not wrap: a sentence, and commands or text below it."""
    sentence, *lines = paragraph.removeprefix("\b\n").splitlines()
    code = "\n".join(line.strip() for line in lines)
    if not lines:
        return _plain(sentence)
    if "viewkeeper" not in code:
        return f"{_plain(sentence)}\n\n```text\n{code}\n```"
    return f"{_plain(sentence)}\n\n{PARSED}\n\n```sh\n{code}\n```"


def _plain(text: str) -> str:
    """Text whose signs mean nothing in Markdown."""
    return re.sub(r"([*<\[\]_])", r"\\\1", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    print(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
