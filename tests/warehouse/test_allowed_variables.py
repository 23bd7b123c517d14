"""A stored URL takes from the environment what this user allowed for it, and nothing else."""

import socket
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from viewkeeper.cli.main import main
from viewkeeper.errors import SourceUnavailable, StorageFailure, UsageError, VariableNotAllowed
from viewkeeper.lake.log.record import seal, unseal
from viewkeeper.planner.allowed_variables import VARIABLE, AllowedVariables
from viewkeeper.sources.urls import host_of, taken_variables
from viewkeeper.warehouse import Warehouse

SECRET = "hunter2-of-the-cloud"
URL = "postgresql://ann:${SHOP_PASSWORD}@db.example/shop"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    return tmp_path / "config"


class Listener:
    """A host of somebody else: it notes whatever is sent to it."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def elsewhere() -> Iterator[Listener]:
    with closing(Listener()) as listener:
        yield listener


@pytest.fixture
def lake(tmp_path: Path, elsewhere: Listener) -> Path:
    """A warehouse that somebody else made: its source is theirs, and its URL names a variable of ours."""
    database = tmp_path / "shop.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1)")
    with Warehouse.open(tmp_path / "lake") as wh:
        wh.add_source("shop", f"sqlite:///{database}", install=True)
        wh.create_view("CREATE MATERIALIZED VIEW v AS SELECT id FROM shop.orders")
    file = tmp_path / "lake" / "_viewkeeper" / "sources" / "shop.json"
    body = unseal(file.read_bytes())
    body["url"] = f"mariadb://ann:${{SHOP_PASSWORD}}@127.0.0.1:{elsewhere.port}/shop"
    file.write_bytes(seal(body))
    return tmp_path / "lake"


@pytest.mark.parametrize("words", [["doctor", "shop"], ["catch-up"], ["audit", "v"], ["reload", "v"]])
def test_what_was_not_allowed_is_sent_nowhere(
    lake: Path,
    elsewhere: Listener,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["viewkeeper", *words, "-w", str(lake)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (1, 2)
    said = "".join(capsys.readouterr())
    assert f"source shop would send the value of SHOP_PASSWORD to 127.0.0.1:{elsewhere.port}" in said
    assert f"{VARIABLE}='shop=SHOP_PASSWORD'" in said
    assert SECRET not in said
    assert elsewhere.connections == 0


def test_what_is_allowed_in_the_environment_is_tried(
    lake: Path, elsewhere: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "crm=X shop=SHOP_PASSWORD,SHOP_HOST")
    with Warehouse.open(lake, read_only=True) as wh, pytest.raises(SourceUnavailable):
        wh.doctor("shop")
    assert elsewhere.connections > 0


def allowed(warehouse: str = "w", also: Callable[[], dict[str, str]] | None = None) -> AllowedVariables:
    return AllowedVariables(warehouse, also)


def test_whoever_added_a_source_goes_on(settings: Path) -> None:
    allowed().note("shop", URL)
    allowed().check("shop", URL)
    (file,) = (settings / "viewkeeper" / "allowed").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert SECRET not in file.read_text()


@pytest.mark.parametrize(
    ("warehouse", "source", "url"),
    [
        ("other", "shop", URL),
        ("w", "crm", URL),
        ("w", "shop", URL.replace("db.example", "evil.example")),
        ("w", "shop", URL.replace("SHOP_PASSWORD", "XDG_CONFIG_HOME")),
    ],
)
def test_it_is_allowed_for_that_source_at_that_host(warehouse: str, source: str, url: str) -> None:
    allowed().note("shop", URL)
    with pytest.raises(VariableNotAllowed):
        allowed(warehouse).check(source, url)


def test_a_source_that_was_removed_is_not_allowed_any_more() -> None:
    allowed().note("shop", URL)
    allowed().withdraw("shop", URL)
    with pytest.raises(VariableNotAllowed):
        allowed().check("shop", URL)


def test_the_url_of_a_project_is_given() -> None:
    allowed(also=lambda: {"shop": URL}).check("shop", URL)
    with pytest.raises(VariableNotAllowed):
        allowed(also=lambda: {"shop": URL}).check("shop", URL.replace("db.example", "evil.example"))


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("VIEWKEEPER_PASSWORD_SHOP", "mariadb://ann@evil.example/shop"),
        ("PGPASSWORD", "postgresql://ann@evil.example/shop"),
        ("PGPASSWORD", "postgresql:///shop?host=evil.example"),
    ],
)
def test_passwords_that_no_url_names(variable: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed().check("shop", url)
    monkeypatch.setenv(variable, SECRET)
    with pytest.raises(VariableNotAllowed, match=variable):
        allowed().check("shop", url)


def test_a_password_that_was_in_the_url_comes_from_the_environment_later(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed().note("shop", "mariadb://ann:secret@db.example/shop")
    monkeypatch.setenv("VIEWKEEPER_PASSWORD_SHOP", SECRET)
    allowed().check("shop", "mariadb://ann@db.example/shop")


def test_what_takes_nothing_is_noted_nowhere(settings: Path) -> None:
    allowed().note("shop", "sqlite:///shop.db")
    allowed().note("crm", "mariadb://ann@db.example/crm")
    assert not settings.exists()


def test_a_folder_that_cannot_be_written(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text("a file")
    with pytest.raises(StorageFailure, match="what source shop may take from the environment is noted there"):
        allowed().note("shop", URL)
    monkeypatch.setenv(VARIABLE, "shop=SHOP_PASSWORD")
    allowed().note("shop", URL)


def test_what_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "SHOP_PASSWORD")
    with pytest.raises(UsageError, match="'SHOP_PASSWORD', which allows nothing"):
        allowed().check("shop", URL)


def test_variables_that_are_taken() -> None:
    environment = {"A": "1", "VIEWKEEPER_PASSWORD_SHOP": "2", "PGPASSWORD": "3", "EMPTY": ""}
    assert taken_variables("shop", "${A}://${A}@${EMPTY:-db}/${NONE:-x}", environment) == [
        "A",
        "VIEWKEEPER_PASSWORD_SHOP",
    ]
    assert taken_variables("shop", "postgresql://ann:${A}@db/x", environment) == ["A"]
    assert taken_variables("shop", "sqlite:///shop.db", environment) == []


@pytest.mark.parametrize(
    ("url", "host"),
    [(URL, "db.example"), ("postgresql:///shop?host=x", "/shop"), ("${SHOP_URL}", "${SHOP_URL}")],
)
def test_host_of(url: str, host: str) -> None:
    assert host_of(url) == host
