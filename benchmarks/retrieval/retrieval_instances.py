"""The instances of a log's question: its sources together, and each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.cmc_bench.cmc_instances import instance_with_parts
from benchmarks.cmc_bench.construction.cmc_candidates import conflict_type
from benchmarks.prompt_template import Prompts
from benchmarks.retrieval.retrieval_log_row import StoredRow
from benchmarks.retrieval.retrieval_prompts import parts
from benchmarks.source_agreement import Decision
from benchmarks.vocabulary import DOCUMENT, RIGHT_VALUE, TRUST, Instance, Media


def instance_rows(row: StoredRow, decision: Decision) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``instances.jsonl``: both sources, the images alone, the passages alone."""
    strata = {
        "type": conflict_type("chartqa", row.answer or decision.references["image"]),
        "source": row.source,
        "passages": str(len(row.passages)),
        "images": str(len(row.images)),
    }
    if row.group:
        strata["subject"] = row.group
    if row.document:
        strata[DOCUMENT] = row.document
    if row.trust:
        strata[TRUST] = row.trust
    right = {RIGHT_VALUE: row.answer} if row.answer else {}
    common = {"group": row.id, "question": row.question}
    images = [{"sha256": media.sha256, "suffix": media.suffix} for media in row.images]
    passages = list(row.passages)
    yield {
        **common,
        "id": f"{row.id}/{decision.condition}",
        "condition": decision.condition,
        "images": images,
        "passages": passages,
        "references": {**decision.references, **(right if decision.correct == "none" else {})},
        "strata": {**strata, "correct": decision.correct},
    }
    for source in ("image", "text"):
        is_right = decision.correct in ("both", source)
        yield {
            **common,
            "id": f"{row.id}/{source}-only",
            "condition": f"{source}-only",
            "images": images if source == "image" else [],
            "passages": passages if source == "text" else [],
            "references": {source: decision.references[source], **({} if is_right else right)},
            "strata": {**strata, "correct": source if is_right else "none"},
        }


def instance_from_row(row: Mapping[str, Any], prompt_set: Prompts) -> Instance:
    """Return the instance of a build's row with the prompt of ``prompt_set``."""
    images = [Media(image["sha256"], image["suffix"]) for image in row["images"]]
    return instance_with_parts(row, parts(prompt_set, row["question"], images, row["passages"]))
