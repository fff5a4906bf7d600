"""A row of the released files, or of answers to them, as examples without images. All content may be hostile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from benchmarks.mmkc_bench.mmkc_constants import FACT_TYPES, LETTERS, LOGO_FACTS
from benchmarks.mmkc_bench.mmkc_example import Example, Pair
from benchmarks.mmkc_bench.mmkc_options import occurs_in, read_options
from benchmarks.mmkc_bench.sources.altered_text import altered_sentence, recover_true_text
from benchmarks.rows.reader_types import NOT_UNICODE, Fields, RowProblem, is_unicode
from benchmarks.values import compare

MAX_TEXT_LENGTH = 4_000
"""The most characters of a text or a question."""

NO_OPTIONS = "the row has neither options nor the three answers to make them of"
SAME_ANSWERS = "two of the three answers are the same"
SAME_TEXTS = "the two wrong texts are the same"
NO_LETTERS = "the row has options, but not the two letters that agree with the wrong texts"

MAX_TYPE_LENGTH = 60
"""The most characters of the name of a kind of entity."""

_CONTROL_FACTS = ("PT", "LT")
"""The facts whose evaluation also asks about a row's true text, as the published code runs it; of other types all do."""


def parse_examples(fields: Fields, kinds: tuple[str, ...]) -> Iterator[Example | RowProblem]:
    """Yield the example of a row for each of ``kinds``, or the problem with it."""
    for kind in kinds:
        try:
            yield _example(fields, kind)
        except RowProblem as problem:
            yield problem


def _example(fields: Fields, kind: str) -> Example:
    edits, names = _texts(fields, kind)
    wrong_texts = _wrong_texts(edits, names[0], kind)
    ending = f"_{FACT_TYPES[kind].name}" if kind in FACT_TYPES else ""
    open_query = _text(fields, f"open_query{ending}")
    mcq_query = _text(fields, f"mcq_query{ending}")
    if not open_query and not mcq_query:
        raise RowProblem(f"the row has no question ({kind})")
    options = read_options(mcq_query)
    letters = _counter_letters(fields, kind)
    if mcq_query and not all(letters):
        raise RowProblem(NO_LETTERS)
    counters = tuple(
        _text(edits, f"mis_answer_{number}").strip() or options.get(letter, "")
        for number, letter in enumerate(letters, 1)
    )
    right_text = _text(fields, names[1])
    own_letter, own_text = _true_answer(fields, ending, options, letters, right_text)
    if not mcq_query and not (own_text and all(counters)):
        raise RowProblem(NO_OPTIONS)
    if all(counters) and _any_equal((*counters, *filter(None, (own_text,))), open_query or mcq_query):
        raise RowProblem(SAME_ANSWERS)
    right_text = right_text or _true_text(fields, kind)
    distractor_letter = _distractor_letter(letters, own_letter) if mcq_query else ""
    return Example(
        kind=kind,
        instance=_required(fields, "instance"),
        paths=_paths(fields),
        images=(),
        open_query=open_query,
        mcq_query=mcq_query,
        wrong=wrong_texts,
        right=right_text,
        own_answer=own_text,
        counter_answers=(counters[0], counters[1]),
        distractor=options.get(distractor_letter, ""),
        own_letter=own_letter,
        counter_letters=letters if mcq_query else ("", ""),
        distractor_letter=distractor_letter,
        sentences=altered_sentence(wrong_texts[0], right_text) if right_text and kind in FACT_TYPES else ("", ""),
        constructed_options=not mcq_query,
        control=kind not in FACT_TYPES or kind in _CONTROL_FACTS,
        entity_type=" ".join(_text(fields, "type").split())[:MAX_TYPE_LENGTH],
    )


def _wrong_texts(edits: Fields, prefix: str, kind: str) -> Pair:
    texts = (_text(edits, f"{prefix}1"), _text(edits, f"{prefix}2"))
    if not all(texts):
        raise RowProblem(f"the row lacks one of its two wrong texts ({kind})")
    if texts[0] == texts[1]:
        raise RowProblem(SAME_TEXTS)
    return texts


def _distractor_letter(letters: Pair, own_letter: str) -> str:
    """Return the letter that is neither a wrong text's nor the true answer's; "" if that is not clear."""
    others = [letter for letter in LETTERS if letter not in (*letters, own_letter)]
    return others[0] if own_letter and len(others) == 1 else ""


def _any_equal(answers: Sequence[str], question: str) -> bool:
    return any(_same(a, b, question) for a, b in combinations(answers, 2))


def _same(answer: str, other: str, question: str = "") -> bool:
    return compare(answer, other, question).verdict == "same"


def _texts(fields: Fields, kind: str) -> tuple[Mapping[str, Any], Pair]:
    """Return the field with a row's wrong texts, and the prefix of their names and the name of the true text."""
    if kind not in FACT_TYPES:
        texts, names = fields.get("mis_description"), ("incorrect_description_", "description")
    else:
        edits = fields.get("mis_knowledge")
        texts = edits.get(FACT_TYPES[kind].edits) if isinstance(edits, Mapping) else None
        names = ("mis_knowledge", "knowledge")
    if not isinstance(texts, Mapping):
        raise RowProblem(f"the row has no wrong texts ({kind})")
    return texts, names


def _true_text(fields: Fields, kind: str) -> str:
    """Return the true text of a row that has only its edits: the text that most of them yield when undone."""
    if kind not in FACT_TYPES:
        return ""
    undone = []
    for sibling, fact in FACT_TYPES.items():
        if (sibling in LOGO_FACTS) == (kind in LOGO_FACTS):
            own_text = _text(fields, f"open_groundtruth_{fact.name}") or _text(
                fields, f"open_groundtruth_{fact.name.lower()}"
            )
            try:
                edits, (name, _) = _texts(fields, sibling)
            except RowProblem:
                continue
            undone += [
                (_text(edits, f"{name}{n}"), _text(edits, f"mis_answer_{n}").strip(), own_text.strip()) for n in (1, 2)
            ]
    return recover_true_text(undone)


def _true_answer(
    fields: Fields, ending: str, options: Mapping[str, str], counters: Pair, right: str
) -> tuple[str, str]:
    """Return the letter and the words of the true answer, as far as the row or its true text reveals them."""
    truths = {}
    for name in ("mcq_groundtruth", "open_groundtruth"):
        truths[name] = (_text(fields, f"{name}{ending}") or _text(fields, f"{name}{ending.lower()}")).strip()
    letter, own_text = truths["mcq_groundtruth"], truths["open_groundtruth"]
    remaining = {option: words for option, words in options.items() if option not in counters}
    if letter not in remaining:
        fits = [
            option
            for option, words in remaining.items()
            if (_same(words, own_text) if own_text else occurs_in(words, right))
        ]
        letter = fits[0] if len(fits) == 1 else ""
    return letter, own_text or remaining.get(letter, "")


def _counter_letters(fields: Fields, kind: str) -> Pair:
    ending = f"_{FACT_TYPES[kind].name}_" if kind in FACT_TYPES else ""
    first, second = (
        (_text(fields, f"mcq_disanswer{ending}{n}") or _text(fields, f"mcq_dis_answer{ending}{n}")).strip().upper()
        for n in (1, 2)
    )
    return (first, second) if first in LETTERS and second in LETTERS and first != second else ("", "")


def _paths(fields: Fields) -> tuple[str, ...]:
    paths = fields.get("image_path")
    if isinstance(paths, list) and len(paths) == 3 and all(isinstance(path, str) and path.strip() for path in paths):
        return tuple(paths)
    first = _text(fields, "image_path_first")
    if not first:
        raise RowProblem("the row does not name its three images")
    return (first,)


def _required(fields: Fields, name: str) -> str:
    value = _text(fields, name)
    if not value:
        raise RowProblem(f"the row has no {name}")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    """Return a field's text unchanged, or "" if it is missing or blank. Raises RowProblem if it cannot be used."""
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        return ""
    if len(value) > MAX_TEXT_LENGTH:
        raise RowProblem(f"a text is longer than {MAX_TEXT_LENGTH} characters")
    if not is_unicode(value):
        raise RowProblem(NOT_UNICODE)
    return value
