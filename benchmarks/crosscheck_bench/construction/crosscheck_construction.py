"""The construction of CrossCheck-Bench's samples from product folders (section "Hierarchical QA Generation").

L1 comes from templates, L2 from a text model under instructions (or from templates without one), and L3 from a file
that people write. Quality control applies the labels of two annotators. Besides the instances, the build holds
``graphs.jsonl``, the clue graph of every product; ``provenance.jsonl``, the origin of each sample and its facts; and
``review.jsonl``, a tenth of each task to be labelled. ``facts.csv`` lists facts that differ, for people to correct.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.crosscheck_bench.construction.clue_graph import build_graphs
from benchmarks.crosscheck_bench.construction.fact_corrections import FILE as FACTS
from benchmarks.crosscheck_bench.construction.fact_corrections import (
    correct,
    read_corrections,
    read_texts,
    sheet,
    unstated_facts,
)
from benchmarks.crosscheck_bench.construction.fact_extraction import extract, store_picture
from benchmarks.crosscheck_bench.construction.human_written_questions import read_authored_questions
from benchmarks.crosscheck_bench.construction.model_written_questions import RejectedQuestion, write_questions
from benchmarks.crosscheck_bench.construction.quality_control import Review, review, select_for_review
from benchmarks.crosscheck_bench.construction.question_drafts import QuestionDraft
from benchmarks.crosscheck_bench.construction.question_templates import (
    CATALOGUE,
    FIGURE_8_TEMPLATES,
    L1_TEMPLATES,
    L2_TEMPLATES,
    PRINTED_COUNT,
    template_of,
)
from benchmarks.crosscheck_bench.construction.template_data import Template, TemplateData
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample, parse_sample, with_frames
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import PRODUCTS_FIGURE_8
from benchmarks.crosscheck_bench.sources.product_folders import read_catalogue
from benchmarks.errors import SpecError
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.vocabulary import canonical_json, digest

_REPEATED = "repeated: another question is the same"


@dataclass(frozen=True, slots=True)
class ConstructedSamples:
    """The samples of a product folder in order, and their report and that of the extraction for the manifest."""

    samples: tuple[CrossCheckSample, ...]
    report: Mapping[str, Any]
    extraction: Mapping[str, Any] | None = None


def construct(source: str, folder: Path, writer: BuildWriter, options: BuildOptions) -> ConstructedSamples:
    """Return the samples of the products in ``folder``, in Table 1's order of tasks, and add their pictures to the build.

    ``source`` is the name of the construction, ``options.per_stratum`` the target number of samples per task for L1 and
    L2, ``options.writer`` the model that writes L2's questions, and ``options.extractor`` the one that reads facts. Skipped
    items are recorded with ``writer.add_skipped``. Raises SpecError for a target below 1, SourceError if the folder is not
    a product folder or changes during the build, and RashomonError if a model becomes unavailable; the next build reuses
    the replies already received.
    """
    if options.per_stratum < 1:
        raise SpecError(f"the target number of samples per task is {options.per_stratum}; it must be at least 1.")
    catalogue = read_catalogue(folder)
    without_boxes = frozenset((p.id, shot.view) for p in catalogue.products for shot in p.pictures if not shot.visible)
    corrected = correct(catalogue, read_corrections(folder))
    catalogue, corrections = corrected.catalogue, corrected.corrections
    texts, unstated = read_texts(catalogue, corrections), unstated_facts(corrections)
    graphs, extraction = build_graphs(catalogue, texts, unstated), None
    if options.extractor is not None:
        extraction = extract(catalogue, graphs, without_boxes, corrections, options.extractor, writer, options.seed)
        catalogue = extraction.catalogue
        places = texts.keys() | extraction.texts.keys()
        texts = {place: {**extraction.texts.get(place, {}), **texts.get(place, {})} for place in places}
        graphs = build_graphs(catalogue, texts, unstated)
    data = TemplateData(catalogue, graphs, source)
    _record_skipped(catalogue.skipped, source, writer)
    offered: Counter[str] = Counter()
    by_id = _samples_by_id(_drafts(folder, data, writer, options, offered), source, writer)
    quality = review(
        folder,
        [constructed for constructed, _ in by_id.values()],
        lambda row, why: writer.add_skipped(source, row, why),
    )
    left_out = quality.left_out if quality else {}
    for name, why in left_out.items():
        writer.add_skipped(source, f"{by_id[name][0].task} {name}", why)
    accepted_pairs = _by_task_order([pair for name, pair in by_id.items() if name not in left_out])
    samples = tuple(constructed for constructed, _ in accepted_pairs)
    for _, draft in accepted_pairs:
        _store_pictures(draft, writer)
    _write_companion_files(writer, data, accepted_pairs, select_for_review(samples, options.seed))
    if facts := sheet(extraction.rows if extraction else (), graphs, corrected):
        writer.add_sheet(FACTS, facts)
    report = _report(data, accepted_pairs, offered, quality, options)
    return ConstructedSamples(samples, report, extraction.summary if extraction else None)


def _samples_by_id(
    drafts: Iterable[QuestionDraft], source: str, writer: BuildWriter
) -> dict[str, tuple[CrossCheckSample, QuestionDraft]]:
    """Return the samples that keep the rules, each once, with their drafts."""
    by_id: dict[str, tuple[CrossCheckSample, QuestionDraft]] = {}
    for draft in drafts:
        constructed = _build_sample(draft, source, writer)
        if constructed is not None and constructed.id in by_id:
            writer.add_skipped(source, _describe(draft), _REPEATED)
        elif constructed is not None:
            by_id[constructed.id] = constructed, draft
    return by_id


def _by_task_order(pairs: list[tuple[CrossCheckSample, QuestionDraft]]) -> list[tuple[CrossCheckSample, QuestionDraft]]:
    return sorted(pairs, key=lambda pair: list(TASKS).index(pair[0].task))


def _drafts(
    folder: Path, data: TemplateData, writer: BuildWriter, options: BuildOptions, offered: Counter[str]
) -> Iterator[QuestionDraft]:
    """Yield the drafts of all tasks; ``offered`` counts how many the set allows."""
    for task, drafts in _by_task(L1_TEMPLATES, data, options.seed):
        offered[task] = len(drafts)
        yield from drafts[: options.per_stratum]
    for task, drafts in _by_task(L2_TEMPLATES, data, options.seed):
        offered[task] = len(drafts)
        if options.writer is None:
            yield from drafts[: options.per_stratum]
            continue
        for outcome in write_questions(drafts, options.per_stratum, data, options.writer):
            if isinstance(outcome, RejectedQuestion):
                writer.add_skipped(data.source, _describe(outcome.draft), str(outcome))
            else:
                yield outcome
    for kind, reason in data.left_out.items():
        writer.add_skipped(data.source, kind, reason)
    for question in read_authored_questions(folder, data):
        if isinstance(question, SkippedRow):
            _record_skipped([question], data.source, writer)
        else:
            offered[question.task] += 1
            yield question


def _by_task(
    templates: Mapping[str, Template], data: TemplateData, seed: int
) -> Iterator[tuple[str, list[QuestionDraft]]]:
    """Yield the drafts of each task; their order depends on the seed and the task only."""
    for task, template in templates.items():
        chosen = FIGURE_8_TEMPLATES.get(task, template) if data.source == PRODUCTS_FIGURE_8 else template
        yield task, chosen(data, Random(f"{seed}/{task}"))


def _record_skipped(skipped: Iterable[SkippedRow], source: str, writer: BuildWriter) -> None:
    for row in skipped:
        writer.add_skipped(source, row.row, row.reason)


def _describe(draft: QuestionDraft) -> str:
    pictures = ", ".join(f"{shot.product.id} {shot.picture.view}" for shot in draft.shots)
    return f"{draft.task} {draft.row_id}: {pictures}" if draft.row_id else f"{draft.task}: {pictures}"


def _build_sample(draft: QuestionDraft, source: str, writer: BuildWriter) -> CrossCheckSample | None:
    """Return the sample of a draft, checked like a row of a user's own, or None if it breaks a rule."""
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
        unframed = parse_sample(fields, len(draft.shots), source)
        frames = [(replace(s.picture.media, marks=s.marks), (s.picture.width, s.picture.height)) for s in draft.shots]
        return with_frames(unframed, frames)
    except RowProblem as problem:
        writer.add_skipped(source, _describe(draft), str(problem))
        return None


def _store_pictures(draft: QuestionDraft, writer: BuildWriter) -> None:
    for shot in draft.shots:
        store_picture(shot.product, shot.picture, writer)


def _write_companion_files(
    writer: BuildWriter,
    data: TemplateData,
    accepted: Sequence[tuple[CrossCheckSample, QuestionDraft]],
    chosen: Sequence[CrossCheckSample],
) -> None:
    """Write the files for people to look at."""
    provenance = (
        {
            "sample": sample.id,
            "task": sample.task,
            "made": draft.origin,
            "row": draft.row_id,
            "wording": draft.wording,
            "perturbation": draft.conflict,
            "images": [f"{shot.product.id}/{shot.picture.view}" for shot in draft.shots],
            "facts": [fact.id for fact in draft.clues],
            "answer": sample.answer,
        }
        for sample, draft in accepted
    )
    review_rows = (
        {
            "sample": sample.id,
            "task": sample.task,
            "question": sample.question,
            "text": sample.text,
            "options": list(sample.options),
            "answer": sample.answer,
            "images": [frame.name for frame in sample.frames],
            "verdict": "",
            "level": "",
        }
        for sample in chosen
    )
    writer.add_file("graphs.jsonl", _lines(data.graph_rows()))
    writer.add_file("provenance.jsonl", _lines(provenance))
    writer.add_sheet("review.jsonl", _lines(review_rows))


def _template_counts(accepted: Sequence[tuple[CrossCheckSample, QuestionDraft]]) -> dict[str, Any]:
    counts = Counter(template_of(draft) for _, draft in accepted)
    used = {level: sum(t.level == level and counts[t] > 0 for t in CATALOGUE) for level in ("L1", "L2")}
    return {
        "L1_in_the_paper": PRINTED_COUNT,
        **{level: {"determined": sum(t.level == level for t in CATALOGUE), "used": used[level]} for level in used},
        "samples": [
            {"task": t.task, "wording": t.wording, "perturbation": t.perturbation, "samples": counts[t]}
            for t in CATALOGUE
        ],
    }


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(canonical_json(row).encode("utf-8") + b"\n" for row in rows)


def _report(
    data: TemplateData,
    accepted: Sequence[tuple[CrossCheckSample, QuestionDraft]],
    offered: Mapping[str, int],
    quality: Review | None,
    options: BuildOptions,
) -> dict[str, Any]:
    graphs, rows = data.graphs, data.graph_rows()
    facts = [len(graph.facts) for graph in graphs.values()]
    compared = sum(len(graph.comparisons) for graph in graphs.values())
    n_discrepancies = sum(len(graph.discrepancies) for graph in graphs.values())
    return {
        "products": len(graphs),
        "facts": sum(len(row["facts"]) for row in rows),
        "facts_a_product": round(sum(facts) / len(facts), 2),
        "comparisons": compared,
        # n/a if no attribute is stated by two modalities.
        "consistent": round(1 - n_discrepancies / compared, 4) if compared else None,
        "discrepancies": {name: sorted(g.discrepancies) for name, g in graphs.items() if g.discrepancies},
        "graphs_sha256": digest(rows),
        "tasks": {
            task: {
                "samples": sum(sample.task == task for sample, _ in accepted),
                "offered": offered.get(task, 0),
                "shortfall": 0 if definition.level == "L3" else max(0, options.per_stratum - offered.get(task, 0)),
                "answers": dict(
                    sorted(Counter(sample.answer for sample, _ in accepted if sample.task == task).items())
                ),
                "made": dict(
                    sorted(Counter(draft.origin for sample, draft in accepted if sample.task == task).items())
                ),
            }
            for task, definition in TASKS.items()
        },
        "templates": _template_counts(accepted),
        "quality": dict(quality.report) if quality else None,
    }
