"""Constrained decoding: for any weights, tokenizer and temperature, answers conform to their form or are truncated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Choice, Decoding, Form, JSONObject, Media, Text
from mlx_backends.base import Backend
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.engine_registry import load_backend
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
WORDS = Choice(LABELS)
OBJECT = JSONObject({"label": LABELS, "sure": ("yes", "no")})
ROOM = Decoding(max_tokens=80)


def best(logits: Any) -> int:
    import mlx.core as mx

    chosen: Any = mx.argmax(logits, axis=-1)
    return int(chosen.item())


def of_form(text: str, form: Form) -> bool:
    if isinstance(form, Choice):
        return text in form.words
    value = json.loads(text)
    return list(value) == list(form.properties) and all(
        value[name] in words if words else isinstance(value[name], str) for name, words in form.properties.items()
    )


# --- through the engines --------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=["vlm-4bit", "lm-4bit", *(pytest.param(name, marks=pytest.mark.slow) for name in ("vlm", "lm"))],
)
def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pictures: Pictures
) -> Iterator[Backend]:
    """A tiny model of each engine, in full (bf16 for mlx-vlm, fp32 for mlx-lm) and in 4 bits."""
    if request.param.startswith("vlm"):
        folder: Path = request.getfixturevalue("tiny_4bit" if "4bit" in request.param else "tiny")
    else:
        folder = tmp_path_factory.mktemp("models") / request.param
        build_tiny_lm(folder, TEXTS, quantise="4bit" in request.param)
    backend = load_backend(str(folder), pictures.path)
    yield backend
    backend.close()


@pytest.mark.parametrize("count", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_random_weights_answer_in_the_form(backend: Backend, count: int) -> None:
    """Requests of each form, greedy and sampled, of each of the four models."""
    given_words = set()
    for number in range(count):
        form = (WORDS, OBJECT)[number % 2]
        decoding = replace(ROOM, temperature=float(number // 2 % 2), seed=number)
        request = replace(request_of(Text(f"Question {number}?"), decoding=decoding), form=form)
        got = answer(backend, request)
        assert (got.error, got.finish_reason) == (None, "stop")
        assert of_form(got.text, form)
        given_words.add(got.text if form is WORDS else json.loads(got.text)["label"])
    assert len(given_words) > 2


@pytest.mark.slow
def test_constrained_answer_depends_on_its_request(backend: Backend) -> None:
    request = replace(request_of(Text("What?"), decoding=replace(ROOM, temperature=1.0)), form=OBJECT)
    first = answer(backend, request)
    free = answer(backend, replace(request, form=None))
    assert answer(backend, replace(request, form=WORDS)).text in LABELS
    assert answer(backend, request).tokens == first.tokens
    assert answer(backend, replace(request, form=None)).tokens == free.tokens != first.tokens


def test_truncated_answer_has_finish_reason_length(backend: Backend) -> None:
    free = JSONObject({"why": ()})
    for form, limit in ((WORDS, 1), (OBJECT, 5), (free, 30)):
        got = answer(backend, replace(request_of(Text("Why?"), decoding=Decoding(max_tokens=limit)), form=form))
        assert got.completion_tokens is not None
        assert got.completion_tokens <= limit
        assert (got.finish_reason == "length") == (got.completion_tokens == limit)
        if got.finish_reason == "stop":
            assert of_form(got.text, form)
    assert (
        answer(backend, replace(request_of(Text("Why?"), decoding=Decoding(max_tokens=1)), form=OBJECT)).text
        == '{"'[:1]
    )


def test_impossible_form_fails_only_its_request(backend: Backend) -> None:
    got = answer(backend, replace(request_of(Text("What?")), form=Choice(())))
    assert got.error == "a choice needs at least one option, and this one has none."
    assert answer(backend, replace(request_of(Text("What?")), form=WORDS)).text in LABELS


def test_image_request_can_have_a_form(tiny: Path, pictures: Pictures) -> None:
    backend = load_backend(str(tiny), pictures.path)
    image: Media = pictures.noise(1)
    assert answer(backend, replace(request_of(image, Text("Which?"), decoding=ROOM), form=WORDS)).text in LABELS


# --- by itself ------------------------------------------------------------------------------------


def byte_level() -> Any:
    """A tokenizer that works on bytes, as those of Qwen and Llama 3 do."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<|end|>", "<|stop|>", "<|user|>")])
    return tokenizer


def sentencepiece() -> Any:
    """One that marks words with U+2581 and falls back on bytes, as those of Llama 2, Mistral and Gemma do."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, trainers

    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=120, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    merges = [tuple(merge) for merge in model["merges"]]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = trained.normalizer
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True) for token in ("<unk>", "<|end|>", "<|stop|>", "<|user|>")]
    )
    return tokenizer


class Writer:
    """Writer that follows random logits under a constraint."""

    def __init__(self, make: Callable[[], Any], ends: tuple[str, ...] = ("<|end|>", "<|stop|>")) -> None:
        from transformers import PreTrainedTokenizerFast

        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=make(), eos_token=ends[0], unk_token=None)
        self.ends = [self.tokenizer.convert_tokens_to_ids(end) for end in ends]
        self.constrainer = Constrainer(self.tokenizer, self.ends)
        self.reader = Detokenizer(self.tokenizer)

    def write(self, form: Form, seed: int, *, limit: int = 200, wider: int = 0) -> tuple[str, int | None]:
        """The text, and the token that ended it, or None where ``limit`` did."""
        import mlx.core as mx
        import numpy as np

        noise = np.random.default_rng(seed)
        (constraint,) = self.constrainer.processors(form)
        tokens = [5, 6, 7]
        for _ in range(limit):
            logits = mx.array(noise.standard_normal((1, len(self.tokenizer) + wider)).astype(np.float32))
            tokens.append(best(constraint(mx.array(tokens), logits)))
            if tokens[-1] in self.ends:
                constraint(mx.array(tokens), logits)  # engines go one further
                return self.reader.text(tokens[3:-1]), tokens[-1]
        return self.reader.text(tokens[3:]), None


@pytest.fixture(scope="module", params=[byte_level, sentencepiece], ids=lambda make: make.__name__)
def writer(request: pytest.FixtureRequest) -> Writer:
    return Writer(request.param)


any_word = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda word: word[0] != " ")


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(words=st.lists(any_word, min_size=1, max_size=5), seed=st.integers(0, 2**32))
def test_any_choice_is_written_verbatim(writer: Writer, words: list[str], seed: int) -> None:
    text, end = writer.write(Choice(tuple(words)), seed)
    assert text in words
    assert end in writer.ends


@pytest.mark.parametrize("form", [Choice(("a\u2581b", "a b")), JSONObject({"\u2581": ("x\u2581",)})])
def test_words_may_hold_the_character_that_marks_spaces(writer: Writer, form: Form) -> None:
    """SentencePiece reads it as a space, so that only bytes spell it."""
    for seed in range(4):
        text, _ = writer.write(form, seed)
        assert of_form(text, form) if isinstance(form, JSONObject) else text in form.words


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    words=st.dictionaries(any_word, st.lists(any_word, max_size=3), min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
)
def test_finished_object_conforms_to_its_schema(writer: Writer, words: dict[str, list[str]], seed: int) -> None:
    form = JSONObject({name: tuple(values) for name, values in words.items()})
    text, end = writer.write(form, seed)
    assert end in writer.ends or not all(words.values())  # only a free string may go on for ever
    if end is not None:
        assert of_form(text, form)


def test_white_space_is_bounded(writer: Writer) -> None:
    space = [token for token in range(len(writer.tokenizer)) if not writer.tokenizer.decode([token]).strip()]
    assert space
    import mlx.core as mx
    import numpy as np

    (constraint,) = writer.constrainer.processors(OBJECT)
    logits = np.zeros((1, len(writer.tokenizer)), dtype=np.float32)
    logits[0, space] = 100.0
    tokens = [0]
    for _ in range(200):
        tokens.append(best(constraint(mx.array(tokens), mx.array(logits))))
        if tokens[-1] in writer.ends:
            break
    assert of_form(writer.reader.text(tokens[1:-1]), OBJECT)


def test_both_end_tokens_end_and_prefix_words_can_end(writer: Writer) -> None:
    written = [writer.write(Choice(("NO", "NOT")), seed) for seed in range(40)]
    assert {text for text, _ in written} == {"NO", "NOT"}
    assert {end for _, end in written} == set(writer.ends)


def test_missing_end_tokens_are_ignored(writer: Writer) -> None:
    form_of = Constrainer(writer.tokenizer, [*writer.ends, 99_999]).processors
    assert len(form_of(WORDS)) == 1
    with pytest.raises(ModelError, match="no token that ends an answer"):
        Constrainer(writer.tokenizer, [99_999]).processors(WORDS)


def test_logits_beyond_the_vocabulary_are_never_chosen(writer: Writer) -> None:
    for seed in range(10):
        assert writer.write(WORDS, seed, wider=200)[0] in LABELS


def test_control_tokens_are_not_text(writer: Writer) -> None:
    for seed in range(20):
        assert writer.write(Choice(("<|user|>", "<|end|>", "A")), seed)[0] in ("<|user|>", "<|end|>", "A")


def test_textual_end_token_does_not_end_an_answer() -> None:
    writer = Writer(byte_level, ends=("<|end|>", "T"))
    assert {writer.write(Choice(("NEAR", "FAR")), seed)[0] for seed in range(20)} == {"NEAR", "FAR"}
    with pytest.raises(ModelError, match="no token of this model"):
        writer.write(Choice(("T", "TT")), 0)


def test_logits_processors_are_fresh_per_request(writer: Writer) -> None:
    (first,), (second,) = writer.constrainer.processors(WORDS), writer.constrainer.processors(WORDS)
    assert first is not second
    assert writer.write(WORDS, 3) == writer.write(WORDS, 3)
    assert writer.constrainer.processors(None) == []


def test_a_token_outside_the_form_is_an_error(writer: Writer) -> None:
    import mlx.core as mx

    (constraint,) = writer.constrainer.processors(WORDS)
    logits = mx.zeros((1, len(writer.tokenizer)))
    constraint(mx.array([1]), logits)
    (wrong,) = writer.tokenizer.encode("w", add_special_tokens=False)[-1:]
    with pytest.raises(ModelError, match="left the requested form"):
        constraint(mx.array([1, wrong]), logits)


def test_unreadable_tokenizer_leaves_the_answer_unconstrained() -> None:
    assert Constrainer(SimpleNamespace(), [1]).processors(WORDS) == []


def test_half_precision_is_preserved(writer: Writer) -> None:
    import mlx.core as mx
    import numpy as np

    (constraint,) = writer.constrainer.processors(WORDS)
    masked = constraint(mx.array([1]), mx.zeros((1, len(writer.tokenizer)), dtype=mx.bfloat16))
    assert masked.dtype == mx.bfloat16
    assert 1 < int(np.array(masked == 0).sum()) < 20
