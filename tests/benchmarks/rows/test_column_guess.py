"""Guesses of keys: tables and logs as people name their columns, in several languages, flat and nested."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cmc_bench.sources import read_source as read_table
from benchmarks.errors import UnknownKeysError
from benchmarks.retrieval.sources import read_source as read_log
from tests.support.data.small import picture

PICTURES = [f"c{n}.png" for n in range(4)]
ASKED = [f"What was item {n} in 2024?" for n in range(4)]
VALUES = ["43", "67.5", "12 %", "1,204"]
TEXTS = [f"In the report for 2024, item {n} came to {value} in all." for n, value in enumerate(VALUES)]
BASE64 = [b64encode(picture(n)).decode() for n in range(4)]
IDS = ["a1f", "b2e", "c3d", "d4c"]
REPLIES = ["43", "66", "12 %", "I do not know"]


def columns(**values: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def nested(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn names with two underscores into objects."""
    result = []
    for row in rows:
        fields: dict[str, Any] = {}
        for name, value in row.items():
            *parents, last = name.split("__")
            inner = fields
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = value
        result.append(fields)
    return result


Q, A, P = "question", "answer", "image"
TABLES: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "rag": (columns(page=PICTURES, query=ASKED, reference=VALUES), {A: "reference", P: "page"}),
    "german": (columns(Seite=PICTURES, Frage=ASKED, Antwort=VALUES), {Q: "frage", A: "antwort", P: "seite"}),
    "german with a target": (
        columns(Bilddatei=PICTURES, Anfrage=ASKED, Sollwert=VALUES),
        {Q: "anfrage", A: "sollwert", P: "bilddatei"},
    ),
    "german with a reply": (
        columns(Bild=PICTURES, Frage=ASKED, Modellantwort=REPLIES, Lösung=VALUES),
        {Q: "frage", A: "lösung", P: "bild"},
    ),
    "french": (columns(fichier=PICTURES, question=ASKED, réponse=VALUES), {A: "réponse", P: "fichier"}),
    "spanish": (
        columns(imagen=PICTURES, pregunta=ASKED, respuesta=VALUES),
        {Q: "pregunta", A: "respuesta", P: "imagen"},
    ),
    "italian": (
        columns(immagine=PICTURES, domanda=ASKED, risposta=VALUES),
        {Q: "domanda", A: "risposta", P: "immagine"},
    ),
    "misspelt": (columns(imgae=PICTURES, qestion=ASKED, anwser=VALUES), {Q: "qestion", A: "anwser", P: "imgae"}),
    "capitals": (
        columns(ImagePath=PICTURES, UserQuestion=ASKED, GroundTruth=VALUES),
        {Q: "userquestion", A: "groundtruth", P: "imagepath"},
    ),
    "underscores": (
        columns(img_file=PICTURES, user_question=ASKED, gold_answer=VALUES),
        {Q: "user_question", A: "gold_answer", P: "img_file"},
    ),
    "letters": (columns(p=PICTURES, q=ASKED, a=VALUES), {Q: "q", A: "a", P: "p"}),
    "no names": (columns(x=PICTURES, y=ASKED, z=VALUES), {Q: "y", P: "x"}),
    "an identifier beside it": (
        columns(id=IDS, chart=PICTURES, prompt=ASKED, expected=VALUES),
        {Q: "prompt", A: "expected", P: "chart"},
    ),
    "a reply beside it": (
        columns(file=PICTURES, query=ASKED, response=REPLIES, target=VALUES),
        {A: "target", P: "file"},
    ),
    "a prediction beside it": (
        columns(file=PICTURES, query=ASKED, prediction=REPLIES, gt=VALUES),
        {A: "gt", P: "file"},
    ),
    "only a reply": (columns(file=PICTURES, query=ASKED, output=REPLIES), {P: "file"}),
    "base64": (
        columns(screenshot=BASE64, instruction=ASKED, solution=VALUES),
        {Q: "instruction", A: "solution", P: "screenshot"},
    ),
    "a data address": (
        columns(pic=[f"data:image/png;base64,{data}" for data in BASE64], ask=ASKED, truth=VALUES),
        {Q: "ask", A: "truth", P: "pic"},
    ),
    "identifiers of files": (
        columns(chart_id=[name[:-4] for name in PICTURES], query=ASKED, target=VALUES),
        {A: "target", P: "chart_id"},
    ),
    "numbers": (columns(fig=PICTURES, query=ASKED, value=[43, 67.5, 12, 1204]), {A: "value", P: "fig"}),
    "two files": (columns(before=PICTURES, after=PICTURES, query=ASKED, target=VALUES), {A: "target"}),
    "two answers": (columns(file=PICTURES, query=ASKED, expected=VALUES, reference=VALUES), {P: "file"}),
    "nested": (
        nested(columns(inp__q=ASKED, inp__img=PICTURES, ref__answer=VALUES)),
        {Q: "inp.q", A: "ref.answer", P: "inp.img"},
    ),
    "deeply nested": (
        nested(columns(data__in__query=ASKED, data__in__file=PICTURES, data__gold=VALUES)),
        {Q: "data.in.query", A: "data.gold", P: "data.in.file"},
    ),
    "nested with a reply": (
        nested(columns(doc__page=PICTURES, user__query=ASKED, model__answer=REPLIES, truth__answer=VALUES)),
        {Q: "user.query", A: "truth.answer", P: "doc.page"},
    ),
    "with a passage": (
        columns(page=PICTURES, query=ASKED, target=VALUES, snippet=TEXTS),
        {A: "target", "passage": "snippet", P: "page"},
    ),
    "german with a passage": (
        columns(Datei=PICTURES, Frage=ASKED, Soll=VALUES, Textstelle=TEXTS),
        {Q: "frage", A: "soll", "passage": "textstelle", P: "datei"},
    ),
    "a constant beside it": (
        columns(file=PICTURES, query=ASKED, truth=VALUES, owner=["Controlling"] * 4),
        {A: "truth", P: "file"},
    ),
    "questions that do not ask": (
        columns(page=PICTURES, prompt=["Name the year"] * 4, target=VALUES),
        {Q: "prompt", A: "target", P: "page"},
    ),
    "no picture at all": (columns(query=ASKED, target=VALUES), {A: "target"}),
    "dates and numbers beside it": (
        columns(nr=[1, 2, 3, 4], datum=["2024-01-01"] * 4, abbildung=PICTURES, fragestellung=ASKED, wert=VALUES),
        {Q: "fragestellung", A: "wert", P: "abbildung"},
    ),
}

LOGS: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "retrieved": (
        columns(ask=ASKED, retrieved=[[text] for text in TEXTS], shots=[[name] for name in PICTURES], gold=VALUES),
        {Q: "ask", "passage": "retrieved", P: "shots"},
    ),
    "german": (
        columns(Frage=ASKED, Fundstelle=TEXTS, Seite=PICTURES, Antwort=VALUES),
        {Q: "frage", A: "antwort", "passage": "fundstelle", P: "seite"},
    ),
    "objects": (
        columns(user_query=ASKED, chunks=[[{"text": text}] for text in TEXTS], page=PICTURES, response=REPLIES),
        {Q: "user_query", "passage": "chunks", P: "page"},
    ),
    "nested": (
        nested(columns(req__q=ASKED, ret__snippets=[[t] for t in TEXTS], ret__files=[[p] for p in PICTURES])),
        {Q: "req.q", "passage": "ret.snippets", P: "ret.files"},
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(PICTURES):
        (tmp_path / name).write_bytes(picture(number))
    return tmp_path


def write(folder: Path, rows: list[dict[str, Any]]) -> str:
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(folder / "t.jsonl")


@pytest.mark.parametrize("name", TABLES)
def test_the_keys_of_a_table_are_guessed(folder: Path, name: str) -> None:
    rows, expected = TABLES[name]
    with pytest.raises(UnknownKeysError) as caught:
        list(read_table("rows", write(folder, rows)))
    assert caught.value.guess == expected


@pytest.mark.parametrize("name", LOGS)
def test_the_keys_of_a_log_are_guessed(folder: Path, name: str) -> None:
    rows, expected = LOGS[name]
    with pytest.raises(UnknownKeysError) as caught:
        list(read_log("log", write(folder, rows)))
    assert caught.value.guess == expected
