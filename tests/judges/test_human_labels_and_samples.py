"""Human labels: samples, the blind display, and import from a file."""

from __future__ import annotations

import csv
import io
import random
import re
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.text.text_escaping import spreadsheet_cell
from benchmarks.errors import RashomonError, SourceError, SpecError
from benchmarks.vocabulary import SHOWN_TEXT, Generation, Instance, Record
from judges.base import HUMAN
from judges.human_labels_and_samples import annotator_id, blind_answer, blind_id, draw_sample, read_labels_csv
from tests.support.labelled import LABELS, labelled

IDS = ("a/aligned", "b/both-wrong", "=c/aligned", "d;d/aligned")
NAMES = {name: name for name in IDS} | {"0" * 16: "a/aligned", "1" * 16: "b/both-wrong"}


# --- samples -------------------------------------------------------------------------------------


def _run(sizes: dict[str, int], kinds: Sequence[str] = ("x", "x", "x", "y")) -> list[Record]:
    """``sizes`` answers a condition; three of four of kind x."""
    return [
        labelled({}, id=f"{i}/{condition}", group=str(i), condition=condition, strata={"type": kinds[i % len(kinds)]})
        for condition, size in sizes.items()
        for i in range(size)
    ]


def test_sample_is_proportional_to_conditions_and_strata() -> None:
    records = _run({"aligned": 400, "both-wrong": 400, "image-only": 200})
    ids = {record.instance.id: record for record in records}
    chosen = [ids[item].instance for item in draw_sample(records, 100, 1, stratify_by="type")]
    assert Counter(i.condition for i in chosen) == {"aligned": 40, "both-wrong": 40, "image-only": 20}
    assert Counter((i.condition, i.strata["type"]) for i in chosen)["aligned", "x"] == 30


def test_every_prefix_of_a_sample_is_proportional() -> None:
    records = _run({"aligned": 150, "both-wrong": 90, "image-only": 13})
    size = Counter(record.instance.condition for record in records)
    order = draw_sample(records, len(records), 7)
    seen: Counter[str] = Counter()
    for n, item in enumerate(order, start=1):
        seen[item.partition("/")[2]] += 1
        assert all(abs(seen[c] - n * size[c] / len(records)) < 2 for c in size)
    assert len(set(order)) == len(records)


@given(st.integers(0, 60), st.integers(0, 60), st.integers())
def test_a_larger_sample_begins_with_the_smaller_one(n: int, m: int, seed: int) -> None:
    records = _run({"aligned": 20, "both-wrong": 11, "image-only": 3})
    few, many = (
        draw_sample(records, min(n, m), seed, stratify_by="type"),
        draw_sample(records, max(n, m), seed, stratify_by="type"),
    )
    assert many[: len(few)] == few
    assert len(few) == min(n, m, 34)


def test_sample_does_not_depend_on_machine_or_record_order() -> None:
    records = _run({"aligned": 40, "both-wrong": 40})
    shuffled = random.Random(3).sample(records, len(records))
    assert draw_sample(shuffled, 8, 5) == draw_sample(records, 8, 5)
    assert draw_sample(records, 3, 0) == ["5/both-wrong", "31/aligned", "27/both-wrong"]
    assert draw_sample(records, 8, 6) != draw_sample(records, 8, 5)


@pytest.mark.slow
def test_answers_of_a_condition_are_equally_likely() -> None:
    records = _run({"aligned": 12, "both-wrong": 30})
    drawn = Counter(item for seed in range(1500) for item in draw_sample(records, 14, seed))
    # 14 of 42 is a third of each; the standard deviation of a count is 18.
    assert all(abs(drawn[record.instance.id] - 500) < 4.5 * 18 for record in records)


def test_sample_order_does_not_reveal_the_condition() -> None:
    records = _run({"aligned": 300, "both-wrong": 300})
    order = [record.partition("/")[2] for record in draw_sample(records, 600, 2)]
    changes = sum(a != b for a, b in pairwise(order))
    assert 0.5 * 599 < changes < 0.9 * 599


def test_sample_contains_only_labellable_answers() -> None:
    good = labelled({}, id="good")
    others = [
        labelled({}, id="broken", error=True),
        labelled({}, id="empty", answer="  \n"),
        labelled({}, id="only thought", answer="<think>12, so"),
        Record(good.instance, ()),
    ]
    assert draw_sample([*others[:3], good], 10, 0) == ["good"]
    assert draw_sample(others, 10, 0) == []
    assert draw_sample([good], -1, 0) == []


# --- what a person is shown ----------------------------------------------------------------------


def test_annotator_sees_only_question_references_and_answer() -> None:
    record = labelled(
        {"match@1": "IMAGE"}, id="ex/text-correct", condition="text-correct", strata={"correct": "text", "type": "z"}
    )
    record = Record(record.instance, (Generation("x", "<think>hm</think>It is 12.", "stop"),), record.verdicts)
    displayed = blind_answer(record, LABELS, 0)
    assert displayed.question == "How many?"
    assert dict(displayed.references) == {"image": ("12",), "text": ("15",)}
    assert (displayed.answer, displayed.labels) == ("It is 12.", LABELS)
    for hidden in ("text-correct", "match", "ex/", "hm"):
        assert hidden not in repr(displayed)


def test_reference_order_reveals_nothing() -> None:
    records = [labelled({}, id=str(i)) for i in range(400)]
    first = Counter(blind_answer(record, LABELS, 0).references[0][0] for record in records)
    assert 150 < first["image"] < 250
    again = [blind_answer(record, LABELS, 0) for record in records]
    assert again == [blind_answer(record, LABELS, 0) for record in records]
    assert again != [blind_answer(record, LABELS, 1) for record in records]


def test_policy_only_references_are_hidden() -> None:
    letters = {"image letter": ("A",), "shown text letter": ("A",)}
    instance = Instance("i", "g", "c", "?", (), {"image": ("12",), "text": ("15",), SHOWN_TEXT: ("12",), **letters})
    displayed = blind_answer(Record(instance, (Generation("i#0", "12", "stop"),)), LABELS, 0)
    assert dict(displayed.references) == {"image": ("12",), "text": ("15",), "image letter": ("A",)}


def test_a_blind_id_hides_the_condition_and_stays_the_same() -> None:
    def named(instance: str, answer: str) -> str:
        item = Instance(instance, "g", "aligned", "?", ())
        return blind_id(Record(item, (Generation(f"{instance}#0", answer, "stop"),)))

    assert named("a/aligned", "2008") == named("a/aligned", "2008")
    assert len({named(record, "2008") for record in IDS}) == len(IDS)
    assert named("a/aligned", "2008") != named("a/aligned", "2009"), "another answer is not the one that was seen"
    assert re.fullmatch("[0-9a-f]{16}", named("\ud800", "\ud800"))


@pytest.mark.parametrize("name", ["ann", "A", "0", "a.b-c_d", "x" * 40])
def test_annotator_name_becomes_a_judge_id(name: str) -> None:
    assert annotator_id(name) == f"human:{name}@1"
    assert annotator_id(name).startswith(HUMAN)


@pytest.mark.parametrize(
    "name", ["", "x" * 41, ".a", "-a", "a b", "a@1", "a/b", "ann\n", "änn", "１", "\x1b[31m", "a,b"]
)
def test_invalid_annotator_name_is_one_printable_line(name: str) -> None:
    with pytest.raises(SpecError, match="annotator name") as refused:
        annotator_id(name)
    assert str(refused.value).isprintable()


# --- labels from a file --------------------------------------------------------------------------


def _read(tmp_path: Path, content: str | bytes) -> list[tuple[str, str]]:
    path = tmp_path / "labels.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_labels_csv(path, LABELS, NAMES)


def _refused(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(SourceError) as refused:
        _read(tmp_path, content)
    message = str(refused.value).replace(str(tmp_path), "")
    assert message.isprintable()
    assert len(message) < 400
    return message


WANTED = [("a/aligned", "IMAGE"), ("b/both-wrong", "ABSTAIN")]


@pytest.mark.parametrize(
    "content",
    [
        "id,label\na/aligned,IMAGE\nb/both-wrong,ABSTAIN\n",
        "id,label\r\na/aligned,IMAGE\r\nb/both-wrong,ABSTAIN\r\n",
        "id,label\ra/aligned,IMAGE\rb/both-wrong,ABSTAIN",
        "\ufeffid;label\na/aligned;IMAGE\nb/both-wrong;ABSTAIN",
        "id\tlabel\na/aligned\tIMAGE\nb/both-wrong\tABSTAIN",
        'label,"id",note\nimage,"a/aligned","x, ""y""\nz"\n\n,,\n Abstain ,b/both-wrong,\n',
        'answer, if any;ID;Label\n"a;b";a/aligned;IMAGE\n;b/both-wrong;ABSTAIN;;\n',
        f"id,label\n{'0' * 16},IMAGE\n{'1' * 16},ABSTAIN\n",
        "id,label\na/aligned,IMAGE\nb/both-wrong,ABSTAIN\na/aligned,IMAGE\n",
        "id,label\na/aligned,IMAGE\n=c/aligned,\n=c/aligned\nb/both-wrong,ABSTAIN\nd;d/aligned, \n",
        "\n\nid,label\na/aligned,'IMAGE\n'b/both-wrong,ABSTAIN",
    ],
)
def test_labels_are_read_from_every_spreadsheet_format(tmp_path: Path, content: str) -> None:
    assert _read(tmp_path, content) == WANTED


def test_exported_sheet_round_trips(tmp_path: Path) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["id", "answer", "label"])
    for record in IDS:
        writer.writerow([spreadsheet_cell(record), spreadsheet_cell("=1+1\n;'\"" * 20_000), "NEITHER"])
    before = csv.field_size_limit()
    assert _read(tmp_path, out.getvalue()) == [(record, "NEITHER") for record in IDS]
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"id,label\n", "holds no label yet"),
        (b"id,label\na/aligned,\n", "holds no label yet"),
        (b"a/aligned,IMAGE\n", "row 1 of /labels.csv has no column called 'id'"),
        (b"id,verdict\na/aligned,IMAGE\n", "no column called 'label'"),
        (b"id,label,id\na/aligned,IMAGE,b\n", "more than one column called 'id'"),
        (b"id,label\na/aligned,IMAGE\n\nz,TEXT\n", "row 4 of /labels.csv: 'z' is not the id of an answer"),
        (b"id,label\n,TEXT\n", "row 2 of /labels.csv: '' is not the id"),
        (b"id,label\na/aligned,imgae\n", "row 2 of /labels.csv: 'imgae' is not a label; did you mean 'IMAGE'?"),
        (b"id,label\na/aligned,x\n", "known are IMAGE, TEXT"),
        (
            b"id,label\na/aligned,IMAGE\nb/both-wrong,TEXT\na/aligned,TEXT\n",
            "row 4 of /labels.csv labels 'a/aligned' TEXT, and row 2 labels it IMAGE",
        ),
        (b"id,note,label\na/aligned,one, two,IMAGE\n", "row 2 of /labels.csv has 4 cells where the header has 3"),
        (b'id,label,note\na/aligned,IMAGE,"never closed\nb/both-wrong,TEXT,\n', "is not CSV"),
        (b"id,label\na/aligned,IM\xffAGE\n", "row 2 of /labels.csv is not UTF-8"),
        ("id,label\na/aligned,IMAGE\n".encode("utf-16"), "is not UTF-8"),
        (b"PK\x03\x04\x14\x00\x06\x00", "null bytes"),
        (b"\x89PNG\r\n\x1a\n", "is not UTF-8"),
        (b"id,label\na/aligned,\x1b[31mIMAGE\n", "is not a label"),
        (b"id,label\n" + b"a" * 1_000_000 + b",IMAGE\n", "is not the id"),
        (b"id,label\na/aligned," + b"I" * 1_000_000 + b"\n", "is not a label"),
        (b"a" * 1_000_000, "no column called 'id'"),
    ],
)
def test_invalid_labels_are_refused_with_the_row(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in _refused(tmp_path, content)


def test_missing_or_oversized_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.csv", tmp_path):
        with pytest.raises(SourceError):
            read_labels_csv(path, LABELS, NAMES)
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(33 * 1024 * 1024)
    with pytest.raises(SourceError, match="larger than 32 MiB"):
        read_labels_csv(large, LABELS, NAMES)


def test_long_answers_are_read_concurrently(tmp_path: Path) -> None:
    """The limit of a cell is the whole process's, so it must not be set back under another reader."""
    path = tmp_path / "long.csv"
    path.write_text("id,note,label\n" + ("a/aligned," + "x" * 150_000 + ",IMAGE\n") * 20)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(5):
                read_labels_csv(path, LABELS, NAMES)
        except BaseException as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(alphabet="idlabe,;\t\n\r\"' AIMGE/", max_size=200).map(str.encode))
def test_hostile_files_yield_labels_or_one_error(tmp_path: Path, content: bytes) -> None:
    try:
        pairs, message = _read(tmp_path, content), ""
    except RashomonError as error:
        pairs, message = [], str(error)
    assert pairs or message
    assert message.isprintable()
    assert all(pair in IDS and label in LABELS for pair, label in pairs)


@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(LABELS)), min_size=1, unique_by=lambda pair: pair[0]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_csv_is_read(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([("id", "label"), *pairs])
    assert _read(tmp_path, out.getvalue()) == pairs


def test_basis_answer_is_shown_first_and_part_of_the_id() -> None:
    instance = Instance("i", "g", "c", "When?", (), {"image": ("1989",), "text": ("1988",)})
    record = Record(instance, (Generation("i#0", "1988", "stop"),))
    own = Record(instance, record.generations, basis=Generation("o#0", "<think>x</think>1990", "stop"))
    assert blind_answer(own, LABELS, 0).references[0] == ("own answer", ("1990",))
    assert blind_answer(own, LABELS, 0).references[1:] == blind_answer(record, LABELS, 0).references
    assert blind_id(own) != blind_id(record)
