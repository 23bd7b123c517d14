"""Views recreated beside the old ones, with those that read them, and swapped by one commit: `swapping.py`.

before       groups that others stay in are brought up past a halt; summaries that wait are refreshed
swapping     the old ones dropped; the new ones created, then those that read them, each over what was just created
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.lake.log.halts import Halts
from viewkeeper.maintenance.altering.swapping import refresh_deferred, refresh_joined, settle, swapping
from viewkeeper.maintenance.keeper import Keeper
from viewkeeper.planner.altering.fitting import home_of
from viewkeeper.planner.altering.planning import Plan, present_of
from viewkeeper.planner.stored_definitions import behind_what_they_read, dependants_of, named_in, sql_of
from viewkeeper.sql.create_clauses import read_create
from viewkeeper.sql.definition import name_in
from viewkeeper.sql.parse_summary import parse_definition


def reload_as(keeper: Keeper, plan: Plan) -> None:
    """Carry out a reload."""
    _make_anew(keeper, {plan.alteration.view: plan.sql, **plan.readers}, [plan.alteration.view])


def alter_together(keeper: Keeper, statements: Sequence[str]) -> None:
    """Alter several views to these definitions, and recreate those that read them, all by one commit."""
    catalog = keeper.writer.catalog
    asked = {name_in(create.sql): create.sql for create in map(read_create, statements)}
    present = [name for name in asked if present_of(catalog, name)]
    readers = dict.fromkeys(reader for name in present for reader in dependants_of(catalog, name))
    definitions = {**{name: sql_of(catalog, name) for name in readers}, **asked}
    reads = {name: named_in(sql, definitions) for name, sql in definitions.items()}
    # New ones last: they join a group of those that are there, and not the other way round.
    ordered = behind_what_they_read([*dict.fromkeys((*present, *readers, *asked))], reads)
    _make_anew(keeper, {name: definitions[name] for name in ordered}, asked)


def _refresh_joined(keeper: Keeper, definitions: Iterable[str]) -> None:
    for sql in definitions:
        try:
            new = parse_definition(sql, keeper.relations())
        except ViewkeeperError:
            # Over what is not there yet: which lattice a summary will be in is not known.
            refresh_deferred(keeper)
        else:
            refresh_joined(keeper, new)


def _make_anew(keeper: Keeper, definitions: Mapping[str, str], asked: Collection[str]) -> None:
    """Views by their definitions, each after those that it reads; of those in `asked` the user knows."""
    present = {name: there for name in definitions if (there := present_of(keeper.writer.catalog, name))}
    gone = [table for tables in present.values() for table in tables]
    _refuse_halted(keeper, definitions, {table.name for table in gone})
    settle(keeper, gone)
    _refresh_joined(keeper, [definitions[name] for name in asked])
    with swapping(keeper, gone, {name: home_of(present[name]) for name in asked if name in present}) as world:
        for view, sql in definitions.items():
            try:
                world.create(read_create(sql).sql)
            except ViewkeeperError as error:
                if view not in asked:
                    # The user did not speak of it, and should know which one is in the way.
                    read = ", ".join(sorted(named_in(sql, asked)) or asked)
                    error.detail = f"{view}, which reads {read}, cannot be recreated with it: {error.detail}"
                raise


def _refuse_halted(keeper: Keeper, definitions: Mapping[str, str], gone: Collection[str]) -> None:
    halts = Halts(keeper.files.store).all()
    for view, sql in definitions.items():
        if stuck := sorted(named_in(sql, halts) - set(gone)):
            raise UsageError(f"{stuck[0]}, which {view} is to read, is halted", f"reload {stuck[0]} first")
