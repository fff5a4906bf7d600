"""Guess of the key that holds each column of a table, from the names of the keys and the first rows' values.

A guess is only ever displayed: nothing is read by it until the user writes it as ``--map``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from benchmarks.rows.cell_images import is_image
from benchmarks.rows.files import RawRow
from benchmarks.rows.nested_keys import flat_fields, is_filled, plain_names

_WORDS = {
    "image": "image images img picture pictures pic photo figure chart charts plot graph page pages screenshot scan file "
    "filename filepath path pdf bild bilder bilddatei abbildung grafik diagramm foto seite datei dateiname imagen imagem figura "
    "immagine afbeelding",
    "question": "question questions query prompt instruction ask q user_input problem frage fragen fragestellung anfrage "
    "pregunta pergunta domanda vraag input",
    "answer": "answer answers a label gold gt target reference truth ground_truth groundtruth expected expected_output solution "
    "correct correct_answer key antwort antworten loesung lösung soll sollwert richtig respuesta reponse réponse resposta "
    "risposta antwoord value wert",
    "passage": "passage passages context contexts text texts snippet snippets chunk chunks retrieved evidence paragraph "
    "document documents kontext textstelle auszug absatz beleg fundstelle quelle contexto contexte contesto",
}
"""The words of the keys that hold each column."""
_OF_A_MODEL = (
    "response responses output outputs prediction predictions predicted pred generated generation completion hypothesis model "
    "modell llm rag bot ausgabe vorhersage modellantwort"
)
"""Words of keys that hold a model's answer, which is never taken as the right one."""
_OF_NEITHER = "id ids idx index nr no uid uuid guid qid number nummer date datum split category type kategorie"
"""Words of keys that hold neither a question nor an answer."""

_SHORT = 60
_THRESHOLD = 2.0
_MARGIN = 0.75
"""The difference between two scores from which the better key is taken."""


def guess_columns(
    keys: Iterable[str], rows: Sequence[RawRow], columns: Sequence[str]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the likely one of ``keys`` for each of ``columns``, and the keys between which the rows do not decide for others."""
    values: dict[str, list[Any]] = {key: [] for key in keys if "," not in key}  # which --map cannot name
    for row in rows:
        for key, value in flat_fields(plain_names(row.fields)).items():
            if key in values and is_filled(value):
                values[key].append(value)
    scores = {
        (name, key): score
        for name in columns
        if name in _WORDS
        for key in values
        if (score := _score(name, key, values[key], rows)) >= _THRESHOLD
    }
    guess: dict[str, str] = {}
    unclear: dict[str, list[str]] = {}
    for name, key in sorted(scores, key=lambda pair: -scores[pair]):
        if name in guess or name in unclear or key in guess.values():
            continue
        if rivals := _rivals(name, key, scores, columns, guess.values()):
            unclear[name] = [key, *rivals]
        else:
            guess[name] = key
    return {name: guess[name] for name in columns if name in guess}, unclear


def _rivals(
    name: str, key: str, scores: Mapping[tuple[str, str], float], columns: Sequence[str], taken: Iterable[str]
) -> list[str]:
    """Return the keys that fit a column nearly as well as ``key``, and no other column better."""
    others = [other for column, other in scores if column == name and other not in (key, *taken)]
    near = [other for other in others if scores[name, other] > scores[name, key] - _MARGIN]
    return [
        other for other in near if not any(scores.get((better, other), 0) > scores[name, other] for better in columns)
    ]


def _score(name: str, key: str, values: Sequence[Any], rows: Sequence[RawRow]) -> float:
    """Return how well a key fits a column by its name and its filled ``values``, or by its name if the file has no rows."""
    words = _words(key)
    if name == "answer" and not words.isdisjoint(_OF_A_MODEL.split()):
        return 0
    if name != "image" and not words.isdisjoint(_OF_NEITHER.split()):
        return 0
    by_name = _likeness(name, key, words)
    if not values:
        return 0 if rows else by_name
    fits = {"image": _image_share, "question": _question_share, "answer": _answer_share, "passage": _passage_share}[
        name
    ]
    share = fits(values, rows)
    if name == "image":
        return 4 * share + by_name / 2 if share else 0
    if name == "question":
        return by_name + 2 * share if by_name and _are_sentences(values, rows) else 2 * share
    return by_name + 2 * share if by_name and share else 0


def _likeness(name: str, key: str, words: set[str]) -> float:
    """Return how well a key's name fits a column: 3 for one of its words, less for a name that resembles one."""
    last, known = key.rpartition(".")[2], _WORDS[name].split()
    if last in known or re.sub(r"[\W_]+", "", last) in known:
        return 3
    if not words.isdisjoint(known):
        return 2.5
    close = max(SequenceMatcher(None, last[:40], word).ratio() for word in known)
    return 2 if close >= 0.8 else 0


def _words(key: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", key))


def _image_share(values: Sequence[Any], rows: Sequence[RawRow]) -> float:
    return _share(is_image(rows[0], value) for value in values)


def _question_share(values: Sequence[Any], rows: Sequence[RawRow]) -> float:
    return _share(isinstance(value, str) and value.rstrip().endswith(("?", "？")) for value in values)


def _are_sentences(values: Sequence[Any], rows: Sequence[RawRow]) -> bool:
    """Return whether most values may be questions without a question mark: texts that are no images and not too short."""
    return (
        not _image_share(values[:3], rows) and _share(isinstance(v, str) and len(v.strip()) > 5 for v in values) > 0.5
    )


def _answer_share(values: Sequence[Any], rows: Sequence[RawRow]) -> float:
    """Return the share of short values; 0 where they are images or questions."""
    names = [value for value in values[:3] if not str(value).isdigit()]  # a number may also be a picture's name
    if _image_share(names, rows) or _question_share(values, rows) > 0.5:
        return 0
    return _share(isinstance(value, bool | int | float | list) or len(str(value)) <= _SHORT for value in values)


def _passage_share(values: Sequence[Any], rows: Sequence[RawRow]) -> float:
    if _image_share(values[:3], rows) or _question_share(values, rows) > 0.5:
        return 0
    return _share(isinstance(value, list) or (isinstance(value, str) and len(value.split()) >= 3) for value in values)


def _share(tests: Iterable[bool]) -> float:
    results = list(tests)
    return sum(results) / len(results) if results else 0
