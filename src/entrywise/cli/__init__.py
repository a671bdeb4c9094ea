"""The ``entrywise`` command: one command a file, registered in :mod:`entrywise.cli.app`."""
