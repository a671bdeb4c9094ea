"""Why an answer was corrected, forgotten or failed is kept in the log, in exports, and over the service."""

from __future__ import annotations

import csv
import io
import sqlite3
import zipfile

import pytest

from databases import small_board
from entrywise.study import Store, Study
from entrywise.study import archive as archives


@pytest.fixture
def study(lab):
    return small_board(lab)


def reasons(study):
    return {(x["id"], x["value"]): x["reason"] for x in study.log() if x["reason"] is not None}


def test_the_log_keeps_why(study):
    first, second, third = study.ask(3)
    study.tell([(first.id, 1.0), (second.id, "failed: the tip broke"), (third.id, 2.0)])
    study.amend(first.id, 3.0, "anna", reason="  read in the wrong column ")
    study.void(third.id, reason="another sample")
    assert reasons(study) == {
        (first.id, 3.0): "read in the wrong column",
        (second.id, None): "the tip broke",
        (third.id, None): "another sample",
    }
    values = [x["value"] for x in study.log() if x["id"] == first.id]
    assert sorted(values) == [1.0, 3.0]


def test_a_reason_may_be_told_of_a_failure_that_is_measured_again(tmp_path):
    study = Study.create(
        str(tmp_path / "lab.db"), "k", plan="adaptive-nystrom", params={"n": 3}, seed=1
    )
    (question,) = study.ask(1)
    study.tell([(question.id, "Failed : no signal")])
    assert reasons(study) == {(question.id, None): "no signal"}
    study.tell([(question.id, 1.0)])
    assert reasons(study) == {(question.id, None): "no signal"}


def test_exports_keep_reasons_and_those_of_before_are_read(study, tmp_path):
    (question,) = study.ask(1)
    study.tell([(question.id, 1.0)])
    study.amend(question.id, 2.0, reason='a slip, "so" to say;\nreally')
    study.export(tmp_path / "new.zip")
    again = Study.load(str(tmp_path / "other.db"), tmp_path / "new.zip")
    assert reasons(again) == reasons(study)

    with zipfile.ZipFile(tmp_path / "new.zip") as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    lines = csv.reader(io.StringIO(parts["facts.csv"], newline=""))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(line[:-1] for line in lines)
    parts["facts.csv"] = text.getvalue()
    parts["digest"] = archives._digest({k: v for k, v in parts.items() if k != "digest"})
    with zipfile.ZipFile(tmp_path / "old.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    before = Study.load(str(tmp_path / "other.db"), tmp_path / "old.zip", "before")
    assert not reasons(before)
    assert before.status()["answered"] == study.status()["answered"]


def test_a_database_of_before_gains_the_column(study, tmp_path):
    (question,) = study.ask(1)
    study.tell([(question.id, 1.0)])
    study.store.database.close()
    handle = sqlite3.connect(tmp_path / "lab.db")
    for index in ("facts_implausible", "pending_out", "pending_failed", "steps_report"):
        handle.execute(f"DROP INDEX {index}")
    handle.execute("DROP TABLE tallies")
    handle.execute("ALTER TABLE facts DROP COLUMN implausible")
    handle.execute("ALTER TABLE facts DROP COLUMN reason")
    handle.execute("UPDATE entrywise_version SET version_num = '0004'")
    handle.execute("PRAGMA user_version = 4")
    handle.commit()
    handle.close()
    later = Study.open(Store(str(tmp_path / "lab.db")), "s")
    assert [x["value"] for x in later.log() if x["what"] == "told"] == [1.0]
    later.amend(question.id, 2.0, reason="late")
    assert reasons(later) == {(question.id, 2.0): "late"}
