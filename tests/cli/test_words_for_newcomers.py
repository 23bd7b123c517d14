"""What somebody who is new reads, and what it leaves out."""

import errno
import os

import pytest
from click.testing import CliRunner

from viewkeeper.cli.main import viewkeeper
from viewkeeper.cli.vacuum import oldest_lines
from viewkeeper.warehouse.store import storage_failure


def test_hidden_tables_are_not_listed_by_vacuum() -> None:
    assert oldest_lines({"b": 3, "_vk_node_b_0": 3, "a": 0}, dry_run=True) == [
        "a: state 0 would be the oldest that can be read",
        "b: state 3 would be the oldest that can be read",
    ]


@pytest.mark.parametrize("refusal", [errno.EROFS, errno.EACCES])
def test_who_may_not_write_is_told_what_can_be_done(refusal: int) -> None:
    hint = storage_failure(OSError(refusal, os.strerror(refusal)), "lake").hint
    assert "what only reads (status, query, states, plan, explain; in Python " in hint


def test_the_exit_code_of_a_run_that_is_stopped_is_in_the_help() -> None:
    help = " ".join(CliRunner().invoke(viewkeeper, ["--help"]).stdout.split())
    assert "130 stopped by Ctrl-C; the warehouse is at a commit. 'run' is meant to be stopped so" in help
