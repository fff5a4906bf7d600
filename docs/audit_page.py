"""The tables of the page "Answered without looking": audits of the published sets and of builds.

``.venv/bin/python docs/audit_page.py DATA [BUILD ...]`` writes them into ``docs/audit.md``. DATA holds the papers' published
files; each BUILD is a folder that ``rashomon build`` wrote. What is not there is left out.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app.report.tables.table_rendering import to_markdown
from benchmarks.audit import Audit, BlindOption, BlindQuestion, audit
from benchmarks.audit.audit_tables import summary
from benchmarks.audit.blind_question import YES_NO
from benchmarks.audit.blind_questions import Questions
from benchmarks.audit.blind_rule_fitting import fitted_rules
from benchmarks.audit.blind_rules import rules
from benchmarks.build import Build
from benchmarks.build_audit import audit_build, blind_questions
from benchmarks.registry import get_benchmark
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.stats.clusters import Clusters
from benchmarks.vocabulary import Estimate, Table, digest

PAGE = Path(__file__).with_name("audit.md")
_MARK = "<!-- tables -->\n"
_RULES = ("modality", "length", "model of the question", "model of the options")


def contra4_test(data: Path) -> Table:
    """Return the shares of rules that are fitted on Contra4's validation set and tested on its test set.

    Of equally good scenes, such as two sounds, the first is chosen.
    """
    items: list[BlindQuestion] = []
    fold: list[int] = []
    for split, name in enumerate(("val.json", "test.json")):
        for row in _json(data / "contra4" / name):
            options = [
                BlindOption(scene["caption"], modality)
                for scene, modality in zip(row["examples"], row["modalities"], strict=True)
            ]
            right = "ABCD".index(row["answer"][-1])
            items.append(
                BlindQuestion(str(len(items)), "", len(items), row["question"], tuple(options), frozenset([right]))
            )
            fold.append(split)
    questions = Questions(items, Clusters.of(np.arange(len(items))), np.array(fold))
    is_test = questions.fold == 1
    masks = [is_test & (questions.sizes == size) for size in (2, 3, 4)] + [is_test]
    place = np.arange(len(questions.options)) - questions.starts[questions.question]
    rows = []
    for rule in fitted_rules(rules(questions, None), questions):
        if rule.name in _RULES:
            scores = questions.scores(rule.values([1]) - 1e-6 * place)
            rows.append((f"{rule.name} ({rule.looks_at})", tuple(_mean(questions, mask, scores) for mask in masks)))
    chance = tuple(Estimate(float(questions.chance[mask].mean())) for mask in masks)
    return Table(
        "contra4",
        "Contra4: rules of the validation set, on the 2,335 rows of the test set",
        ("2 scenes", "3 scenes", "4 scenes", "all"),
        (("chance", chance), *rows),
    )


def _mean(questions: Questions, mask: Any, scores: Any) -> Estimate:
    return questions.clusters.at(mask).mean(scores[mask])


def sugar_crepe(data: Path) -> Iterator[BlindQuestion]:
    """Yield the choice between the caption and the negative caption of each row of SugarCrepe."""
    for file in sorted((data / "clash" / "sugar_crepe").glob("*.json")):
        for number, row in _json(file).items():
            texts = sorted(
                (row["caption"], row["negative_caption"]), key=lambda text: hash_order(file.stem, number, text)
            )
            yield BlindQuestion(
                f"{file.stem}/{number}",
                file.stem,
                row["filename"],
                "",
                tuple(map(BlindOption, texts)),
                frozenset([texts.index(row["caption"])]),
            )


def hash_order(*values: str) -> str:
    """Return a key that sorts values in an order that says nothing of them."""
    return digest(values)


def clash_samples(data: Path) -> Iterator[BlindQuestion]:
    """Yield, for each published sample of CLASH, the choice between the image's answer, the text's and the irrelevant one."""
    samples = _json(data / "clash" / "official" / "synthetic_captions_test_filtered.json")["samples"]
    for number, row in enumerate(samples):
        answers = row["answers"]
        texts = sorted(set(answers.values()), key=lambda text: hash_order(str(number), text))
        yield BlindQuestion(
            str(number),
            f"which is the image's answer ({row['change_type']})",
            row["image_id"],
            row["question"],
            tuple(map(BlindOption, texts)),
            frozenset([texts.index(answers["image_only"])]),
            {"category": str(row.get("category", ""))},
        )
    for number, row in enumerate(samples):
        texts = sorted(
            (row["original_caption"], row["conflicting_caption"]), key=lambda text: hash_order(str(number), text)
        )
        yield BlindQuestion(
            f"caption {number}",
            f"which caption is the original ({row['change_type']})",
            row["image_id"],
            row["question"],
            tuple(map(BlindOption, texts)),
            frozenset([texts.index(row["original_caption"])]),
        )


def pope(data: Path) -> Iterator[BlindQuestion]:
    """Yield the questions of POPE."""
    for setting in ("random", "popular", "adversarial"):
        for number, row in read_json_lines(data / "clash" / "pope" / f"coco_pope_{setting}.json"):
            right = [answer.casefold() for answer in YES_NO].index(row["label"])
            yield BlindQuestion(
                f"{setting}/{number}",
                setting,
                row["image"],
                row["text"],
                tuple(map(BlindOption, YES_NO)),
                frozenset([right]),
            )


def mmmu_pro(data: Path) -> Iterator[BlindQuestion]:
    """Yield the questions of MMMU-Pro, by their number of options."""
    for _, row in read_json_lines(data / "cmc_bench" / "mmmu" / "mmmu_pro_1730_rows_text_only.jsonl"):
        options = ast.literal_eval(row["options"])
        right = "ABCDEFGHIJ".find(row["answer"])
        if 0 <= right < len(options):
            yield BlindQuestion(
                row["id"],
                "10 options" if len(options) == 10 else "fewer options",
                row["id"],
                row["question"],
                tuple(map(BlindOption, options)),
                frozenset([right]),
                {"subject": re.sub(r"^[a-z]+_|_[0-9]+$", "", row["id"])},
            )


def mmkc(data: Path) -> Iterator[BlindQuestion]:
    """Yield the facts of MMKC-Bench as the choice between the true answer and the two of its edited texts."""
    names = {"Temporal_error": "temporal", "location_error": "location", "Career_error": "Career"}
    names |= {"time_error": "time", "creator_error": "creator", "content_error": "content"}
    for file in ("people_knowledge", "logo_knowledge"):
        for row in _json(data / "mmkc" / f"{file}.reconstructed.json"):
            for edits, name in names.items():
                if edits not in row["mis_knowledge"]:
                    continue
                truth = str(row[f"open_groundtruth_{name}"])
                wrong = [str(row["mis_knowledge"][edits][f"mis_answer_{place}"]) for place in (1, 2)]
                texts = sorted({truth, *wrong}, key=lambda text: hash_order(row["instance"], name, text))
                yield BlindQuestion(
                    f"{row['instance']}/{name}",
                    f"{file.partition('_')[0]}, {name.lower()}",
                    row["instance"],
                    row[f"open_query_{name}"],
                    tuple(map(BlindOption, texts)),
                    frozenset([texts.index(truth)]),
                )


def clash_predictions(data: Path) -> Iterator[BlindQuestion]:
    """Yield the multiple choices of CLASH's published predictions."""
    file = data / "clash" / "official" / "multiple_choice__gemini-2.5-flash-lite_predictions.json"
    benchmark = get_benchmark("clash")
    instances = (answer.instance for answer in benchmark.read_answers(file, "published", lambda row, reason: None))
    yield from blind_questions(benchmark, instances)[0]


PUBLISHED: Mapping[str, Callable[[Path], Iterator[BlindQuestion]]] = {
    "CLASH's published samples: which answer, and which caption, is right": clash_samples,
    "CLASH's published multiple choices, as they were predicted": clash_predictions,
    "SugarCrepe, from which CLASH can be built: which caption is right": sugar_crepe,
    "POPE": pope,
    "MMKC-Bench's facts, as reconstructed from its published results: which value is true": mmkc,
    "MMMU-Pro, whose questions CMC-Bench can use: which option is right": mmmu_pro,
}
"""The published sets by the titles of their tables."""


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _table(title: str, result: Audit) -> str:
    """Return the audit's table in Markdown, without its notes, which the page explains."""
    table = summary(result)
    return to_markdown(Table(table.name, title, table.columns, table.rows)).strip()


def sections(data: Path, builds: list[Path]) -> Iterator[str]:
    """Yield the tables in Markdown."""
    if (data / "contra4").is_dir():
        yield to_markdown(contra4_test(data)).strip()
    for title, read in PUBLISHED.items():
        try:
            questions = list(read(data))
        except FileNotFoundError:
            continue
        yield _table(title, audit(questions))
    for path in builds:
        build = Build.open(path)
        yield _table(f"{build.benchmark}, built of {path.name}", audit_build(build, get_benchmark(build.benchmark)))


if __name__ == "__main__":
    head = PAGE.read_text("utf-8").partition(_MARK)[0]
    tables = "\n\n".join(sections(Path(sys.argv[1]), [*map(Path, sys.argv[2:])]))
    PAGE.write_text(f"{head}{_MARK}\n{tables}\n", "utf-8")
