"""Chart conflicts: ChartQA's charts against reports that contradict them ("Which Source Wins?", arXiv 2608.17205)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.plain.plain_data_set import CONFLICT, PlainDataSet
from benchmarks.vocabulary import CLOSED_BOOK, Decoding

_ASK = "Respond with exactly one line in the form '#### <answer>'. After ####, "
_BOTH = f"""\
{{image}}Question: {{question}}

You are given two conflicting evidence sources. Neither source is privileged.
SOURCES

Select exactly one source-supported answer, even though the sources disagree. Do not abstain, hedge, combine the answers, or \
list alternatives. {_ASK}copy only the bare answer value (for example, 3.89 or 12.8%); do not include words, source names, or an \
explanation."""
_ALONE = f"Question: {{question}}\n\nEVIDENCE\n\n{_ASK}give only the answer value; do not explain your reasoning."
_CHART = "Source {} is the attached chart."
_REPORT = "Source {} is the textual report below:\n{{text}}"


class ChartConflicts(PlainDataSet):
    """229 questions about a chart, each with a report that states another value."""

    name = "chart-conflicts"
    title = "Chart conflicts: a chart and a report that state different values"
    in_plain_words = (
        "A model gets a chart, a report that contradicts it, and a question. It is told that neither source is privileged; the "
        "paper measures which of the two it follows."
    )
    paper = "Which Source Wins? (arXiv 2608.17205), ChartQA-Conflict"
    paper_rows = "the answers to clean items that the paper's artifact releases (its printed tables could not be seen)"
    paper_judge = "its strict match of the text behind ####"
    paper_prompts = "paper"
    paper_decoding = "greedy, at most 128 new tokens"
    decoding = Decoding(max_tokens=128)
    hub_id = "vlm-modality-research/chartqa-evidence-conflict-table-v1"
    hub_files = ("data/test-",)
    amount = "the 229 test rows with their charts (parquet), or the artifact's items.jsonl with images/"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("question",),
        "image": ("chart_image", "image", "image_file"),
        "image_answer": ("chart_answer",),
        "text": ("text_report",),
        "text_answer": ("report_answer",),
        "type": ("counterfactual_strategy",),
    }
    optional_columns: Mapping[str, tuple[str, ...]] = {"chart_label": ("chart_source_label",)}
    types = (
        *("chart_value", "nearby_category_value", "rank_swap", "arithmetic_alternative"),
        *("unit_preserving_perturbation", "boolean_flip"),
    )
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {"Text preference": ("TEXT", ("IMAGE", "TEXT"))}
    prompt_sets: Mapping[str, str] = {"paper": "the neutral prompt of the paper's artifact, word for word (MIT)"}
    prompts: Mapping[str, Mapping[str, str]] = {
        "paper": {
            CONFLICT: _BOTH.replace("SOURCES", f"{_CHART.format('A')}\n{_REPORT.format('B')}"),
            "report first": _BOTH.replace("SOURCES", f"{_REPORT.format('A')}\n{_CHART.format('B')}"),
            "image-only": "{image}" + _ALONE.replace("EVIDENCE", "Use the attached chart as the only evidence source."),
            "text-only": _ALONE.replace("EVIDENCE", "Use the following report as the only evidence source:\n{text}"),
            CLOSED_BOOK: _ALONE.replace("EVIDENCE\n\n", ""),
        }
    }

    def template(self, prompt_set: str, row: Mapping[str, Any]) -> str:
        is_second = row["condition"] == CONFLICT and row["columns"].get("chart_label") == "B"
        return self.prompts[prompt_set]["report first" if is_second else row["condition"]]
