"""What somebody who is new reads, and what it leaves out."""

import errno
import os

import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import viewkeeper
from viewkeeper.cli.vacuum import oldest_lines
from viewkeeper.durations import in_words
from viewkeeper.lake.log.store import storage_failure


def test_vacuum_lists_no_hidden_tables_and_tells_whose_own_retention_won() -> None:
    oldest = {"b": 3, "_vk_node_b_0": 3, "a": 0}
    assert oldest_lines(oldest, {}, dry_run=True) == [
        "a: state 0 would be the oldest that can be read",
        "b: state 3 would be the oldest that can be read",
    ]
    assert oldest_lines(oldest, {"a": 30 * 86400}, dry_run=False) == [
        "a: state 0 is the oldest that can be read; its own retention is 30 days",
        "b: state 3 is the oldest that can be read",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(86400, "1 day"), (7200, "2 hours"), (90, "90 s"), (60, "1 minute"), (0, "0 s"), (90000, "25 hours")],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize("refusal", [errno.EROFS, errno.EACCES])
def test_who_may_not_write_is_told_what_can_be_done(refusal: int) -> None:
    hint = storage_failure(OSError(refusal, os.strerror(refusal)), "lake").hint
    assert "what only reads (status, query, states, plan, explain; in Python " in hint


def test_the_exit_code_of_a_run_that_is_stopped_is_in_the_help() -> None:
    help = " ".join(CliRunner().invoke(viewkeeper, ["--help"]).stdout.split())
    assert "130 stopped by Ctrl-C; the warehouse is at a commit. 'run' is meant to be stopped so" in help
