"""`rashomon build cmc-bench --from`: what it says, and with which exit code."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest

from tests.support.command import Rashomon
from tests.support.data.small import picture

GOOD = "".join(f"{n}.png,How many?,{n + 5}\n" for n in range(4))


@pytest.fixture
def here(tmp_path: Path) -> Rashomon:
    """A home with four pictures in it."""
    for n in range(4):
        (tmp_path / f"{n}.png").write_bytes(picture(n))
    return Rashomon(tmp_path)


def write(here: Rashomon, content: str) -> str:
    (here.home / "rows.csv").write_text(content, "utf-8")
    return "~/rows.csv"


def test_the_check_builds_nothing_and_ends_with_1_where_no_row_can_be_used(here: Rashomon) -> None:
    hostile = "\x1b[31m[red]\u202e"
    table = write(here, f'image,question,answer,{hostile}\n{GOOD}"gone.png",x?,{hostile},\n')
    stdout = here.run("build", "cmc-bench", "--from", table, "--check").stdout
    assert "4 of 5 rows can be used" in stdout
    assert "\\x1b[31m[red]\\u202e" in stdout
    assert "\x1b" not in stdout
    parsed = here.json("build", "cmc-bench", "--from", table, "--check")
    assert [row["usable"] for row in parsed["rows"]] == [True] * 4 + [False]
    assert parsed["rows"][-1]["fix"] == "put the file in its place: gone.png"
    (here.home / "tables").mkdir()
    (here.home / "tables" / "t.csv").write_text(f"image,question,answer\n{here.home}/gone.png,x?,5\n")
    here.run(
        "build", "cmc-bench", "--from", "tables/t.csv", "--check", "--json", code=1
    )  # without the home folder's path
    table = write(here, "image,question,answer\ngone.png,x?,5\n")
    assert "0 of 1 rows" in here.run("build", "cmc-bench", "--from", table, "--check", code=1).stdout
    assert not here.workspace.exists()


def test_a_build_of_nothing_names_the_check_which_names_the_files_it_looked_for(here: Rashomon) -> None:
    (here.home / "folder").mkdir()
    table = write(here, 'image,question,answer\nno/where\x1b.png,x?,5\nfolder,x?,6\n"a; b.png",x?,7\n')
    stderr = here.run("build", "cmc-bench", "--from", table, code=2).stderr
    assert "2 times: the image is missing; put the file in its place; once: the image is a folder" in stderr
    assert f"build cmc-bench --from {here.home}/rows.csv --check` lists a fix for each row" in stderr
    stderr = here.run("build", "cmc-bench", "--from", table, "--check", code=1).stdout
    assert "\x1b" not in stderr
    parsed = here.json("build", "cmc-bench", "--from", table, "--check", code=1)["rows"]
    assert [(row["message"], row["fix"]) for row in parsed] == [
        ("the image is missing", "put the file in its place: no/where\x1b.png"),
        ("the image is a folder", "name a file in it: folder"),
        ("the image is missing", "put the file in its place: a; b.png"),
    ]


def test_rows_that_fail_come_first_in_full_and_near_files_are_named(here: Rashomon) -> None:
    (here.home / "charts of the north").mkdir()
    long = [
        f"charts of the north/sales of the north region, by quarter and by product, page {n:03d}.png" for n in range(30)
    ]
    for n, name in enumerate(long):
        (here.home / name).write_bytes(picture(n))
    written = list(long)
    written[5] = long[5].replace("/", "\\").replace("sales", "Sales")
    written[6] = "C:\\Users\\me\\" + long[6].rpartition("/")[2]
    written[7] = long[7].replace("page", "pgae")
    written[8] = long[8].replace("008", "908")
    rows = "".join(f'"{name}",How many on page {n}?,{n + 5}\n' for n, name in enumerate(written))
    table = write(here, f"image,question,answer\n{rows}")
    checked = here.process("build", "cmc-bench", "--from", table, "--check").stdout
    lines = checked.splitlines()
    assert lines[0].startswith("26 of 30 rows can be used")
    marks = [line[0] for line in lines if line[:1] in ("✗", "✓")]
    assert marks == ["✗"] * 4 + ["✓"] * 10
    assert "and 16 more usable rows" in checked
    for n in (5, 6, 7):
        assert f"did you mean {long[n]}?" in checked
    assert f"put the file in its place: {written[8]}" in checked, "another page is not meant"
    assert "…" not in checked
    every = here.run("build", "cmc-bench", "--from", table, "--check", "--all").stdout
    assert sum(line.startswith("✓") for line in every.splitlines()) == 26


def test_rows_with_one_reason_are_listed_together_with_their_number(here: Rashomon) -> None:
    table = write(here, "image,question,answer\n" + "0.png,How many?,7\n" * 6 + GOOD)
    stdout = here.run("build", "cmc-bench", "--from", table, "--check").stdout
    assert stdout.count("is the same row") == 1
    assert "✗ rows.csv:3, 4, 5, 6 and 7 (5 rows): repeated: rows.csv:2 is the same row\n" in stdout


def test_what_several_usable_rows_lack_is_said_once(here: Rashomon) -> None:
    rows = "".join(f"{n}.png,How many?,7\n" for n in range(3))
    stdout = here.run("build", "cmc-bench", "--from", write(here, f"image,question,answer\n{rows}"), "--check").stdout
    assert (
        "  rows.csv:2, 3 and 4 (3 rows): not text-correct or both-wrong: no other picture has another answer" in stdout
    )
    assert stdout.count("no other picture") == 1


def test_many_bad_rows_are_counted_by_reason_and_only_the_first_are_listed(here: Rashomon) -> None:
    bad = "".join(f"gone{n}.png,How many?,{n}\n" for n in range(130)) + "0.png,,5\n"
    table = write(here, f"image,question,answer\n{GOOD}{bad}")
    stdout = here.run("build", "cmc-bench", "--from", table, "--check").stdout
    assert "✗ 130 times: the image is missing" in stdout
    assert sum(line.startswith("✗ rows.csv:") for line in stdout.splitlines()) == 100
    assert "31 more unusable rows; --all" in stdout
    every = here.run("build", "cmc-bench", "--from", table, "--check", "--all").stdout
    assert sum(line.startswith("✗ rows.csv:") for line in every.splitlines()) == 131
    assert "130 times" not in every


def test_the_build_says_which_rows_it_left_out(here: Rashomon) -> None:
    table = write(here, f"image,question,answer\n{GOOD}gone.png,x?,5\n")
    stdout = here.run("build", "cmc-bench", "--from", table).stdout
    assert "32 instances" in stdout
    assert "left out: rows.csv:6: the image is missing" in stdout


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("image,question\n", ("cmc-bench", "--from", "rows.csv", "--check"), "no column answer"),
        ("", ("cmc-bench", "--from", "rows.csv"), "is empty"),
        ("", ("cmc-bench", "--from", "nowhere.csv"), "there is no file"),
        ("", ("cmc-bench", "--from", "."), "is a folder; name the table in it"),
        ("", ("clash", "--from", "rows.csv"), "not built from a table of rows"),
        ("", ("cmc-bench", "--check"), "name it with --from"),
        ("image,question,answer\n", ("cmc-bench", "--from", "rows.csv"), "there are no rows in rows.csv"),
        ("image,question,answer\n", ("cmc-bench", "--from", "rows.csv", "--check"), "there are no rows in rows.csv"),
    ],
)
def test_what_is_wrong_with_the_command_or_the_file_is_exit_code_2(
    here: Rashomon, content: str, arguments: tuple[str, ...], message: str
) -> None:
    write(here, content)
    assert message in here.run("build", *arguments, code=2).stderr
    assert not here.workspace.exists() or not list(here.workspace.rglob("manifest.json"))


def test_unknown_keys_are_one_error_and_its_mapping_checks_and_builds(here: Rashomon) -> None:
    table = write(here, f"Seite;Frage;Antwort;\x1b[31m\n{GOOD.replace(',', ';')}")
    stderr = here.run("build", "cmc-bench", "--from", table, "--check", code=2).stderr
    assert len(stderr.splitlines()) == 1
    assert "\x1b" not in stderr
    mapping = stderr.strip().rpartition("--map ")[2]
    assert mapping == "question=frage,answer=antwort,image=seite"
    parsed = here.json("build", "cmc-bench", "--from", table, "--map", mapping, "--check")
    assert (parsed["usable"], set(parsed)) == (4, {"usable", "rows", "remarks"})
    assert "32 instances" in here.run("build", "cmc-bench", "--from", table, "--map", mapping).stdout


def test_a_mapping_without_a_table_or_to_nothing_is_exit_code_2(here: Rashomon) -> None:
    table = write(here, f"image,question,answer\n{GOOD}")
    for arguments in (
        ("--map", "image=page"),
        ("--from", table, "--map", "image=page"),
        ("--from", table, "--map", "x"),
    ):
        assert len(here.run("build", "cmc-bench", *arguments, code=2).stderr.splitlines()) == 1


def test_pictures_in_cells_are_never_printed(here: Rashomon) -> None:
    broken = "A" * 100_001
    lines = [f"{n}\t{b64encode(picture(n)).decode()}\tHow many {n}?\t\t{n + 5}" for n in range(4)]
    (here.home / "v.tsv").write_text(
        "\n".join(
            ["index\timage\tquestion\thint\tanswer", *lines, f"4\t{broken}\tWhat?\t\t9", f"5\t{broken[:-5]}\tWho?\t\t9"]
        )
    )
    done = here.run("build", "cmc-bench", "--from", "~/v.tsv", "--check", "--json")
    parsed = json.loads(done.stdout)["result"]
    assert parsed["usable"] == 4
    assert "read as a VLMEvalKit table" in parsed["remarks"]
    assert len(done.stdout) + len(here.run("build", "cmc-bench", "--from", "~/v.tsv", "--check").stdout) < 5000
