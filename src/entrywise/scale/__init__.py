"""Completion past one machine's memory: entries in files, fitted by this process, an executor or Dask.

::

    write_blocks("ratings-*.parquet", "ratings/")            # once, out of core
    found = ew.complete(Blocks("ratings/"))                  # on this machine
    found = ew.complete(Blocks("ratings/"), engine=client)   # by a Dask cluster that sees the folder
"""

from entrywise.scale.blocks import Blocks
from entrywise.scale.writing import write_blocks

__all__ = ["Blocks", "write_blocks"]
