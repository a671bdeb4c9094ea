"""``entrywise crowd``: labels and worker skills from the answers of a crowd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from entrywise.cli._shared import Format, FormatOption, emit, say
from entrywise.exceptions import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrywise.apply.crowd import Consensus
    from entrywise.tables import Table

Classes = Annotated[
    str | None, typer.Option(help="All classes, separated by commas, if some never occur.")
]
Repeats = Annotated[
    str, typer.Option(help="A worker who answered an item twice: refuse, first, last or keep.")
]
ItemColumn = Annotated[str | None, typer.Option(help="Column of FILE that names the item.")]
WorkerColumn = Annotated[str | None, typer.Option(help="Column of FILE that names the worker.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column of FILE that holds the label.")]


def crowd(
    file: Annotated[
        str,
        typer.Argument(
            help="Answers: .csv, .tsv, .xlsx or .parquet (.gz too) with item, worker, label, or an export of "
            "Label Studio (.json); - is stdin."
        ),
    ],
    truth: Annotated[
        str | None,
        typer.Option(help="True labels: a table with item, truth; only to tell the error."),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(
            help="True labels of 30 to 50 items drawn at random: they say how to read the confidence."
        ),
    ] = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="Print the workers' skills instead.")
    ] = False,
    level: Annotated[
        float, typer.Option(help="Chance with which a skill lies in its interval.")
    ] = 0.95,
    model: Annotated[str, typer.Option(help="auto, vote, one-coin or dawid-skene.")] = "auto",
    shares: Annotated[str, typer.Option(help="Class shares: auto, equal or free.")] = "auto",
    classes: Classes = None,
    repeats: Repeats = "refuse",
    item: ItemColumn = None,
    worker: WorkerColumn = None,
    label: LabelColumn = None,
    save: Annotated[Path | None, typer.Option(help="Keep everything found here (npz).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary on stderr.")] = False,
    format: FormatOption = Format.csv,
) -> None:
    """Find the label of every item from who said what: item, label, confidence.

    No truth is needed: workers who agree with others are right more often. Workers who look adversarial or like coins,
    and those who share no item with anyone, are named on stderr. `entrywise crowd next` says which label to buy next.

    Example: entrywise crowd labels.csv --truth gold.csv --workers
    """
    from entrywise.apply.crowd import consensus
    from entrywise.results.result import refuse_level

    refuse_level(level, "--level")
    cells, taken = answered(file, item, worker, label)
    true = None if truth is None else gold_of(truth)
    checked = None if gold is None else gold_of(gold)
    try:
        found = consensus(
            *cells, classes=None if classes is None else [c.strip() for c in classes.split(",")],
            model=model, shares=shares, repeats=repeats, gold=checked,  # type: ignore[arg-type]
        )  # fmt: skip
    except DataError as error:
        words = str(error).replace(
            "repeats='first', 'last' or 'keep'", "--repeats first, last or keep"
        )
        raise type(error)(
            f"{file}: {words.replace('name the classes that nobody chose', 'name all with --classes')}"
        ) from None
    if not quiet:
        if [t.lower() for t in taken] != ["item", "worker", "label"]:
            say(f"Columns: item is {taken[0]!r}, worker is {taken[1]!r}, label is {taken[2]!r}.")
        _tell(found, len(cells[0]))
    if true is not None:
        _error(found, cells, true, str(truth))
    if save is not None:
        found.save(save)
    if workers:
        low, high = found.interval(level)
        informed = found.informed if format is not Format.table else np.round(found.informed, 2)
        rows: Any = zip(
            found.workers.tolist(), found.answers.tolist(), found.skill.tolist(), low.tolist(), high.tolist(),
            informed.tolist(), found.kinds.tolist(), strict=True,
        )  # fmt: skip
        emit(
            ("worker", "answers", "skill", "low", "high", "informed", "kind"),
            map(_gaps, rows),
            format,
        )
    else:
        rows = zip(
            found.items.tolist(), found.labels.tolist(), found.confidence.tolist(), strict=True
        )
        emit(("item", "label", "confidence"), map(_gaps, rows), format)


def _gaps(row: Any) -> list[Any]:
    """Leave numbers that cannot be told empty, and round the others."""
    return [(None if x != x else round(x, 6)) if isinstance(x, float) else x for x in row]


def _tell(found: Consensus, answers: int) -> None:

    say(
        f"{len(found.items)} items, {len(found.workers)} workers, {answers} answers, {len(found.classes)} classes; "
        f"model: {found.report['model']}."
    )
    for kind, words in (
        ("adversarial", "right less often than a coin"),
        ("coin", "answer like coins"),
        (
            "not comparable",
            "agreement does not determine their skill: they share no item, or with one other only",
        ),
    ):
        named = [str(w) for w in found.workers[found.kinds == kind]]
        if named:
            more = f" and {len(named) - 8} more" if len(named) > 8 else ""
            say(f"{len(named)} {kind} ({words}): {', '.join(named[:8])}{more}.")
    if found.report["components"] > 1:
        say(
            f"The workers fall into {found.report['components']} groups that share no item; skills do not compare across."
        )
    if "wrong_labels" in found.report:
        share, low, high = (
            100 * found.report[f"wrong_labels{end}"] for end in ("", "_low", "_high")
        )
        say(
            f"By {found.report['gold_items']} gold items, {share:.1f} % of the labels are wrong (95 %: {low:.1f} to {high:.1f})."
        )
    else:
        wrong = 100 * found.report["expected_wrong_labels"]
        say(
            f"About {wrong:.1f} % of the labels are expected to be wrong, as crowds usually err together; in some it was ten points "
            "more and nothing in the answers showed it: --gold with 30 to 50 items checked by hand tells."
        )
    blank = int(np.isnan(found.confidence).sum())
    if blank:
        say(
            f"{blank} items were answered only by workers whose skill cannot be told: their confidence is left empty."
        )


def answered(
    file: str, item: str | None, worker: str | None, label: str | None
) -> tuple[list[list[str]], list[str]]:
    """Return items, workers and labels of a file, and the columns taken; of tasks with annotations `label` is the control."""
    from entrywise.tables import ITEM, LABEL, WORKER, read_long

    if file.lower().endswith(".json"):
        from entrywise.integrations.label_studio import read_annotations

        said = read_annotations(file, control=label)
        return [said.items, said.workers, said.labels], ["item", "worker", "label"]
    roles = (("item", ITEM), ("worker", WORKER), ("label", LABEL))
    found = read_long(file, roles, (item, worker, label))
    if found.table.headed and not any((item, worker, label)):
        _refuse_unnamed(found.table, ITEM, WORKER)
    return found.cells, found.taken


def _refuse_unnamed(table: Table, *usual: Sequence[str]) -> None:
    """Refuse a header in which neither items nor workers have a usual name: places alone would mix them up."""
    from entrywise.tables import listed

    if all(table.column(*names) is None for names in usual):
        raise table.error(
            f"which column names the items and which the workers is not clear from {listed(table.names)}; "
            "say --item, --worker and --label"
        )


def gold_of(path: str) -> dict[str, str]:
    """Return the true labels of the items in a file."""
    from entrywise.tables import ITEM, TRUTH, read_long

    items, labels = read_long(path, (("item", ITEM), ("truth", TRUTH))).cells
    gold: dict[str, str] = {}
    for i, c in zip(items, labels, strict=True):
        if gold.setdefault(i, c) != c:
            raise DataError(f"{path}: item {i!r} must have one truth, it has {gold[i]!r} and {c!r}")
    return gold


def _error(found: Consensus, cells: list[list[str]], gold: dict[str, str], path: str) -> None:
    """Tell the error, with the majority vote's beside it."""
    from collections import Counter, defaultdict

    label = dict(zip(found.items.tolist(), found.labels.tolist(), strict=True))
    known = [i for i in gold if i in label]
    if not known:
        say(
            f"No item of {path} was answered; no error can be told. Items there look like {next(iter(gold))!r}."
        )
        return
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for i, _, c in zip(*cells, strict=True):
        votes[i][c] += 1
    wrong = sum(label[i] != gold[i] for i in known) / len(known)
    vote = 0.0
    for i in known:
        top = [c for c, k in votes[i].items() if k == max(votes[i].values())]
        vote += 1.0 - (gold[i] in top) / len(top)
    say(
        f"Error against {path}: {100 * wrong:.2f} % of {len(known)} items "
        f"(majority vote, ties shared: {100 * vote / len(known):.2f} %)."
    )
    if len(known) < len(gold):
        say(f"{len(gold) - len(known)} items of {path} were answered by nobody.")
    strange = sorted({gold[i] for i in known} - {str(c) for c in found.classes.tolist()})
    if strange:
        say(f"The truth {strange[0]!r} was never given as an answer; such items count as errors.")
