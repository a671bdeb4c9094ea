"""One row a method: its name, where it lives, its room, its paper, what it guarantees, a small example.

The rows feed the command line, studies, the laws of :mod:`entrywise.checks` and the docs. To add a
method, write its file and add its row to the table of its room.
"""

from entrywise.methods.find import METHODS, get, make_plan
from entrywise.methods.method import Method, Room
from entrywise.methods.renamed import renamed

__all__ = ["METHODS", "Method", "Room", "get", "make_plan", "renamed"]
