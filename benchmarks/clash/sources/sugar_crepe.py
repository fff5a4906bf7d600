"""SugarCrepe's hard negatives (Hsieh et al., 2023) as samples; questions are made by rule, without a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clash.clash_categories import join_categories, shared_categories
from benchmarks.clash.sources.clash_source_row import LONGEST_SENTENCE, ClashSourceRow, image_folders, parse_sample
from benchmarks.rows.files import RawRow, SkippedRow, image_loader
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path, layout_error
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file
from benchmarks.values import compare
from benchmarks.vocabulary import digest

FILES = {"replace_obj.json": "object", "replace_att.json": "attribute"}
"""The files that are read and the kind of their change; swaps change two elements, additions none."""

LAYOUT = f"a folder with {' or '.join(FILES)} and COCO's val2017 images (in it, in val2017/ or in a folder beside it)"

QUESTION = 'Which word or words belong in the gap: "{caption}"'

_NAME = "sugar-crepe"
_FILE_NAME = re.compile(r"[0-9]{12}\.jpg")
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_ARTICLES = frozenset({"a", "an", "the"})
_LONGEST_CHANGE = 3


@dataclass(frozen=True, slots=True)
class CaptionChange:
    """A change between two captions: both wordings, the caption with the other words, and the caption with a gap."""

    original: str
    conflicting: str
    caption: str
    gapped: str


@dataclass(frozen=True, slots=True)
class _Draft:
    where: str
    image: str
    caption: str
    kind: str
    change: CaptionChange
    group: str


def read(place: str, seed: int) -> Iterator[ClashSourceRow | SkippedRow]:
    """Yield the samples; ``seed`` decides the distractors. Raises SourceError."""
    root = existing_path(_NAME, place, LAYOUT)
    paths = [root] if root.is_file() else [root / name for name in FILES if (root / name).is_file()]
    if not paths or paths[0].name not in FILES:
        raise layout_error(_NAME, root, LAYOUT)
    folder = paths[0].parent
    places = tuple(dict.fromkeys((*image_folders(folder), *image_folders(folder.parent))))
    drafts = [draft for file in paths for draft in _drafts(file)]
    donors: defaultdict[str, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        if isinstance(draft, _Draft):
            donors[draft.group].append(draft)
    uses: Counter[str] = Counter()
    for draft in drafts:
        yield draft if isinstance(draft, SkippedRow) else _found(draft, donors[draft.group], uses, places, seed)


def find_change(caption: str, negative: str) -> CaptionChange:
    """Return the one contiguous change of 1 to 3 words between two captions. Raises RowProblem for any other change.

    Articles before the changed words are not among them; where they differ the gap says ``a/an``. Letter case and a full
    stop at the end do not count as changes, and the conflicting caption has them as ``caption`` has.
    """
    ours, theirs = (list(_TOKEN.finditer(text)) for text in (caption.rstrip(" ."), negative.rstrip(" .")))
    our_words, their_words = ([token[0].casefold() for token in tokens] for tokens in (ours, theirs))
    start = _common(our_words, their_words)
    end = min(_common(our_words[::-1], their_words[::-1]), len(our_words) - start, len(their_words) - start)
    spans = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    first, second = (span[1:] if span and span[0][0].casefold() in _ARTICLES else span for span in spans)
    if not (first and second):
        raise RowProblem("no word is replaced, words are added or removed")
    if max(len(first), len(second)) > _LONGEST_CHANGE:
        raise RowProblem(f"more than {_LONGEST_CHANGE} words change, or they are not beside each other")
    if set(our_words[start : len(our_words) - end]) & set(their_words[start : len(their_words) - end]):
        raise RowProblem("the changed words are not beside each other")
    if not all(token[0][0].isalnum() for token in (*first, *second)):
        raise RowProblem("punctuation changes too")
    before, after = caption[: spans[0][0].start()], caption[first[-1].end() :]
    inserted = negative[spans[1][0].start() : second[-1].end()]
    both_have_articles = len(spans[0]) > len(first) and len(spans[1]) > len(second)
    return CaptionChange(
        original=_words(caption, first),
        conflicting=_words(negative, second),
        caption=f"{before}{inserted if before else inserted[:1].upper() + inserted[1:]}{after}",
        gapped=f"{before}{'a/an ____' if both_have_articles else '____'}{after}",
    )


def _drafts(file: Path) -> Iterator[_Draft | SkippedRow]:
    try:
        content = read_json_file(file, MAX_SOURCE_BYTES)
    except (OSError, OutsideJSONError):
        content = None
    if not isinstance(content, dict):
        raise layout_error(_NAME, file, LAYOUT)
    for key, fields in content.items():
        where = f"{file.name}:{str(key)[:40]}"
        try:
            yield _draft(where, fields, FILES[file.name])
        except RowProblem as problem:
            yield SkippedRow(_NAME, where, str(problem))


def _draft(where: str, fields: Any, kind: str) -> _Draft:
    if not isinstance(fields, Mapping):
        raise RowProblem("the row is not a JSON object")
    image, caption, negative = (fields.get(name) for name in ("filename", "caption", "negative_caption"))
    if not isinstance(image, str) or not _FILE_NAME.fullmatch(image):
        raise RowProblem("the row names no COCO image")
    if not isinstance(caption, str) or not isinstance(negative, str):
        raise RowProblem("the row lacks one of its two captions")
    if max(len(caption), len(negative)) > LONGEST_SENTENCE - len(QUESTION):
        raise RowProblem(f"a caption is longer than {LONGEST_SENTENCE - len(QUESTION)} characters")
    caption = caption.strip()
    caption_change = find_change(caption, negative.strip())
    group = (
        f"{kind}/{join_categories(shared_categories(kind, caption_change.original, caption_change.conflicting), kind)}"
    )
    return _Draft(where, image, caption, kind, caption_change, group)


def _found(
    draft: _Draft, donors: Sequence[_Draft], uses: Counter[str], places: tuple[Path, ...], seed: int
) -> ClashSourceRow | SkippedRow:
    fields = {
        "image_id": str(int(draft.image.removesuffix(".jpg"))),
        "original_caption": draft.caption,
        "conflicting_caption": draft.change.caption,
        "question": QUESTION.format(caption=draft.change.gapped),
        "change_type": draft.kind,
        "image_only": draft.change.original,
        "text_only": draft.change.conflicting,
        "changed_original": draft.change.original,
        "changed_conflicting": draft.change.conflicting,
    }
    try:
        fields["distractor"] = _distractor(draft, donors, uses, seed)
        loader = image_loader(RawRow(draft.where, {"image": draft.image}, places), "image")
        return ClashSourceRow(draft.where, parse_sample(fields, _NAME), loader)
    except RowProblem as problem:
        return SkippedRow(_NAME, draft.where, str(problem))


def _distractor(draft: _Draft, donors: Sequence[_Draft], uses: Counter[str], seed: int) -> str:
    """Return the image's answer of another row of the same kind and category that is in neither caption.

    Answers with the number and word count of this image's answer come first, then those of rows that lent theirs least often
    (``uses``, which is updated): a word is then a distractor about as often as it is right, and does not tell which it is.
    """
    image, text = draft.change.original, draft.change.conflicting
    captions = _padded(draft.caption) + _padded(draft.change.caption)
    question = QUESTION.format(caption=draft.change.gapped)

    def differs(word: str) -> bool:
        return all(compare(word, answer, question).verdict == "different" for answer in (image, text))

    def rank(donor: _Draft) -> tuple[bool, bool, int, str]:
        word = donor.change.original
        unlike = len(word.split()) != len(image.split()), word.endswith("s") != image.endswith("s")
        return (*unlike, uses[donor.where], digest([seed, "distractor", draft.caption, text, donor.where]))

    for donor in sorted(donors, key=rank):
        word = donor.change.original
        if _padded(word) not in captions and differs(word):
            uses[donor.where] += 1
            return word
    raise RowProblem("no other row has a word that could be the distractor")


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


def _words(text: str, tokens: Sequence[re.Match[str]]) -> str:
    """Return the words of these tokens, without the capital of a sentence's first word."""
    words = " ".join(text[tokens[0].start() : tokens[-1].end()].split())
    starts_sentence = tokens[0].start() == 0 or text[: tokens[0].start()].strip().casefold() in _ARTICLES
    return words[0].lower() + words[1:] if starts_sentence and tokens[0][0].istitle() else words


def _padded(text: str) -> str:
    return f" {' '.join(token[0].casefold().removesuffix('s') for token in _TOKEN.finditer(text))} "
