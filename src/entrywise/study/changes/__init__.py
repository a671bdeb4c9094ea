"""What changes a study as a whole: making, forking, and the epochs that everything else begins."""

from entrywise.study.changes.amend import amend, out_with, void
from entrywise.study.changes.create import create, fork
from entrywise.study.changes.delete import delete
from entrywise.study.changes.extend import extend
from entrywise.study.changes.known import add
from entrywise.study.changes.settings import close, drop, renew, reopen, set_params

__all__ = [
    "add",
    "amend",
    "close",
    "create",
    "delete",
    "drop",
    "extend",
    "fork",
    "out_with",
    "renew",
    "reopen",
    "set_params",
    "void",
]
