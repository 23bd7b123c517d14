"""Private servers end with those who wanted them; any program does for a server here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from viewkeeper.demo.guard import Server
from viewkeeper.demo.servers.private import Guarded
from viewkeeper.errors import SourceUnavailable

pytestmark = pytest.mark.processes


def test_a_server_and_its_folder_are_gone_at_the_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    command = ["sh", "-c", "echo $$ > pid; exec sleep 1000"]
    with Guarded("sleeper", command, folder, None, signal.SIGTERM) as server:
        server.wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text() != "")
        number = int((folder / "pid").read_text())
        os.kill(number, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert not folder.exists()
    assert capfd.readouterr().err == ""


def test_the_last_words_of_one_that_does_not_start_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    command = ["sh", "-c", "echo the port is taken; exit 3"]
    with (
        Guarded("sleeper", command, folder, None, signal.SIGTERM) as server,
        pytest.raises(SourceUnavailable, match="private sleeper did not start: the port is taken"),
    ):
        server.wait_for(lambda: False)


def test_it_ends_when_its_input_does(tmp_path: Path) -> None:
    """As it does when the demo is killed."""
    folder = tmp_path / "server"
    folder.mkdir()
    order = Server(["sleep", "1000"], str(folder), str(folder / "log"), None, dict(os.environ), signal.SIGTERM)
    guard = [sys.executable, "-m", "viewkeeper.demo.guard"]
    subprocess.run(guard, input=f"{order.as_json()}\n", text=True, check=True, timeout=60)
    assert not folder.exists()
