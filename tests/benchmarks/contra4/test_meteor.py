"""METEOR, worked out by hand, without and with the synonyms of a WordNet of two lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.contra4.construction.meteor import align, chunks, meteor, words
from benchmarks.contra4.construction.wordnet import wordnet_synonyms


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        # 6 matches in 1 chunk: 1 - 0.5 (1/6)^3.
        ("the cat sat on the mat", "the cat sat on the mat", 0.9977),
        # The alignment that crosses least has 6 chunks: 1 - 0.5.
        ("on the mat sat the cat", "the cat sat on the mat", 0.5),
        # P 6/7, R 1: 10PR / (R + 9P) = 0.98361; 2 chunks of 6 matches: 1 - 0.5 (2/6)^3.
        ("the cat was sat on the mat", "the cat sat on the mat", 0.9654),
        # Stems: dogs/dog, barking/barks. P 2/2, R 2/3: (2/3) / (0.9 + 0.1 * 2/3) = 0.68966; 1 chunk of 2: 1 - 0.5 / 8.
        ("Dogs barking", "A dog barks.", 0.6466),
        ("a red car", "two men sing", 0.0),
        ("", "a red car", 0.0),
    ],
)
def test_scores_match_manual_computation(candidate: str, reference: str, score: float) -> None:
    assert meteor(candidate, reference) == pytest.approx(score, abs=5e-5)


def test_exact_matches_precede_stem_matches() -> None:
    assert align(["dogs", "dog"], ["dog", "dogs"]) == [(0, 1), (1, 0)]
    assert align(["dogs", "dogs"], ["dog", "dogs"]) == [(0, 0), (1, 1)]
    assert chunks([(0, 0), (1, 1), (2, 4)]) == 2


@given(st.lists(st.sampled_from(["a", "dog", "dogs", "runs", "run"]), max_size=12), st.data())
def test_alignment_is_one_to_one_and_maximal(candidate: list[str], data: st.DataObject) -> None:
    reference = data.draw(st.lists(st.sampled_from(["a", "dog", "dogs", "runs", "run"]), max_size=12))
    pairs = align(candidate, reference)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    stems = {"dogs": "dog", "runs": "run"}
    left, right = ([stems.get(word, word) for word in words] for words in (candidate, reference))
    assert len(pairs) == sum(min(left.count(word), right.count(word)) for word in set(left))
    assert 0 <= meteor(" ".join(candidate), " ".join(reference)) <= 1


@pytest.mark.slow
def test_hostile_text_is_bounded() -> None:
    assert len(words("word " * 100_000)) == 200
    assert meteor("the " * 200, "the " * 150 + "cat a " * 25) > 0


# --- synonyms ------------------------------------------------------------------------------------


def write_wordnet(folder: Path) -> None:
    """A database in WordNet's format with one meaning: car, auto, motor_car."""
    folder.mkdir(parents=True)
    for name in ("cntlist.rev", "index.sense", *(f"{pos}.exc" for pos in ("adj", "adv", "noun", "verb"))):
        (folder / name).write_text("")
    (folder / "lexnames").write_text("00\tadj.all\t3\n")
    for pos in ("adj", "adv", "verb", "noun"):
        (folder / f"index.{pos}").write_text("")
        (folder / f"data.{pos}").write_text("")
    words_of = ("car", "auto", "motor_car")
    (folder / "data.noun").write_text(
        "00000000 00 n 03 " + " ".join(f"{word} 0" for word in words_of) + " 000 | a vehicle\n"
    )
    (folder / "index.noun").write_text("".join(f"{word} n 1 0 1 0 00000000\n" for word in words_of))


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    data = pytest.importorskip("nltk.data")
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    wordnet_synonyms.cache_clear()
    yield tmp_path
    wordnet_synonyms.cache_clear()


def test_synonyms_are_a_third_stage_where_wordnet_is_there(data_folder: Path) -> None:
    assert wordnet_synonyms() is None
    write_wordnet(data_folder / "corpora" / "wordnet")
    wordnet_synonyms.cache_clear()
    synonyms = wordnet_synonyms()
    assert synonyms is not None
    assert synonyms("car") == {"car", "auto"}  # lemmas of several words match no word
    assert synonyms("truck") == frozenset()
    # Without synonyms "a red" is 2 of 3; with them 3 of 3 in 1 chunk: 1 - 0.5 (1/3)^3.
    assert meteor("a red auto", "a red car") == pytest.approx(0.6250, abs=5e-5)
    assert meteor("a red auto", "a red car", synonyms) == pytest.approx(0.9815, abs=5e-5)
    assert align(["car", "auto"], ["auto", "truck"], synonyms) == [(1, 0)]
    # NLTK's own looks up stems ("automobil"), so the two are equal only for words that are their own stems.
    nltk_meteor = pytest.importorskip("nltk.translate.meteor_score")
    reader = pytest.importorskip("nltk.corpus.reader.wordnet").WordNetCorpusReader(
        str(data_folder / "corpora" / "wordnet"), None
    )
    for pair in (("a red auto", "a red car"), ("the car and a truck", "an auto passes the truck")):
        expected = nltk_meteor.single_meteor_score(pair[1].split(), pair[0].split(), wordnet=reader)
        assert meteor(*pair, synonyms) == pytest.approx(expected)


@pytest.mark.parametrize("damage", ["data.noun", "index.noun", "lexnames"])
def test_damaged_wordnet_is_no_crash(data_folder: Path, damage: str) -> None:
    write_wordnet(data_folder / "corpora" / "wordnet")
    (data_folder / "corpora" / "wordnet" / damage).write_bytes(b"\xff\x00 not a database\n" * 3)
    synonyms = wordnet_synonyms()
    assert meteor("a red auto", "a red car", synonyms) > 0.6
