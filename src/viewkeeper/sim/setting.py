"""The part of a run that does not depend on the algorithm: relations, contents, views and updates."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from viewkeeper.algebra.memory import MemoryZSet
from viewkeeper.clock import Random, seeded
from viewkeeper.sim.random_updates import Script, random_script
from viewkeeper.sim.random_views import random_relations, random_rows, random_sql
from viewkeeper.sim.scenario import Scenario
from viewkeeper.sql.parse import parse_view
from viewkeeper.sql.relation import Relation
from viewkeeper.sql.view import View


@dataclass(frozen=True)
class Setting:
    """Relations with their contents, the view, what the sources will commit, and further views of its group."""

    relations: Mapping[str, Relation]
    rows: Mapping[str, MemoryZSet]
    sql: str
    script: Script
    more: tuple[str, ...] = ()


def random_setting(scenario: Scenario) -> Setting:
    """All of it from the seed; the algorithm has no say in it."""
    random = seeded(scenario.seed)
    relations = random_relations(random, scenario.relations, scenario.source_count, keyless=scenario.keyless)
    rows = {name: random_rows(random, relation) for name, relation in relations.items()}
    by_key = scenario.live or scenario.key_information
    sql, *more = (
        random_sql(random, read, self_join=scenario.self_join, by_key=by_key, most_columns=scenario.key_information)
        for read in _read_by_views(random, relations, scenario.views)
    )
    script = random_script(
        random,
        relations,
        rows,
        updates=scenario.updates,
        transactions=scenario.transactions,
        crossing=scenario.crossing,
        repeats=scenario.repeats,
    )
    return Setting(relations, rows, sql, script, tuple(more))


def _read_by_views(random: Random, relations: dict[str, Relation], views: int) -> list[dict[str, Relation]]:
    """One view reads everything; several read what they read: some of it by all, some of it perhaps by none."""
    if views == 1:
        return [relations]
    names = list(relations)
    chosen = [random.sample(names, random.randint(1, len(names))) for _ in range(views)]
    return [{name: relations[name] for name in names if name in some} for some in chosen]


@lru_cache(maxsize=1024)
def parsed(sql: str, relations: tuple[Relation, ...], name: str = "v") -> View:
    """Parsing costs as much as a short run, and a seed means the same view under every algorithm."""
    return parse_view(sql, {relation.name: relation for relation in relations}, name=name)
