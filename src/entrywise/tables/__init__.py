"""One reader for every table, label file and array that a command or a function takes.

=====================  ============================================================================================
``read_entries(path)`` known entries, and one line that says how the file was understood (``ew.read``: other formats, too)
``read_table(path)``   a :class:`Table`: names or none, columns of text, the line of every record
``read_labels(path)``  unique labels of a first column, and the table beside them (prices, groups, ...)
``read_features``      numbers and categories beside the labels of rows or columns
``read_long(path)``    one column of texts for each role: item, worker, label; winner, loser; ...
``read_comparisons``   who beat whom, and who tied
``TableLines(header)`` the lines of a table that comes as a stream, one at a time
``read_points(path)``  a finite array, one point a line
``csv_text(columns)``  columns and rows as the text of a CSV file
``write_table(path)``  columns and rows as CSV or, with the extra ``excel``, as a workbook
=====================  ============================================================================================

Text may be separated by commas, tabs, semicolons or bars, quoted, with decimal commas where the separator allows,
in UTF-8 or UTF-16, with or without a byte order mark, packed by gzip; tables may be parquet or one sheet of a
workbook. Cells are text, stripped of the spaces around them. What cannot be understood is refused with a
:class:`~entrywise.exceptions.DataError` that names file, line and column. polars is imported only for parquet.
"""

from entrywise.tables.comparisons import Comparisons, comparisons_of, read_comparisons
from entrywise.tables.entries import (
    Reading,
    facts_of,
    read_entries,
    read_points,
    sparse_of,
)
from entrywise.tables.features import read_features
from entrywise.tables.files import LIMIT, arrays_of, boundary, contents, ending, text_of
from entrywise.tables.numbers import is_gap, number, whole
from entrywise.tables.roles import (
    ITEM,
    LABEL,
    LOSER,
    TRUTH,
    WINNER,
    WORKER,
    read_labels,
    read_long,
)
from entrywise.tables.streams import TableLines
from entrywise.tables.table import Column, Table, listed, read_table
from entrywise.tables.writing import csv_text, write_table

__all__ = [
    "ITEM",
    "LABEL",
    "LIMIT",
    "LOSER",
    "TRUTH",
    "WINNER",
    "WORKER",
    "Column",
    "Comparisons",
    "Reading",
    "Table",
    "TableLines",
    "arrays_of",
    "boundary",
    "comparisons_of",
    "contents",
    "csv_text",
    "ending",
    "facts_of",
    "is_gap",
    "listed",
    "number",
    "read_comparisons",
    "read_entries",
    "read_features",
    "read_labels",
    "read_long",
    "read_points",
    "read_table",
    "sparse_of",
    "text_of",
    "whole",
    "write_table",
]
