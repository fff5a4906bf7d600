"""MMMC: questions that assert what their image does not hold (arXiv 2507.07151)."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.plain.plain_declaration import CONFLICT
from benchmarks.plain.premise_data_set import CLEAN, LABELS, PremiseDataSet


class Mmmc(PremiseDataSet):
    """Pairs of a question whose premise the image contradicts, and one whose premise it does not."""

    name = "mmmc"
    title = "MMMC: questions that assert what their image does not hold"
    in_plain_words = (
        "A question takes for granted an object, an attribute or a relation that its image does not show. A good model says so; "
        "a bad one answers as if it saw it."
    )
    paper = "Robust Multimodal Large Language Models Against Modality Conflict (arXiv 2507.07151), MMMC"
    paper_rows = "its own test rows; the judge's prompt and the table could not be seen"
    paper_judge = "GPT-4o and Llama-3.3-70B, prompts not seen"
    hub_id = "MM-Hallu/MMMC"
    hub_files = ("data/test-", "test-")
    amount = "the 4,000 test rows with their images"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("question",),
        "image": ("image",),
        "image_answer": ("answer",),
        "type": ("conflict_type",),
    }
    optional_columns: Mapping[str, tuple[str, ...]] = {
        "group": ("image_id",),
        "component": ("key_component",),
    }
    types = ("object", "attribute", "relation")
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {"Hallu-Rate": ("NEITHER", LABELS)}
    prompt_sets: Mapping[str, str] = {
        "plain": "the image, then the question as published",
        "check": "asks first to check the image (the paper's prompt engineering, as a summary of it has it)",
    }
    prompts: Mapping[str, Mapping[str, str]] = {
        "plain": dict.fromkeys((CONFLICT, CLEAN), "{image}{question}"),
        "check": dict.fromkeys(
            (CONFLICT, CLEAN),
            "{image}Please check if the image contains mentioned information and answer the question: {question}",
        ),
    }
