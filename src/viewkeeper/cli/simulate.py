"""`viewkeeper simulate`: run an algorithm in a seeded world and see which level it reaches."""

import json
from typing import Any

import click

EXIT_BELOW_PROMISE = 1


@click.command(short_help="Run an algorithm in a seeded world and judge it.")
@click.option("--algorithm", default="batched-sweep", show_default=True, help="Which algorithm maintains the view.")
@click.option("--relations", default=3, show_default=True, help="How many relations the view joins, 1 to 12.")
@click.option("--updates", default=20, show_default=True, help="How many transactions the sources commit.")
@click.option(
    "--transactions",
    type=click.Choice(["single", "local", "global"]),
    default="single",
    show_default=True,
    help="One action each; several at one source; several over sources.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Everything random comes from it.  [default: a fresh one]")
@click.option(
    "--sources",
    type=int,
    help="How many sources hold the relations.  [default: one per relation, fewer for eca and the wrapper]",
)
@click.option(
    "--multi-relation", is_flag=True, help="Sources hold several relations behind the multi-relation wrapper."
)
@click.option("--batch", type=int, help="How many updates batched-sweep takes at once, at most.  [default: 64]")
@click.option(
    "--wrapper-batch",
    type=int,
    help="How many updates the wrapper sweeps at once, at most; 1 as in its paper.  [default: 4096, as live]",
)
@click.option("--mediator", is_flag=True, help="The live mediator maintains the view, with all its shortcuts.")
@click.option("--views", default=1, show_default=True, help="Views of one group, each over some relations; mediator.")
@click.option("--merge", is_flag=True, help="Captures deliver several commits as one transaction; mediator.")
@click.option("--restarts", default=0, show_default=True, help="How often the warehouse restarts; mediator.")
@click.option("--repeats", is_flag=True, help="Ids of global transactions come again, sources twice; mediator.")
@click.option(
    "--without-quiet",
    type=int,
    help="Transactions after which views stop waiting for quiet; mediator.  [default: 1000]",
)
@click.option("--keyless", is_flag=True, help="Relations without keys: bags with duplicates.")
@click.option("--self-join", is_flag=True, help="One of the relations occurs twice in the view.")
@click.option("--out-of-order", is_flag=True, help="Fault: answers overtake updates and are overtaken.")
@click.option("--whole-transactions", is_flag=True, help="One site reports each global transaction in full.")
@click.option("--crossing", is_flag=True, help="Parts of global transactions commit one by one, in crossing orders.")
@click.option("--key-information", is_flag=True, help="The view answers what it can, as it does live.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the algorithm (viewkeeper algorithms --json lists them); repeatable.",
)
@click.option("--trace", is_flag=True, help="Tell the run event by event, with the queue and the view.")
@click.option("--history", type=click.Path(dir_okay=False), help="Write what an independent judge needs to this file.")
@click.option("--example", metavar="NAME", help="Play a worked example of the papers instead.")
@click.option("--list", "list_examples", is_flag=True, help="List the worked examples.")
@click.option("--matrix", is_flag=True, help="All algorithms under all kinds of transactions.")
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="Runs per cell of the matrix.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.pass_context
def simulate(
    ctx: click.Context, /, as_json: bool, list_examples: bool, matrix: bool, example: str | None, **how: Any
) -> None:
    """Run a maintenance algorithm over random interleavings and judge the level it reached.

    Exit code 1 means that a run stayed below the level that its algorithm promises.

    \b
    Examples:
      viewkeeper simulate --algorithm sweep --relations 4 --updates 50 --seed 7
      viewkeeper simulate --algorithm strobe --transactions local --seed 3 --trace
      viewkeeper simulate --example sweep-figure-5-concurrent --trace
      viewkeeper simulate --transactions global --views 2 --merge --restarts 1 --seed 5
      viewkeeper simulate --matrix --runs 50
    """
    _refuse_unused(ctx, "list_examples" if list_examples else "example" if example else "matrix" if matrix else "run")
    if list_examples:
        _list(as_json)
    elif example is not None:
        _play(example, as_json, how["trace"], how["history"])
    elif matrix:
        ctx.exit(_matrix(as_json, how))
    else:
        ctx.exit(_run(as_json, how))


USED_WITH = {
    "list_examples": {"list_examples", "as_json"},
    "example": {"example", "as_json", "trace", "history"},
    "matrix": {"matrix", "as_json", "runs", "seed", "relations", "updates", "multi_relation"},
}
"""what goes with these; a plain run takes everything but `runs`"""


def _refuse_unused(ctx: click.Context, mode: str) -> None:
    """An option that would be ignored is refused: the run would not be what its caller thinks it is."""
    from viewkeeper.errors import UsageError

    given = [
        parameter
        for parameter in ctx.command.params
        if parameter.name and ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]
    for parameter in given:
        used = parameter.name != "runs" if mode == "run" else parameter.name in USED_WITH[mode]
        if not used:
            what = "a single run" if mode == "run" else f"--{mode.removesuffix('_examples')}"
            raise UsageError(f"{parameter.opts[0]} does not go with {what}", "leave one of the two out")


def _list(as_json: bool) -> None:
    from viewkeeper.sim.examples import EXAMPLES

    if as_json:
        click.echo(json.dumps({name: example.title for name, example in EXAMPLES.items()}, indent=2))
        return
    width = max(map(len, EXAMPLES))
    for name, example in EXAMPLES.items():
        click.echo(f"{name:{width}}  {example.title}")


def _play(name: str, as_json: bool, trace: bool, history: str | None) -> None:
    from viewkeeper.sim.examples import find_example

    example = find_example(name)
    lines: list[str] = []
    run = example.play(lines.append)
    if history:
        run.history.save(history)
    if as_json:
        click.echo(json.dumps({**run.to_json(), **({"trace": lines} if trace else {})}))
        return
    click.echo("\n".join(lines if trace else lines[: example.preamble]))
    click.echo(run.verdict_line())


def _scenario(how: dict[str, Any]) -> Any:
    from viewkeeper.algorithms.registry import Transactions, algorithm
    from viewkeeper.clock import fresh_seed
    from viewkeeper.sim.scenario import FLAGS, Scenario, parse_options

    chosen = algorithm(how["algorithm"])
    options = parse_options(chosen, how["options"])
    if how["batch"] is not None:
        if "batch" in chosen.options:
            options["batch"] = how["batch"]
        else:
            click.echo(f"note: {chosen.name} takes no batches; --batch is ignored", err=True)
    return Scenario(
        algorithm=chosen.name,
        seed=fresh_seed() if how["seed"] is None else how["seed"],
        transactions=Transactions(how["transactions"]),
        options=tuple(sorted(options.items())),
        **{
            name: how[name]
            for name in (
                "relations", "updates", "sources", "views", "restarts", "without_quiet", *FLAGS,
            )
        },
        **({} if how["wrapper_batch"] is None else {"wrapper_batch": how["wrapper_batch"]}),
    )  # fmt: skip


def _run(as_json: bool, how: dict[str, Any]) -> int:
    from viewkeeper.sim.report import judge
    from viewkeeper.sim.run import simulate
    from viewkeeper.sim.trace import Trace

    scenario = _scenario(how)
    lines: list[str] = []
    tell = lines.append if as_json else click.echo
    report = judge(scenario, simulate(scenario, Trace(tell) if how["trace"] else None))
    if how["history"]:
        report.history.save(how["history"])
    if as_json:
        click.echo(json.dumps({**report.to_json(), **({"trace": lines} if how["trace"] else {})}))
    else:
        click.echo(report.text())
    return 0 if report.kept_promise else EXIT_BELOW_PROMISE


def _matrix(as_json: bool, how: dict[str, Any]) -> int:
    from viewkeeper.cli.progress import tracked
    from viewkeeper.clock import fresh_seed
    from viewkeeper.sim.matrix import Matrix

    matrix = Matrix(
        runs=how["runs"],
        seed=fresh_seed() if how["seed"] is None else how["seed"],
        relations=how["relations"],
        updates=how["updates"],
        multi_relation=how["multi_relation"],
    )
    with tracked("simulating", matrix.total_runs, quiet=as_json) as advance:
        matrix.run(advance)
    click.echo(json.dumps(matrix.to_json()) if as_json else matrix.text())
    return 0 if matrix.kept_promises else EXIT_BELOW_PROMISE
