"""SugarCrepe's hard negatives (Hsieh et al., 2023) as samples: real captions and negatives, questions by rule, no model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import digest
from benchmarks.clash.categories import categories, joined
from benchmarks.clash.sources import LONGEST_SENTENCE, ClashSourceRow, image_folders, sample
from benchmarks.rows.files import RawRow, RowProblem, SkippedRow, image_loader
from benchmarks.rows.sources import folder_of, wrong_layout
from benchmarks.text.answer_equality import normalise
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file

FILES = {"replace_obj.json": "object", "replace_att.json": "attribute"}
"""The files that are read and what changes in them; a swap changes two elements, an addition none of the caption's."""

LAYOUT = f"a folder with {' or '.join(FILES)} and COCO's val2017 images (in it, in val2017/ or in a folder beside it)"

QUESTION = 'Which word or words belong in the gap: "{caption}"'

_NAME = "sugar-crepe"
_FILE_NAME = re.compile(r"[0-9]{12}\.jpg")
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_ARTICLES = frozenset({"a", "an", "the"})
_LONGEST_CHANGE = 3


@dataclass(frozen=True, slots=True)
class CaptionChange:
    """The words that one caption has where the other has others, that caption with theirs put in, and with a gap there."""

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
    """The samples; ``seed`` decides the distractors. Raises SourceError."""
    root = folder_of(_NAME, place, LAYOUT)
    given = [root] if root.is_file() else [root / name for name in FILES if (root / name).is_file()]
    if not given or given[0].name not in FILES:
        raise wrong_layout(_NAME, root, LAYOUT)
    folder = given[0].parent
    places = tuple(dict.fromkeys((*image_folders(folder), *image_folders(folder.parent))))
    drafts = [each for file in given for each in _drafts(file)]
    pools: defaultdict[str, set[str]] = defaultdict(set)
    for draft in drafts:
        if isinstance(draft, _Draft):
            pools[draft.group] |= {draft.change.original, draft.change.conflicting}
    for draft in drafts:
        yield draft if isinstance(draft, SkippedRow) else _found(draft, sorted(pools[draft.group]), places, seed)


def change(caption: str, negative: str) -> CaptionChange:
    """The one contiguous change between two captions, of 1 to 3 words on both sides. Raises RowProblem for anything else.

    Articles before the changed words are not among them; where they differ the gap says ``a/an``. Letter case and a full
    stop at the end do not count as changes, and the conflicting caption has them as ``caption`` has.
    """
    ours, theirs = (list(_TOKEN.finditer(text)) for text in (caption.rstrip(" ."), negative.rstrip(" .")))
    one, other = ([token[0].casefold() for token in tokens] for tokens in (ours, theirs))
    start = _common(one, other)
    end = min(_common(one[::-1], other[::-1]), len(one) - start, len(other) - start)
    spans = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    first, second = (span[1:] if span and span[0][0].casefold() in _ARTICLES else span for span in spans)
    if not (first and second):
        raise RowProblem("no word is replaced, words are added or removed")
    if max(len(first), len(second)) > _LONGEST_CHANGE:
        raise RowProblem(f"more than {_LONGEST_CHANGE} words change, or they are not beside each other")
    if set(one[start : len(one) - end]) & set(other[start : len(other) - end]):
        raise RowProblem("the changed words are not beside each other")
    if not all(token[0][0].isalnum() for token in (*first, *second)):
        raise RowProblem("punctuation changes too")
    before, after = caption[: spans[0][0].start()], caption[first[-1].end() :]
    put_in = negative[spans[1][0].start() : second[-1].end()]
    both_have_articles = len(spans[0]) > len(first) and len(spans[1]) > len(second)
    return CaptionChange(
        original=_words(caption, first),
        conflicting=_words(negative, second),
        caption=f"{before}{put_in if before else put_in[:1].upper() + put_in[1:]}{after}",
        gapped=f"{before}{'a/an ____' if both_have_articles else '____'}{after}",
    )


def _drafts(file: Path) -> Iterator[_Draft | SkippedRow]:
    try:
        whole = read_json_file(file, MAX_SOURCE_BYTES)
    except (OSError, OutsideJSONError):
        whole = None
    if not isinstance(whole, dict):
        raise wrong_layout(_NAME, file, LAYOUT)
    for key, fields in whole.items():
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
    found = change(caption, negative.strip())
    group = f"{kind}/{joined(categories(kind, found.original, found.conflicting), kind)}"
    return _Draft(where, image, caption, kind, found, group)


def _found(draft: _Draft, pool: Sequence[str], places: tuple[Path, ...], seed: int) -> ClashSourceRow | SkippedRow:
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
        fields["distractor"] = _distractor(draft, pool, seed)
        loader = image_loader(RawRow(draft.where, {"image": draft.image}, places), "image")
        return ClashSourceRow(draft.where, sample(fields, _NAME), loader)
    except RowProblem as problem:
        return SkippedRow(_NAME, draft.where, str(problem))


def _distractor(draft: _Draft, pool: Sequence[str], seed: int) -> str:
    """Another row's changed word of the same kind and category that is in neither caption, in singular or plural.

    Words in the number of the image's answer, and as many of them, come first.
    """
    image, text = draft.change.original, draft.change.conflicting
    shown = _padded(draft.caption) + _padded(draft.change.caption)
    taken = {normalise(image), normalise(text)}

    def rank(word: str) -> tuple[bool, bool, str]:
        unlike = len(word.split()) != len(image.split()), word.endswith("s") != image.endswith("s")
        return (*unlike, digest([seed, "distractor", draft.caption, text, word]))

    for word in sorted(pool, key=rank):
        if _padded(word) not in shown and normalise(word) not in taken:
            return word
    raise RowProblem("no other row has a word that could be the distractor")


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def _words(text: str, tokens: Sequence[re.Match[str]]) -> str:
    """The words of these tokens; the capital letter of a sentence's beginning is not theirs."""
    words = " ".join(text[tokens[0].start() : tokens[-1].end()].split())
    begins_it = tokens[0].start() == 0 or text[: tokens[0].start()].strip().casefold() in _ARTICLES
    return words[0].lower() + words[1:] if begins_it and tokens[0][0].istitle() else words


def _padded(text: str) -> str:
    return f" {' '.join(token[0].casefold().removesuffix('s') for token in _TOKEN.finditer(text))} "
