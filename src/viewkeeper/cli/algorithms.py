"""`viewkeeper algorithms`: the table of all algorithms."""

import json

import click


@click.command(short_help="List the maintenance algorithms.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def algorithms(as_json: bool) -> None:
    """List the maintenance algorithms: the level each reaches, what it needs and what it costs.

    \b
    Example:
      viewkeeper algorithms
    """
    from viewkeeper.algorithms.registry import ALGORITHMS, Transactions

    if as_json:
        table = {
            name: {
                "levels": {str(kind): str(level) for kind, level in algorithm.levels.items()},
                "needs_keys": algorithm.needs_keys,
                "one_source": algorithm.one_source,
                "needs_quiet": algorithm.needs_quiet,
                "needs_pause": algorithm.needs_pause,
                "over_wrapper": algorithm.over_wrapper,
                "baseline": algorithm.baseline,
                "message_cost": algorithm.queries,
                "options": dict(algorithm.options),
            }
            for name, algorithm in ALGORITHMS.items()
        }
        click.echo(json.dumps(table, indent=2))
        return
    heading = "".join(f"{kind:12}" for kind in Transactions)
    width = max(map(len, ALGORITHMS)) + 2
    click.echo(f"{'algorithm':{width}}{heading}{'keys':6}queries, n relations")
    for name, algorithm in ALGORITHMS.items():
        levels = "".join(f"{algorithm.levels.get(kind, 'refused')!s:12}" for kind in Transactions)
        notes = ["one source"] * algorithm.one_source + ["waits for quiet"] * algorithm.needs_quiet
        note = f"  ({', '.join(notes)})" if notes else ""
        click.echo(f"{name:{width}}{levels}{'yes' if algorithm.needs_keys else 'no':6}{algorithm.queries}{note}")
