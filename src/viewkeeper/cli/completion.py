"""`viewkeeper completion`: the script that makes a shell complete verbs, options and names."""

import json

import click

from viewkeeper.cli.opening import json_option

PROGRAM, VARIABLE = "viewkeeper", "_VIEWKEEPER_COMPLETE"


@click.command(short_help="Complete verbs, options and names in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print the script that completes viewkeeper in SHELL: verbs, options, and the names of views and sources.

    The names are those of the warehouse that the line names with -w, else of VIEWKEEPER_WAREHOUSE, else of the current
    folder. Neither Spark nor a source is asked.

    \b
    Examples, each to be run once; a new shell then completes:
      viewkeeper completion bash > ~/.local/share/bash-completion/completions/viewkeeper
      viewkeeper completion zsh > "${fpath[1]}/_viewkeeper"
      viewkeeper completion fish > ~/.config/fish/completions/viewkeeper.fish

    \b
    Without bash-completion put this into ~/.bashrc:
      eval "$(viewkeeper completion bash)"
    """
    from click.shell_completion import get_completion_class

    from viewkeeper.cli.main import viewkeeper

    found = get_completion_class(shell)
    assert found is not None, "click knows all three"
    # Not by source(), which starts a bash to see how old it is.
    script = found.source_template % found(viewkeeper, {}, PROGRAM, VARIABLE).source_vars()
    click.echo(json.dumps({"shell": shell, "script": script}) if as_json else script)
