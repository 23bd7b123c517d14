"""`viewkeeper demo`: an anomaly, and the same run without it."""

import click


@click.command(short_help="An anomaly, and the same run without it.")
def demo() -> None:
    """Show how a view goes wrong when two sources change at once, and how sweep keeps it right.

    \b
    Example:
      viewkeeper demo
    """
    from viewkeeper.sim.examples import EXAMPLES

    for name, heading in (
        ("strobe-1", "Conventional incremental maintenance: each update as if nothing else were going on"),
        ("strobe-1-sweep", "The same updates and the same timing under sweep"),
    ):
        example = EXAMPLES[name]
        click.secho(f"\n{heading}\n", bold=True)
        run = example.play(click.echo)
        click.echo(f"\n{run.verdict_line()}")
    click.echo("\nNext: . .venv/bin/activate, then viewkeeper algorithms, simulate --list, simulate --matrix, --help")
