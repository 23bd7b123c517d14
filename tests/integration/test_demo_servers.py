"""The demo's private PostgreSQL and MariaDB: its views are maintained over them, and nothing of them is left behind."""

from pathlib import Path

from viewkeeper.demo.business import transactions
from viewkeeper.demo.demonstration import GROUP, LATTICE, Demonstration, make_databases
from viewkeeper.demo.retail import TABLES
from viewkeeper.demo.servers import private_servers
from viewkeeper.demo.views import JOINS, VIEWS
from viewkeeper.warehouse import Warehouse

SEED, SECONDS = 3, 2.0


def test_the_demo_over_private_servers(tmp_path: Path) -> None:
    with private_servers() as servers, Warehouse.open(tmp_path / "lake") as warehouse:
        urls = make_databases(warehouse.path / "databases", SEED, servers)
        assert [url.split(":")[0] for url in urls.values()] == ["postgresql", "mariadb", "sqlite"]
        folders = [
            Path(urls["shop"].partition("host=")[2]),
            Path(urls["customers"].partition("unix_socket=")[2]).parent,
        ]
        assert all(folder.exists() for folder in folders)
        demonstration = Demonstration(warehouse, urls, SEED, SECONDS)
        demonstration.add_sources()
        for name in VIEWS:
            assert demonstration.create_view(name)
        kept = demonstration.keep_fresh(lambda report: None)
        assert kept.committed == {name: len(transactions(name, SEED, SECONDS)) for name in TABLES}
        assert kept.states[GROUP] == sum(kept.committed.values())
        assert kept.states[LATTICE] > 0
        assert not kept.report.halted
        for name in JOINS:
            assert warehouse.audit(name).clean
    assert not any(folder.exists() for folder in folders)
    assert not any(_mentions(folder) for folder in folders), "a server is still there"


def _mentions(folder: Path) -> bool:
    """Whether a process was started with something of a folder."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in one.read_bytes():
                return True
        except OSError:
            continue
    return False
