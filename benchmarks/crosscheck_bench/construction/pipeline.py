"""The construction of CrossCheck-Bench's samples from product folders (section "Hierarchical QA Generation").

L1 by templates, L2 by a text model under instructions (by templates without one), L3 from a file that people write; then
quality control by two annotators' labels. Beside the instances the build gets ``graphs.jsonl``, the clue graph of every
product; ``provenance.jsonl``, how each sample was made and from which facts; and ``review.jsonl``, a tenth of each task to
be labelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.base import canonical_json, digest
from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.crosscheck_bench.constants import TASKS
from benchmarks.crosscheck_bench.construction.clue_graph import ClueGraph, graphs
from benchmarks.crosscheck_bench.construction.drafts import QuestionDraft
from benchmarks.crosscheck_bench.construction.human_written import authored
from benchmarks.crosscheck_bench.construction.integration_templates import L2
from benchmarks.crosscheck_bench.construction.model_written import RejectedQuestion, written
from benchmarks.crosscheck_bench.construction.perception_templates import L1
from benchmarks.crosscheck_bench.construction.quality_control import Review, review, to_review
from benchmarks.crosscheck_bench.construction.template_data import Template, TemplateData
from benchmarks.crosscheck_bench.sample import CrossCheckSample, sample, with_frames
from benchmarks.crosscheck_bench.sources.products import SOURCE, read
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.rows.files import RowProblem, SkippedRow

_REPEATED = "repeated: another question is the same"


@dataclass(frozen=True, slots=True)
class ConstructedSamples:
    """What a folder of products gave: the samples in order, and what the manifest says of them."""

    samples: tuple[CrossCheckSample, ...]
    report: Mapping[str, Any]


def construct(folder: Path, writer: BuildWriter, options: BuildOptions) -> ConstructedSamples:
    """The samples of the products in ``folder``, in Table 1's order of tasks, their pictures in the build.

    ``options.per_stratum`` is the target of samples a task for L1 and L2, ``options.writer`` the model that writes L2's
    questions. What is left out is noted with ``writer.add_skipped``, each reason beginning with one of a few. Raises
    SpecError for a target below 1, SourceError where the folder is none of products or changes meanwhile, RashomonError
    where the model can no longer be asked; what was answered is not asked again by the next build.
    """
    if options.per_stratum < 1:
        raise SpecError(f"the target of samples a task is {options.per_stratum}; it must be at least 1.")
    catalogue = read(folder)
    material = TemplateData(catalogue, graphs(catalogue))
    _note(catalogue.skipped, writer)
    made: dict[str, tuple[CrossCheckSample, QuestionDraft]] = {}
    offered: Counter[str] = Counter()
    for draft in _drafts(folder, material, writer, options, offered):
        found = _sample(draft, writer)
        if found is not None and found.id in made:
            _note([SkippedRow(SOURCE, _row(draft), _REPEATED)], writer)
        elif found is not None:
            made[found.id] = found, draft
    checked = review(
        folder, [found for found, _ in made.values()], lambda row, why: _note([SkippedRow(SOURCE, row, why)], writer)
    )
    for name, why in (checked.left_out if checked else {}).items():
        _note([SkippedRow(SOURCE, f"{made[name][0].task} {name}", why)], writer)
    kept = [pair for name, pair in made.items() if checked is None or name not in checked.left_out]
    kept.sort(key=lambda pair: list(TASKS).index(pair[0].task))
    samples = tuple(found for found, _ in kept)
    for _, draft in kept:
        _put_pictures(draft, writer)
    _put_beside(writer, material.graphs, kept, to_review(samples, options.seed))
    return ConstructedSamples(samples, _report(material.graphs, kept, offered, checked, options))


def _drafts(
    folder: Path, material: TemplateData, writer: BuildWriter, options: BuildOptions, offered: Counter[str]
) -> Iterator[QuestionDraft]:
    """The drafts of all tasks; ``offered`` counts how many the set allows."""
    for task, drafts in _by_task(L1, material, options.seed):
        offered[task] = len(drafts)
        yield from drafts[: options.per_stratum]
    for task, drafts in _by_task(L2, material, options.seed):
        offered[task] = len(drafts)
        if options.writer is None:
            yield from drafts[: options.per_stratum]
            continue
        for outcome in written(drafts, options.per_stratum, material, options.writer):
            if isinstance(outcome, RejectedQuestion):
                writer.add_skipped(SOURCE, _row(outcome.draft), str(outcome))
            else:
                yield outcome
    for question in authored(folder, material):
        if isinstance(question, SkippedRow):
            _note([question], writer)
        else:
            offered[question.task] += 1
            yield question


def _by_task(
    templates: Mapping[str, Template], material: TemplateData, seed: int
) -> Iterator[tuple[str, list[QuestionDraft]]]:
    """Task by task what the templates give: a task's order depends on the seed and on nothing that another task does."""
    for task, template in templates.items():
        yield task, template(material, Random(f"{seed}/{task}"))


def _note(skipped: Iterable[SkippedRow], writer: BuildWriter) -> None:
    for each in skipped:
        writer.add_skipped(each.source, each.row, each.reason)


def _row(draft: QuestionDraft) -> str:
    pictures = ", ".join(f"{shot.product.id} {shot.picture.view}" for shot in draft.shots)
    return f"{draft.task} {draft.row_id}: {pictures}" if draft.row_id else f"{draft.task}: {pictures}"


def _sample(draft: QuestionDraft, writer: BuildWriter) -> CrossCheckSample | None:
    """The sample of a draft, by the same rules as a row of a user's own; None, and noted, where it breaks one."""
    fields = {
        "id": draft.row_id or None,
        "task": draft.task,
        "question": draft.question,
        "text": draft.text,
        "options": list(draft.options),
        "answer": draft.answer,
        "boxes": [[{"label": m.label, "box": list(m.box)} for m in shot.boxes()] for shot in draft.shots],
        "product": draft.about,
        "conflict_type": draft.conflict,
        "reasoning": draft.reasoning,
    }
    try:
        made = sample(fields, len(draft.shots), SOURCE)
        frames = [(replace(s.picture.media, marks=s.marks), (s.picture.width, s.picture.height)) for s in draft.shots]
        return with_frames(made, frames)
    except RowProblem as problem:
        writer.add_skipped(SOURCE, _row(draft), str(problem))
        return None


def _put_pictures(draft: QuestionDraft, writer: BuildWriter) -> None:
    for shot in draft.shots:
        media = shot.picture.media
        try:
            stored = writer.add_media(shot.picture.load(), media.suffix)
        except MediaError as error:
            raise SourceError(f"{error} It was there when the products were read; build again.") from error
        if stored != media:
            raise SourceError(
                f"the image {shot.picture.view!r} of {shot.product.id} changed while the products were read; build again."
            )


def _put_beside(
    writer: BuildWriter,
    known: Mapping[str, ClueGraph],
    kept: Sequence[tuple[CrossCheckSample, QuestionDraft]],
    chosen: Sequence[CrossCheckSample],
) -> None:
    """The files that people look at."""
    provenance = (
        {
            "sample": found.id,
            "task": found.task,
            "made": draft.made,
            "row": draft.row_id,
            "images": [f"{shot.product.id}/{shot.picture.view}" for shot in draft.shots],
            "facts": [fact.id for fact in draft.clues],
            "answer": found.answer,
        }
        for found, draft in kept
    )
    asked = (
        {
            "sample": found.id,
            "task": found.task,
            "question": found.question,
            "text": found.text,
            "options": list(found.options),
            "answer": found.answer,
            "images": [frame.name for frame in found.frames],
            "verdict": "",
            "level": "",
        }
        for found in chosen
    )
    writer.add_file("graphs.jsonl", _lines(graph.to_json() for graph in known.values()))
    writer.add_file("provenance.jsonl", _lines(provenance))
    writer.add_file("review.jsonl", _lines(asked))


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(canonical_json(row).encode("utf-8") + b"\n" for row in rows)


def _report(
    known: Mapping[str, ClueGraph],
    kept: Sequence[tuple[CrossCheckSample, QuestionDraft]],
    offered: Mapping[str, int],
    checked: Review | None,
    options: BuildOptions,
) -> dict[str, Any]:
    facts = [len(graph.facts) for graph in known.values()]
    compared = sum(len(graph.comparisons) for graph in known.values())
    differ = sum(len(graph.discrepancies) for graph in known.values())
    return {
        "products": len(known),
        "facts": sum(facts),
        "facts_a_product": round(sum(facts) / len(facts), 2),
        "comparisons": compared,
        # n/a where no attribute is told by two modalities.
        "consistent": round(1 - differ / compared, 4) if compared else None,
        "discrepancies": {name: sorted(g.discrepancies) for name, g in known.items() if g.discrepancies},
        "graphs_sha256": digest([graph.to_json() for graph in known.values()]),
        "tasks": {
            task: {
                "samples": sum(found.task == task for found, _ in kept),
                "offered": offered.get(task, 0),
                "shortfall": 0 if of.level == "L3" else max(0, options.per_stratum - offered.get(task, 0)),
                "answers": dict(sorted(Counter(found.answer for found, _ in kept if found.task == task).items())),
                "made": dict(sorted(Counter(draft.made for found, draft in kept if found.task == task).items())),
            }
            for task, of in TASKS.items()
        },
        "quality": dict(checked.report) if checked else None,
    }
