"""``python -m entrywise`` is the ``entrywise`` command."""

from entrywise.cli.app import main

if __name__ == "__main__":
    main()
