"""Build folders: written atomically, by one builder at a time, without leftovers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from benchmarks.build import Build, BuildWriter
from benchmarks.errors import BusyError, SourceError

MANIFEST = {"benchmark": "toy", "seed": 0}


def write(out: Path, answer: str = "1", *, replace: bool = False) -> Build:
    with BuildWriter(out) as writer:
        media = writer.add_media(b"pixels", ".png")
        assert writer.add_media(b"pixels", ".png") == media
        writer.add_row({"id": "a", "answer": answer})
        writer.add_skipped("rows", "rows.jsonl:3", "no \ud800 answer")
        return writer.finish(MANIFEST, replace=replace)


def test_build_reads_back_and_leaves_no_temporary_files(tmp_path: Path) -> None:
    built = write(tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert list(built.rows()) == [{"id": "a", "answer": "1"}]
    assert built.manifest["media"] == 1
    assert json.loads((built.path / "skipped.jsonl").read_text())["row"] == "rows.jsonl:3"
    assert Build.open(tmp_path / "out").digest == built.digest


def test_a_second_builder_is_refused_and_the_first_is_not_disturbed(tmp_path: Path) -> None:
    with BuildWriter(tmp_path / "out") as first:
        first.add_row({"id": "a"})
        with pytest.raises(BusyError), BuildWriter(tmp_path / "out"):
            pass
        first.finish(MANIFEST)
    assert list(Build.open(tmp_path / "out").rows()) == [{"id": "a"}]


def test_another_build_is_replaced_only_on_request(tmp_path: Path) -> None:
    first = write(tmp_path / "out")
    assert write(tmp_path / "out").digest == first.digest
    with pytest.raises(SourceError, match="--replace"):
        write(tmp_path / "out", "2")
    assert Build.open(tmp_path / "out").digest == first.digest
    assert write(tmp_path / "out", "2", replace=True).digest != first.digest
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_build_that_a_killed_process_had_moved_away_is_back_with_its_filled_in_sheet(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with BuildWriter(out) as writer:
        writer.add_sheet("checks.csv", b"question,choice\n")
        writer.finish({"benchmark": "x"})
    (out / "checks.csv").write_bytes(b"question,choice\nq1,A\n")
    out.rename(tmp_path / ".out.replaced")  # between its two renames
    with BuildWriter(out) as writer:
        assert (out / "checks.csv").exists()
        writer.add_sheet("checks.csv", b"question,choice\n")
        writer.finish({"benchmark": "x"}, replace=True)
    assert (out / "previous-checks.csv").read_bytes() == b"question,choice\nq1,A\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_filled_in_sheet_survives_being_replaced_again_and_again(tmp_path: Path) -> None:
    def build() -> None:
        with BuildWriter(tmp_path / "out") as writer:
            writer.add_sheet("checks.csv", b"question,choice\nq1,\n")
            writer.finish(MANIFEST)

    build()
    assert not (tmp_path / "out" / "previous-checks.csv").exists()
    (tmp_path / "out" / "checks.csv").write_bytes(b"question,choice\nq1,A\n")
    for _ in range(3):
        build()
        assert (tmp_path / "out" / "previous-checks.csv").read_bytes() == b"question,choice\nq1,A\n"
        assert (tmp_path / "out" / "checks.csv").read_bytes() == b"question,choice\nq1,\n"


@pytest.mark.parametrize(
    ("file", "content", "mended_by"),
    [
        ("media", None, "the same"),
        ("instances.jsonl", b'{"id": "b"}\n', "--replace"),
        ("manifest.json", b"{", "--replace"),
    ],
)
def test_a_damaged_build_is_repaired_by_building_it_again(
    file: str, content: bytes | None, mended_by: str, tmp_path: Path
) -> None:
    first = write(tmp_path / "out")
    if content is None:
        next((first.path / "media").iterdir()).write_bytes(b"spoilt")
    else:
        (first.path / file).write_bytes(content)
    if mended_by == "--replace":
        with pytest.raises(SourceError, match="--replace"):
            write(tmp_path / "out")
    again = write(tmp_path / "out", replace=mended_by == "--replace")
    assert again.digest == first.digest
    assert next((again.path / "media").iterdir()).read_bytes() == b"pixels"
    assert list(again.rows()) == [{"id": "a", "answer": "1"}]


def test_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="the current folder"):
        write(tmp_path)


def test_a_folder_with_other_files_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(SourceError, match="contains other files"):
        write(tmp_path / "out", replace=True)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


def test_an_error_while_building_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), BuildWriter(tmp_path / "out") as writer:
        writer.add_row({"id": 1 / 0})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("instances.jsonl", '{"id": "b"}\n', "was changed after the build"),
        ("manifest.json", "{", "is not a built benchmark"),
        ("manifest.json", '{"format": 99}', "another build format"),
        ("manifest.json", "[]", "another build format"),
        ("manifest.json", "[" * 100_000, "is not a built benchmark"),
        ("manifest.json", '{"a":' * 500 + "1" + "}" * 500, "is not a built benchmark"),
    ],
)
def test_a_build_that_was_tampered_with_is_refused(tmp_path: Path, file: str, content: str, says: str) -> None:
    write(tmp_path / "out")
    (tmp_path / "out" / file).write_text(content)
    with pytest.raises(SourceError, match=says):
        Build.open(tmp_path / "out")


@pytest.mark.parametrize("row", ["[" * 100_000, "[]", "NaN", '{"id": 1e999}', "{", "\xff"])
def test_row_that_is_no_json_object_is_named(tmp_path: Path, row: str) -> None:
    folder = write(tmp_path / "out").path
    rows = b'{"id": "a"}\n' + row.encode("latin-1") + b"\n"
    (folder / "instances.jsonl").write_bytes(rows)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["instances_sha256"] = hashlib.sha256(rows).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SourceError, match=r"instances\.jsonl:2 is "):
        list(Build.open(folder).rows())
