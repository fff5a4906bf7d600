"""The authors' result files: rows of the data with a prediction, in files named after the condition."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.base import ImportedAnswer
from benchmarks.errors import SourceError
from benchmarks.mmkc_bench.mmkc_constants import CONDITIONS, FACT_TYPES
from benchmarks.mmkc_bench.mmkc_instances import instance
from benchmarks.mmkc_bench.mmkc_options import occurs_in, read_options
from benchmarks.mmkc_bench.sources.mmkc_released_rows import parse_examples
from benchmarks.rows.files import NOT_JSON
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import Fields, RowProblem
from benchmarks.untrusted.finder_files import is_finder_file

EXPECTED_NAMES = (
    "mcq_<model>[_<fact>]_ie.jsonl or _ee.jsonl (openqa_ for open questions), in output/ER, output/IS, output/people_knowledge "
    "or output/logo_knowledge, and in original/ for the answers without conflict"
)

_KINDS = {fact.name.casefold(): kind for kind, fact in FACT_TYPES.items()}
_NAME = re.compile(rf"(mcq|openqa)_(.+?)(?:_({'|'.join(_KINDS)}))?_(ie|ee)\.jsonl", re.IGNORECASE)
_FORMS = {"mcq": "mc", "openqa": "open"}
_FOLDERS = {"er": "ER", "is": "VS"}
_ORIGINAL = "original"
_LONGEST_PREDICTION = 1_000_000


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file: its model, the type of its rows, and their condition."""

    path: Path
    model: str
    kind: str
    condition: str


def result_files(path: Path) -> list[ResultFile]:
    """Return the result files of one model in a folder, or those that the published evaluation joins with one file.

    Answers without conflict come first. Raises SourceError if a name cannot be parsed, or if there are several models.
    """
    if path.is_dir():
        files = (f for f in sorted(path.rglob("*.jsonl")) if not any(map(is_finder_file, f.relative_to(path).parts)))
        results = [result for file in files if (result := _parse_file_name(file)) is not None]
        if not results:
            raise SourceError(f"{path} holds no result files of MMKC-Bench; expected {EXPECTED_NAMES}.")
    else:
        result = _parse_file_name(path)
        if result is None:
            raise SourceError(f"{path} does not have the name of an MMKC-Bench result file; expected {EXPECTED_NAMES}.")
        results = [
            result
            for file in dict.fromkeys((path, *_companion_files(path)))
            if (result := _parse_file_name(file)) is not None
        ]
    models = sorted({result.model for result in results})
    if len(models) > 1:
        raise SourceError(
            f"{path} holds answers from several models ({', '.join(models)[:200]}); name a file of one of them."
        )
    return sorted(results, key=lambda result: (CONDITIONS.index(result.condition), result.path))


def read_answers(path: Path, left_out: Callable[[str, str], None]) -> Iterator[ImportedAnswer]:
    """Yield the answers in :func:`result_files`, as instances without images; ``left_out`` receives the unusable rows.

    A row repeated in a file is an example of its own, paired with the same repetition in the other files.
    """
    for result in result_files(path):
        repeats: Counter[str] = Counter()
        for number, fields in read_json_lines(result.path):
            where = f"{result.path.name}:{number}"
            try:
                answer = _import_row(fields, result)
            except RowProblem as problem:
                left_out(where, str(problem))
                continue
            instance = answer.instance
            repeats[instance.id] += 1
            if repeats[instance.id] > 1:
                group = f"{instance.group}~{repeats[instance.id]}"
                instance = replace(instance, group=group, id=f"{group}/{instance.condition}")
            yield replace(answer, instance=instance)


def _import_row(fields: Any, result: ResultFile) -> ImportedAnswer:
    if not isinstance(fields, Mapping):
        raise RowProblem(NOT_JSON)
    prediction = fields.get("prediction", fields)
    if prediction is None:
        prediction = ""  # the model gave none
    if not isinstance(prediction, str):
        raise RowProblem("the row has no prediction")
    if len(prediction) > _LONGEST_PREDICTION:
        raise RowProblem(f"the prediction is longer than {_LONGEST_PREDICTION} characters")
    (example,) = parse_examples(_as_released(fields), (result.kind,))
    if isinstance(example, RowProblem):
        raise example
    form = result.condition.rpartition("-")[2]
    if form == "mc" and not all(example.counter_letters):
        raise RowProblem("the row has no options")
    if form == "open" and not all(example.counter_answers):
        raise RowProblem("the row does not say the counter answers in words")
    return ImportedAnswer(instance(example, result.condition, "official"), prediction)


def _as_released(fields: Fields) -> Fields:
    """Return a row of the authors' first layout (``question_id``, lists of descriptions) in the released layout.

    The first layout does not say which options agree with the wrong texts: an option agrees if only its words occur
    there.
    """
    lists = fields.get("incorrect_description")
    if "mis_description" in fields or not isinstance(lists, Sequence) or isinstance(lists, str):
        return fields
    wrong: dict[str, Any] = {}
    for description in lists:
        wrong |= description if isinstance(description, Mapping) else {}
    query = fields.get("mcq_query")
    options = read_options(query) if isinstance(query, str) else {}
    letters = {}
    for number in (1, 2):
        text = wrong.get(f"incorrect_description_{number}")
        fits = [letter for letter, words in options.items() if isinstance(text, str) and occurs_in(words, text)]
        letters[f"mcq_disanswer{number}"] = fits[0] if len(fits) == 1 else None
    return {
        **letters,
        "instance": fields.get("question_id"),
        "image_path_first": fields.get("correct_img"),
        "open_query": fields.get("openqa_query"),
        "open_groundtruth": fields.get("openqa_ground_truth"),
        "mcq_query": query,
        "mcq_groundtruth": fields.get("mcq_ground_truth"),
        "description": fields.get("correct_description"),
        "mis_description": wrong,
    }


def _parse_file_name(file: Path) -> ResultFile | None:
    name = _NAME.fullmatch(file.name)
    if name is None:
        return None
    folder = file.parent.name.casefold()
    kind = _KINDS[name[3].casefold()] if name[3] else _FOLDERS.get(folder)
    if kind is None:
        return None
    if _ORIGINAL in (file.parent.name, file.parent.parent.name):
        setting = "original"
    else:
        setting = "context-memory" if name[4].casefold() == "ie" else "inter-context"
    return ResultFile(file, name[2], kind, f"{setting}-{_FORMS[name[1].casefold()]}")


def _companion_files(file: Path) -> list[Path]:
    """Return the files that the published evaluation joins with ``file``.

    They share its name, in original/ and, ending in _ie and _ee, in output/.
    """
    folder, root = file.parent.name, file.parent.parent.parent
    stem = file.name.rpartition("_")[0]
    names = [("original", "ee"), ("output", "ie"), ("output", "ee")]
    files = [root / place / folder / f"{stem}_{setting}.jsonl" for place, setting in names]
    return [candidate for candidate in files if candidate.is_file()]
