"""Plans: what is there compared with what is to be there, over a warehouse that only tells."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from project_folder import SHOP, make_shop, write_files

from viewkeeper import Project, ViewkeeperError
from viewkeeper.errors import DamagedWarehouse, DefinitionError
from viewkeeper.lake.log.source_files import SourceDefinition
from viewkeeper.planner.altering.alteration import Alteration
from viewkeeper.planner.groups import Groups
from viewkeeper.project.ownership import FILE, MadeCube, Owned, read_owned, write_owned
from viewkeeper.project.places import Place
from viewkeeper.project.planning import source_step, stored_dependants
from viewkeeper.project.sources import ProjectSource
from viewkeeper.sql.relation import Relation

CREATE = "CREATE MATERIALIZED VIEW"
ORDERS = Relation("shop.orders", "shop", ("id", "cust", "amount"), ("BIGINT", "BIGINT", "BIGINT"), ("id",))
STORED = SourceDefinition("shop", "sqlite:///shop.db", None, {}, {"shop.orders": ORDERS}, True, False)


@dataclass
class Told:
    """A warehouse that knows what is there, and what a statement would do."""

    path: Path
    definitions: dict[str, str] = field(default_factory=dict)
    found: dict[str, Alteration | DefinitionError] = field(default_factory=dict)
    sources: tuple[SourceDefinition, ...] = ()
    states: dict[str, int] = field(default_factory=dict)
    id: str = "told"

    def status(self) -> Any:
        return SimpleNamespace(readable_states=lambda name: self.states.get(name, 0))

    def groups(self) -> Groups:
        return Groups()

    def alteration(self, sql: str, also: Sequence[str] = (), relations: Any = None) -> Alteration:
        assert set(also) <= {B, C}
        name = sql.split("VIEW ")[1].split()[0]
        found = self.found.get(name, Alteration(name, "keep"))
        if isinstance(found, DefinitionError):
            raise found
        return found


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.chdir(tmp_path)
    make_shop(tmp_path / "shop.db")
    return Told(tmp_path / "lake", sources=(replace(STORED, url=f"sqlite:///{tmp_path}/shop.db"),))


def actions(project: Project, told: Any, **how: Any) -> dict[str, str]:
    return {step.name: str(step.action) for step in project.plan(told, **how).views}


def shop_project(*views: str, **more: Any) -> Project:
    return Project(sources={"shop": {"url": "sqlite:///shop.db", "install": True}}, views=views, **more)


A = f"{CREATE} a AS SELECT id, amount FROM shop.orders"
B = f"{CREATE} b AS SELECT id FROM a"
C = f"{CREATE} c AS SELECT id FROM b"


def test_everything_is_new_where_nothing_is(told: Any) -> None:
    plan = shop_project(B, A).plan()
    assert [(step.name, step.action) for step in plan.steps] == [("shop", "add"), ("a", "create"), ("b", "create")]
    assert (plan.exists, plan.changes, plan.views[0].place) == (False, True, "views[1]")
    assert not (told.path / "warehouse").exists()


def test_what_the_warehouse_says_of_a_view_is_in_the_plan(told: Any) -> None:
    told.definitions = {"a": A, "b": B, "c": C}
    told.found = {"a": Alteration("a", "reload", ("the column x is new",), ("b", "c"))}
    project = shop_project(A, B, C)
    plan = project.plan(told)
    assert actions(project, told) == {"a": "reload", "b": "reload", "c": "reload"}
    assert plan.views[0].reasons == ("the column x is new",)
    assert plan.views[0].dependants == ("b", "c")
    assert plan.views[1].reasons == ("it is recreated with a",)
    told.found = {"a": Alteration("a", "alter", ("the property retention is another",))}
    assert actions(project, told) == {"a": "alter", "b": "keep", "c": "keep"}


def test_the_states_that_a_reload_costs_are_told(told: Any) -> None:
    told.definitions = {"a": A, "b": B, "c": C}
    told.found = {"a": Alteration("a", "reload", ("the column x is new",), ("b",))}
    told.states = {"a": 26, "b": 1, "c": 9}
    plan = shop_project(A, B, C).plan(told)
    assert [(step.states_lost, step.loss) for step in plan.views] == [
        (26, "26 earlier states can no longer be read"),
        (1, "1 earlier state can no longer be read"),
        (0, None),
    ]
    assert [step["states_lost"] for step in plan.as_json()["views"]] == [26, 1, 0]


def test_a_view_that_follows_something_new(told: Any) -> None:
    """Over what is there now its statement makes no sense."""
    told.definitions = {"b": f"{CREATE} b AS SELECT id FROM shop.orders"}
    told.found = {"b": DefinitionError("no such view a")}
    plan = shop_project(A, B).plan(told)
    assert [(step.name, step.action, step.reasons) for step in plan.views] == [
        ("a", "create", ()),
        ("b", "reload", ("it follows a",)),
    ]


def test_a_view_whose_readers_are_in_the_way(told: Any) -> None:
    told.definitions = {"a": A, "b": f"{CREATE} b AS SELECT gone FROM a"}
    told.found = {"a": DefinitionError("b cannot be over the new a"), "b": DefinitionError("a has no column id")}
    plan = shop_project(A, B).plan(told)
    assert [(step.name, step.action, step.dependants) for step in plan.views] == [
        ("a", "reload", ("b",)),
        ("b", "reload", ()),
    ]


def test_what_cannot_be_is_an_error_with_its_place(told: Any) -> None:
    told.definitions, told.found = {"a": A}, {"a": DefinitionError("it cannot be", "do something else")}
    with pytest.raises(DefinitionError, match=r"^views\[0\]: it cannot be\n  hint: do something else"):
        shop_project(A).plan(told)


# What is in the project no more


def test_only_what_a_project_made_is_dropped_and_only_if_asked(told: Any) -> None:
    told.definitions = {"a": A, "old": A, "mine": A, "sales_top": A}
    told.sources = (*told.sources, replace(STORED, name="crm", relations={}))
    cube = MadeCube({}, ("sales_top",))
    write_owned(told.path, Owned(frozenset({"shop", "crm", "gone"}), frozenset({"a", "old", "gone"}), {"sales": cube}))
    left = shop_project(A).plan(told)
    pruned = shop_project(A).plan(told, prune=True)
    for plan in (left, pruned):
        assert {(step.name, step.action) for step in plan.steps if step.action != "keep"} == {
            ("crm", "remove"),
            ("old", "drop"),
            ("sales", "drop"),
        }
        assert plan.by_hand == ("mine",)
    assert (left.changes, pruned.changes) == (False, True)
    assert pruned.as_json()["views"][1] == {
        "name": "old",
        "action": "drop",
        "reasons": ("no longer in the project",),
        "dependants": (),
        "place": None,
        "if_pruned": False,
        "states_lost": 0,
    }


def test_ownership_is_kept_and_its_damage_is_seen(told: Any) -> None:
    owned = Owned().with_source("shop").with_view("a").with_view("b").with_cube("c", MadeCube({"count": 1}, ("c_top",)))
    write_owned(told.path, owned)
    assert read_owned(told.path) == owned
    assert owned.without_view("b").without_cube("c") == Owned(frozenset({"shop"}), frozenset({"a"}), {})
    (told.path / FILE).write_text("{}")
    with pytest.raises(DamagedWarehouse, match="delete it"):
        read_owned(told.path)


def test_cubes(told: Any) -> None:
    spec = {"fact": "shop.orders", "dimensions": ["cust"], "measures": "COUNT(*) AS n", "count": 1}
    project = shop_project(cubes={"sales": spec})

    def step() -> tuple[str, tuple[str, ...]]:
        [found] = project.plan(told).cubes
        return str(found.action), found.reasons

    assert step() == ("create", ())
    made = project.cubes["sales"].told
    told.definitions = {"sales_top": A}
    write_owned(told.path, Owned(cubes={"sales": MadeCube(made, ("sales_top",))}))
    assert step() == ("keep", ())
    write_owned(told.path, Owned(cubes={"sales": MadeCube({**made, "count": 2}, ("sales_top", "sales_none"))}))
    assert step() == ("reload", ("count is another", "its table sales_none is gone"))


def test_who_reads_whom() -> None:
    definitions = {"a": A, "b": B, "c": C, "d": f"{CREATE} d AS SELECT c.id FROM c JOIN a ON a.id = c.id"}
    assert stored_dependants("a", definitions) == ("d", "c", "b")
    assert stored_dependants("d", definitions) == ()


# Sources


@pytest.mark.parametrize(
    ("wanted", "stored", "reasons"),
    [
        ({}, {}, []),
        ({"tables": ("orders",)}, {}, []),
        ({}, {"tables": ("orders",)}, ["all of its tables are taken, and not some"]),
        ({"tables": ("orders", "people")}, {"tables": ("orders",)}, ["the table people is added"]),
        ({"keys": {"orders": ("id",)}}, {"keys": {"orders": ("id",), "x": ("y",)}}, []),
        ({"keys": {"orders": ("id", "cust")}}, {"keys": {"orders": ("id",)}}, ["the key of orders is id, cust"]),
        ({"foreign_keys": (("a.b", "c.d.e"),)}, {}, ["the foreign key a.b → c.d.e is declared"]),
        ({"hierarchies": {"t": (("a", "b"),)}}, {}, ["the hierarchy a, b of t is declared"]),
        (
            {"hierarchies": {"t": (("a", "b"), ("a", "c"))}},
            {"hierarchies": {"t": (("a", "b"), ("b", "d"))}},
            ["the hierarchy a, c of t is declared"],
        ),
        ({"hierarchies": {"t": ()}}, {"hierarchies": {"t": (("a", "b"),)}}, ["the hierarchies of t are withdrawn"]),
        ({"install": True}, {"installed": False}, ["what capture needs is installed"]),
        ({"install": False}, {"installed": True}, []),
        ({"url": "sqlite:///b.db"}, {}, ["it is at sqlite:///b.db, and was at sqlite:///shop.db"]),
    ],
)
def test_what_is_different_about_a_source(wanted: dict[str, Any], stored: dict[str, Any], reasons: list[str]) -> None:
    source = ProjectSource(**{"name": "shop", "url": "sqlite:///shop.db", "place": Place(where="here"), **wanted})
    step = source_step(source, replace(STORED, **stored), ())
    assert list(step.reasons) == reasons
    assert step.action == ("change" if reasons else "keep")


def test_a_table_that_was_not_there_is_looked_for(told: Any) -> None:
    people = f"{CREATE} p AS SELECT name FROM shop.people"
    [step] = shop_project(people).plan(told).sources
    assert (step.action, step.reasons) == ("change", ("the table shop.people is not known yet",))


def test_all_errors_of_a_project_are_listed(tmp_path: Path) -> None:
    make_shop(tmp_path / "shop.db")
    write_files(
        tmp_path,
        {
            "viewkeeper.yml": SHOP + "  gone: sqlite:///gone.db\n",
            "views/one.sql": "CREATE MATERIALIZED VIEW one AS SELECT nothing FROM shop.orders",
            "views/two.sql": "CREATE MATERIALIZED VIEW two AS SELECT id FROM shop.persons",
            "views/three.sql": "CREATE MATERIALIZED VIEW three AS SELECT id FROM one",
            "views/four.sql": "CREATE MATERIALIZED VIEW four AS SELECT id FROM gone.things",
        },
    )
    with pytest.raises(ViewkeeperError) as caught:
        Project.load(tmp_path).plan()
    said = str(caught.value)
    assert "3 errors" in said
    for part in ("gone.db", "one.sql", "nothing", "two.sql", "shop.persons"):
        assert part in said, said
    assert "three.sql" not in said, "what it reads is wrong already"
    assert "four.sql" not in said
