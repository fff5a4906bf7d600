"""The instances of an example: one for each setting of the design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.hash_collections import hash64
from benchmarks.k_passages.k_passages_constants import DISTRACTOR, RIGHT, TIE, WRONG, condition_of
from benchmarks.k_passages.k_passages_design import Cell
from benchmarks.k_passages.k_passages_texts import lengthened
from benchmarks.prompt_template import Prompts
from benchmarks.retrieval.retrieval_prompts import parts
from benchmarks.vocabulary import SHOWN_TEXT, Instance, Media, Text


def instances_of_row(
    row: Mapping[str, Any], cells: Sequence[Cell], seed: int, prompt_set: Prompts
) -> Iterator[Instance]:
    """Yield the instances of a build's row, in the order of the settings."""
    right_ties = _right_ties(row["id"], cells, seed)
    for cell in cells:
        yield _instance(row, cell, seed, prompt_set, coin=RIGHT if cell.name in right_ties else WRONG)


def _right_ties(example: str, cells: Sequence[Cell], seed: int) -> frozenset[str]:
    """Return the names of the ties that a coin decides for the right value: half of an example's ties, drawn by the seed."""
    ties = sorted(
        (cell.name for cell in cells if condition_of(cell.wrong) == TIE),
        key=lambda name: hash64(f"{seed}|tie|{example}|{name}"),
    )
    odd_one = hash64(f"{seed}|tie|{example}") % 2
    return frozenset(ties[: (len(ties) + odd_one) // 2])


def _instance(row: Mapping[str, Any], cell: Cell, seed: int, prompt_set: Prompts, *, coin: str) -> Instance:
    """Return the instance of a setting; ``coin`` is the value, right or wrong, that policies take in a tie."""
    passages = _mixed(_others(row, cell.wrong, cell.passages), seed, f"{row['id']}|passages")
    passages.insert(cell.index, row["right_passage"])
    images = _mixed([tuple(image) for image in row["images"][: cell.images]], seed, f"{row['id']}|images")
    references: dict[str, tuple[str, ...]] = {RIGHT: (row["right"],)}
    if cell.wrong:
        references[WRONG] = (row["wrong"],)
    if cell.distractors:
        references[DISTRACTOR] = tuple(row["distractor_answers"][: cell.distractors])
    # For the policies: the image supports the right value, the texts that of their majority, in a tie that of a coin.
    if cell.images:
        references["image"] = (row["right"],)
    condition = condition_of(cell.wrong)
    if condition == TIE:
        references |= {"text": (row["right"], row["wrong"]), SHOWN_TEXT: (row[coin],)}
    else:
        references["text"] = (row["wrong"] if cell.wrong else row["right"],)
    return Instance(
        id=f"{row['id']}/{cell.name}",
        group=row["id"],
        condition=condition,
        question=row["question"],
        parts=parts(
            prompt_set,
            row["question"],
            [Media(sha256, suffix) for sha256, suffix in images],
            [lengthened(passage, cell.words) for passage in passages],
        ),
        references=references,
        strata={
            **row["strata"],
            "passages": str(cell.passages),
            "wrong": str(cell.wrong),
            "place": cell.place,
            "images": str(cell.images),
            "words": str(cell.words),
        },
    )


def passages_in(row: Mapping[str, Any], instance: Instance) -> list[str]:
    """Return the passages of an instance of a row, as its prompt spells and orders them."""
    wrong, count, words = (int(instance.strata[name]) for name in ("wrong", "passages", "words"))
    passages = {lengthened(text, words): None for text in (*_others(row, wrong, count), row["right_passage"])}
    prompt = "".join(part.text for part in instance.parts if isinstance(part, Text))
    return sorted(passages, key=prompt.find)


def _others(row: Mapping[str, Any], wrong: int, passages: int) -> list[str]:
    """Return the passages other than the right one, of ``passages`` in all and ``wrong`` ones."""
    return [*row["wrong_passages"][:wrong], *row["distractors"][: passages - 1 - wrong]]


def _mixed(items: Sequence[Any], seed: int, purpose: str) -> list[Any]:
    """Return the items in an order that depends on their places alone, so that a further item moves no other past another."""
    return [item for _, item in sorted((hash64(f"{seed}|{purpose}|{place}"), item) for place, item in enumerate(items))]
