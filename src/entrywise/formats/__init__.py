"""Files of the field: what evaluation harnesses, label tools and arenas write, told by their content.

===================  =========================================================================================
``read(path)``       known entries, as :class:`~entrywise.Observations` (``ew.read``)
``load(path)``       what a file holds: :class:`ScoredCells`, :class:`Annotations` or :class:`~entrywise.tables.Comparisons`
``written(held)``    the text of a file in another format that holds the same
``priced(cells)``    the cells with what each cost, from its log and your prices
``KNOWN``            the formats, each with what tells it
===================  =========================================================================================
"""

from entrywise.formats.cells import (
    Annotations,
    Cell,
    ScoredCells,
    Usage,
    digest,
    keyed,
    parted,
    same_content,
)
from entrywise.formats.load import KNOWN, load, read, writers, written
from entrywise.formats.prices import SECONDS, Tariff, priced, quotes, read_tariffs
from entrywise.formats.source import FileFormat, Held, Source, Wanted

__all__ = [
    "KNOWN",
    "SECONDS",
    "Annotations",
    "Cell",
    "FileFormat",
    "Held",
    "ScoredCells",
    "Source",
    "Tariff",
    "Usage",
    "Wanted",
    "digest",
    "keyed",
    "load",
    "parted",
    "priced",
    "quotes",
    "read",
    "read_tariffs",
    "same_content",
    "writers",
    "written",
]
