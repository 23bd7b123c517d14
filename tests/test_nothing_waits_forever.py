"""What waits for threads and programs comes to an end, also when these do not."""

import subprocess
import threading

import pytest

from waiting import joined, program

pytestmark = pytest.mark.processes


def test_a_block_that_fails_does_not_wait_for_its_program() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        program(["sleep", "1000"], stdout=subprocess.PIPE) as process,
    ):
        raise ZeroDivisionError
    assert process.returncode == -9
    assert process.stdout.closed


def test_whoever_reads_from_a_program_that_says_nothing_comes_to_the_end() -> None:
    """What it has started goes with it: it would hold the pipe open."""
    with (
        pytest.raises(AssertionError, match="killed after 0 s: sh -c sleep 1000; true"),
        program(["sh", "-c", "sleep 1000; true"], limit=0.2, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout.readline() == ""


def test_a_thread_that_does_not_end_is_named() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, args=(60,), name="endless")
    thread.start()
    with pytest.raises(AssertionError, match="still running after 0 s: endless"):
        joined(thread, limit=0.01)
    stop.set()
    joined(thread)
