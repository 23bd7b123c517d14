"""`python -m viewkeeper`."""

from viewkeeper.cli.main import main

main()
