"""Compares two plan documents: each is validated and estimated as it stands, then they are set side by side.

It proposes nothing and mends nothing: a plan that breaks a rule is compared all the same, and said to break it. Both
are judged under one setting: a plan that names no engine is judged as run on that of the other.
"""

from __future__ import annotations

from .calibration.custom import CustomCalibration
from .comparison.changes import changes, differ_unlisted, figures, questions
from .comparison.result import Change, Comparison
from .comparison.side import Document, judged_read
from .comparison.words import concluded
from .errors import expect
from .plan.document import ServingBlock
from .plan.on_engine import on_engine
from .plan.reader import ReadDocument, read_document


def compare(
    a: Document,
    b: Document,
    *,
    titles: tuple[str, str] = ("A", "B"),
    calibration: CustomCalibration | None = None,
    usd_per_gpu_hour: tuple[float | None, float | None] = (None, None),
) -> Comparison:
    """Set two plan documents side by side: each a `Plan`, an object, a JSON text, or the path of a file.

    `usd_per_gpu_hour`: what an hour of a GPU of each costs, the catalogue's price where it is `None`.

    Raises InputError: one of them cannot be read as a plan document. That it breaks rules is reported, not raised.
    """
    expect(titles, tuple, "titles", "two texts are expected")
    for title in titles:
        expect(title, str, "titles", "two texts are expected")
    documents = read_document(a), read_document(b)
    reads = _placed(documents[0], documents[1]), _placed(documents[1], documents[0])
    try:
        first, second = (
            judged_read(read, title, calibration, price, takes_engine=read is not document)
            for read, document, title, price in zip(reads, documents, titles, usd_per_gpu_hour, strict=True)
        )
        asked, decided = tuple(questions(first.side, second.side)), tuple(changes(first.side, second.side))
        if not asked and not decided and differ_unlisted(*reads):
            decided = (Change(what="operators, GPUs or edges of the graph", a="its own", b="others"),)
    finally:
        for read in {id(read): read for read in (*reads, *documents)}.values():
            read.view.release()
    objective = first.side.workload.objective
    comparison = Comparison(
        a=first.side,
        b=second.side,
        question=asked,
        changes=decided,
        figures=tuple(figures(first, second)),
        objective=objective if objective == second.side.workload.objective else None,
    )
    return concluded(comparison)


def _placed(read: ReadDocument, other: ReadDocument) -> ReadDocument:
    """The document as judged: where it names no engine, on the engine of `other`."""
    engine = _serving(other)
    if read.plan is None or engine is None or engine.engine is None or ((serving := _serving(read)) and serving.engine):
        return read
    return read_document(on_engine(read.plan.model_dump(mode="json"), engine.engine, engine.engine_version))


def _serving(read: ReadDocument) -> ServingBlock | None:
    return None if read.plan is None else read.plan.serving
