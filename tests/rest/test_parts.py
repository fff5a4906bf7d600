"""Parts of the slow tests: each test is in one, and none is longer than its time allows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rest import __main__ as rest
from tests.rest.parts import LEAST_PARTS, MOST_SECONDS, nearness_of, select_turn, split_into_parts

FILES = st.dictionaries(
    st.integers(0, 30).map("tests/app/test_{}.py".format),
    st.tuples(st.integers(1, 60), st.floats(0, 300)),
    max_size=25,
)


@given(FILES)
def test_every_test_is_in_one_part_that_takes_no_longer_than_it_may(files: dict[str, tuple[int, float]]) -> None:
    tests = [f"{file}::test_{n}" for file, (count, _) in files.items() for n in range(count)]
    seconds = {file: mean for file, (_, mean) in files.items()}
    parts = split_into_parts(tests, seconds)
    assert sorted(test for part in parts for test in part) == sorted(tests)
    assert len(parts) >= LEAST_PARTS
    for part in parts:
        assert sum(seconds[test.partition("::")[0]] for test in part) <= MOST_SECONDS + 300


@given(FILES, st.integers(0, 10_000))
def test_all_turns_together_run_every_test(files: dict[str, tuple[int, float]], first: int) -> None:
    tests = [f"{file}::test_{n}" for file, (count, _) in files.items() for n in range(count)]
    seconds = {file: mean for file, (_, mean) in files.items()}
    turns = range(first, first + len(split_into_parts(tests, seconds)))
    assert set(tests) == {test for turn in turns for test in select_turn(tests, turn, seconds, ["app/test_3.py"])}


def test_the_tests_nearest_to_a_change_come_first_whatever_their_part() -> None:
    files = [f"tests/app/{folder}/test_it.py" for folder in ("engine", "fetch", "store")]
    tests = [f"{file}::test_{n}" for file in files for n in range(40)]
    for turn in range(LEAST_PARTS):
        selected = select_turn(tests, turn, dict.fromkeys(files, 4.0), ["app/store/it.py"])
        assert selected[0].startswith("tests/app/store/")
        assert sum(test.startswith("tests/app/store/") for test in selected) == 40


def test_nearness_is_the_length_of_the_shared_path() -> None:
    files = [
        "tests/app/store/test_run_store.py",
        "tests/app/store/test_file_locks.py",
        "tests/app/tui/test_runs.py",
        "tests/x.py",
    ]
    assert list(nearness_of(files, ["app/store/run_store.py", "README.py"]).values()) == [3, 2, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("alone", "code"), [("assert True", 0), ("assert False", 1)], ids=["flaky", "failing"])
def test_a_failure_is_run_again_alone(
    alone: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: x\n")
    (tmp_path / "test_it.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.slow\n"
        "def test_it():\n"
        "    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
        f"    {alone}\n"
        "@pytest.mark.slow\n"
        "def test_other():\n"
        "    pass\n"
    )
    monkeypatch.setattr(rest, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(rest.__file__).parents[2]))
    monkeypatch.setattr(sys, "argv", ["rest"])
    assert rest.main() == code
    heading = "flaky" if code == 0 else "failed"
    assert f"{heading}" in capfd.readouterr().out.split("again, alone: test_it.py::test_it")[1]
