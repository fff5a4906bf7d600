"""The authors' result files: rows of the data with a prediction, in files whose names and folders say what was asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.base import ImportedAnswer
from benchmarks.errors import SourceError
from benchmarks.mmkc_bench.constants import CONDITIONS, FACTS
from benchmarks.mmkc_bench.instances import instance
from benchmarks.mmkc_bench.options import read_options, stands_in
from benchmarks.mmkc_bench.sources.released_rows import examples
from benchmarks.rows.files import NOT_JSON, Fields, RowProblem, json_lines

NAMES = (
    "mcq_<model>[_<fact>]_ie.jsonl or _ee.jsonl (openqa_ for open questions), in output/ER, output/IS, output/people_knowledge "
    "or output/logo_knowledge, and in original/ for the answers without conflict"
)

_KINDS = {fact.name.casefold(): kind for kind, fact in FACTS.items()}
_NAME = re.compile(rf"(mcq|openqa)_(.+?)(?:_({'|'.join(_KINDS)}))?_(ie|ee)\.jsonl", re.IGNORECASE)
_FORMS = {"mcq": "mc", "openqa": "open"}
_FOLDERS = {"er": "ER", "is": "VS"}
_ORIGINAL = "original"
_LONGEST_PREDICTION = 1_000_000


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file: whose answers, of what kind of row, under which condition."""

    path: Path
    model: str
    kind: str
    condition: str


def result_files(path: Path) -> list[ResultFile]:
    """The result files of one model in a folder, or those that the published evaluation joins with one file.

    The answers without conflict come first. Raises SourceError where a name says nothing, or several models have answered.
    """
    if path.is_dir():
        found = [each for file in sorted(path.rglob("*.jsonl")) if (each := _read_name(file)) is not None]
        if not found:
            raise SourceError(f"{path} holds no result files of MMKC-Bench; expected {NAMES}.")
    else:
        one = _read_name(path)
        if one is None:
            raise SourceError(f"{path} is not named as a result file of MMKC-Bench; expected {NAMES}.")
        found = [each for file in dict.fromkeys((path, *_joined(path))) if (each := _read_name(file)) is not None]
    models = sorted({each.model for each in found})
    if len(models) > 1:
        raise SourceError(
            f"{path} holds answers of several models ({', '.join(models)[:200]}); name a file of one of them."
        )
    return sorted(found, key=lambda each: (CONDITIONS.index(each.condition), each.path))


def read_answers(path: Path, left_out: Callable[[str, str], None]) -> Iterator[ImportedAnswer]:
    """The answers in :func:`result_files`, as instances without their images; ``left_out`` is told what cannot be used.

    A row that is repeated in a file is an example of its own, and stands beside its repetition in the other files.
    """
    for result in result_files(path):
        seen: Counter[str] = Counter()
        for number, fields in json_lines(result.path):
            where = f"{result.path.name}:{number}"
            try:
                found = _imported(fields, result)
            except RowProblem as problem:
                left_out(where, str(problem))
                continue
            asked = found.instance
            seen[asked.id] += 1
            if seen[asked.id] > 1:
                group = f"{asked.group}~{seen[asked.id]}"
                asked = replace(asked, group=group, id=f"{group}/{asked.condition}")
            yield replace(found, instance=asked)


def _imported(fields: Any, result: ResultFile) -> ImportedAnswer:
    if not isinstance(fields, Mapping):
        raise RowProblem(NOT_JSON)
    prediction = fields.get("prediction", fields)
    if prediction is None:
        prediction = ""  # the model gave none
    if not isinstance(prediction, str):
        raise RowProblem("the row has no prediction")
    if len(prediction) > _LONGEST_PREDICTION:
        raise RowProblem(f"the prediction is longer than {_LONGEST_PREDICTION} characters")
    (made,) = examples(_as_released(fields), (result.kind,))
    if isinstance(made, RowProblem):
        raise made
    form = result.condition.rpartition("-")[2]
    if form == "mc" and not all(made.counter_letters):
        raise RowProblem("the row has no options")
    if form == "open" and not all(made.counter_answers):
        raise RowProblem("the row does not say the counter answers in words")
    return ImportedAnswer(instance(made, result.condition, "official"), prediction)


def _as_released(fields: Fields) -> Fields:
    """A row of the authors' first layout (``question_id``, lists of descriptions) under the names of the released one.

    It does not say which options agree with the wrong texts: those whose words alone stand in them.
    """
    lists = fields.get("incorrect_description")
    if "mis_description" in fields or not isinstance(lists, Sequence) or isinstance(lists, str):
        return fields
    wrong: dict[str, Any] = {}
    for each in lists:
        wrong |= each if isinstance(each, Mapping) else {}
    query = fields.get("mcq_query")
    options = read_options(query) if isinstance(query, str) else {}
    letters = {}
    for number in (1, 2):
        text = wrong.get(f"incorrect_description_{number}")
        fits = [letter for letter, words in options.items() if isinstance(text, str) and stands_in(words, text)]
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


def _read_name(file: Path) -> ResultFile | None:
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


def _joined(file: Path) -> list[Path]:
    """The files that the published evaluation joins with ``file``: of one name, in original/ and, _ie and _ee, in output/."""
    folder, root = file.parent.name, file.parent.parent.parent
    stem = file.name.rpartition("_")[0]
    names = [("original", "ee"), ("output", "ie"), ("output", "ee")]
    found = [root / place / folder / f"{stem}_{setting}.jsonl" for place, setting in names]
    return [each for each in found if each.is_file()]
