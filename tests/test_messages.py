"""Mistakes that people make: each is one sentence with the value, the place and what mends it.

What is said stands in ``messages.txt``, below what is typed.
"""

from __future__ import annotations

import gzip
import os
import shlex
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest

from entrywise.cli._shared import run_command
from entrywise.cli.app import app
from entrywise.study.archive import _digest

FILES = {
    "models.csv": "model,price\nm0,1\nm1,2\nm2,3\n",
    "tasks.csv": "task,minutes\nt0,2\nt1,2\n",
    "twice.csv": "model\nm0\nm0\n",
    "gap.csv": "model,x\nm0,1\n,2\n",
    "double.csv": "row,col,value\na,x,1\na,x,2\nb,y,3\n",
    "word.csv": "row,col,value\na,x,1\na,y,high\nb,y,3\n",
    "ragged.csv": "row,col,value\na,x,1\na,y,1,2\n",
    "comma.csv": "row;col;value\na;x;1,234\na;y;2,345\nb;x;3,456\n",
    "ids.csv": "12,1.5,2.5\n13,1.0,2.0\n14,3.5,1.5\n",
    "empty.csv": "",
    "head.csv": "row,col,value\n",
    "arena.csv": "model_a,model_b,winner\na,b,model_a\na,b,nobody\n",
    "games.csv": "winner,loser\na,b\nb,a\n",
    "ties.csv": "winner,loser\na,b\ntie,c\n",
    "history.csv": "model,task,score\nm9,t0,1\nm0,t1,2\n",
    "short.csv": "model,price\nm0,1\n",
    "free.csv": "model,price\nm0,1\nm1,0\nm2,2\n",
    "a-word.csv": "id,value\n0.1,high\n",
    "a-inf.csv": "id,value\n0.1,inf\n",
    "a-comma.csv": 'id,value\n0.1,"1,5"\n',
    "a-id.csv": "id,value\n3.x,1\n",
    "a-unknown.csv": "id,value\n99.0,1\n",
    "a-row.csv": "row,col,value\nmo,t0,1\n",
    "a-column.csv": "id,score\n0.1,1\n",
    "a-empty.csv": "id,value\n0.1,\n",
    "a-nobody.csv": "who,value\nx,1\n",
    "a-study.csv": "id,study,value\n0.1,other,1\n",
    "a-twice.csv": "id,value\n0.1,1\n0.1,2\n",
    "a-entry.csv": "id,row,col,value\n0.0,m0,t0,1\n",
    "a-eve.csv": "id,worker,value\n0.1,eve,1\n",
    "a-again.csv": "id,value\n0.0,2.5\n",
    "n-inf.csv": "row,col,value\ninf,0,1\n",
    "n-out.csv": "row,col,value\n9,9,1\n",
    "n-digits.csv": "row,col,value\n1_0,0,1\n",
    "done.csv": "id,value\n0.0,1.5\n",
    "broken.py": "1 / 0\n",
    "notes.db": "Dear diary, nothing happened today. " * 9,
    "not.zip": "hello",
}
BOARD = "study create lab.db x --plan most-informative --rows models.csv --cols tasks.csv --budget"

LINES = (Path(__file__).parent / "messages.txt").read_text().splitlines()
MISTAKES = {  # what is typed, and what is said
    words.removeprefix("$ "): said for words, said in zip(LINES[::2], LINES[1::2], strict=True)
}


def typed(words: str) -> int:
    """Run a command and return how it ended."""
    call = {"prog_name": "entrywise", "standalone_mode": False}
    try:
        run_command(lambda: app(shlex.split(words), **call))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def desk_of_mistakes(tmp_path_factory):
    """A folder with all that can be wrong, and two studies."""
    folder, before = tmp_path_factory.mktemp("mistakes"), os.getcwd()
    os.chdir(folder)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("latin.csv").write_bytes("row,col,value\ncafé,x,1\n".encode("latin-1"))
    Path("torn.csv.gz").write_bytes(gzip.compress(b"0" * 1000)[:20])
    Path("torn.npz").write_bytes(b"PK\x03\x04 not a zip")
    Path("torn.parquet").write_bytes(b"PAR1 nothing")
    np.save("flat.npy", np.arange(5.0))
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    board = BOARD.replace(" x ", " board ")
    for words in (
        f"{board} 6 --seed 1",
        "study ask lab.db board --worker ann --format json",
        "study tell lab.db board done.csv",
        "study create num.db kernel --plan adaptive-nystrom --n 4 --seed 1",
        "study export lab.db board board.zip",
    ):
        assert typed(words) == 0
    with zipfile.ZipFile("board.zip") as archive:
        good = {name: archive.read(name).decode() for name in archive.namelist()}
    del good["digest"]
    lie = {**good, "facts.csv": good["facts.csv"].replace("1.5", "9.5")}
    inf = {**good, "facts.csv": good["facts.csv"].replace("1.5", "inf")}
    poor = {**good, "study.json": good["study.json"].replace('"total": 6.0', '"total": 0.5')}
    for name, parts, digest in (
        ("lie.zip", lie, _digest(good)),
        ("inf.zip", inf, _digest(inf)),
        ("poor.zip", poor, _digest(poor)),
    ):
        with zipfile.ZipFile(name, "w") as archive:
            for part, text in {**parts, "digest": digest}.items():
                archive.writestr(part, text)
    yield folder
    os.chdir(before)


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_sentence(desk_of_mistakes, capsys, words):
    code = typed(words)
    said = capsys.readouterr().err.splitlines()
    assert code in (1, 2)
    assert said[-1] == f"Error: {MISTAKES[words]}"
    assert sum(line.startswith("Error: ") for line in said) == 1


def test_there_are_sixty():
    assert len(MISTAKES) >= 60
