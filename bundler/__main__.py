"""`python -m bundler` is the `airbundle` command."""

from bundler.cli.app import main

main()
