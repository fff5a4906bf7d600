"""Checks that the files of a model's folder belong together, before any library reads them.

Only what would change answers is refused: tensors of which a library would take one of two values, and a tokenizer whose tokens
are not the model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.models.broken_file_advice import fetch_again
from mlx_backends.models.end_tokens import end_tokens
from mlx_backends.models.weight_files import tensor_shapes, weight_files

_SPARE_TOKENS = 16
"""Tokens that a tokenizer may have beyond the embedding: Gemma 3's 1B model has one, for images, which it never reads."""

_DEFAULT_TOKENS = 2
"""The largest id of a special token that transformers writes by default, for tokenizers that have none of it too."""

_LARGEST_PADDING = 2
"""Most times as many rows as tokens an embedding may have. Published models pad theirs by a few percent."""

_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|wte|tok_embeddings|word_embeddings)\.weight$")
HEAD = re.compile(r"(^|\.)lm_head\.weight$")
"""The name of an output layer."""

_BEGINNING = re.compile(r"start|begin|^<s>$|^<bos>$")
"""A token that begins a turn or a text, by its name."""

_OTHER_PART = re.compile(r"vision|visual|audio|draft|mtp")
_MARKER = re.compile(r"[<\[{▁ ]*[<\[{|].*[>\]}|]")


def check_weights(path: Path, *, text_only: bool = False) -> None:
    """Raise ModelError where two weight files that a library reads hold the same tensor.

    mlx-lm, which loads text-only models, also reads ``model*.safetensors`` that the index does not name.
    """
    files = weight_files(path)
    if text_only:
        names = {file.name for file in files}
        files += [
            file
            for file in folder_entries(path)
            if file.suffix == ".safetensors" and file.name.startswith("model") and file.name not in names
        ]
    holders: dict[str, Path] = {}
    for file in files:
        for name in tensor_shapes(file):
            if (other := holders.setdefault(name, file)) != file:
                raise ModelError(
                    f"{path} holds {name[:120]!r} both in {other.name} and in {file.name}, so one of them is of another "
                    "model or version; remove the file that does not belong to the model."
                )


def check_tokens(path: Path, config: Mapping[str, Any], tokenizer: Mapping[str, Any] | None) -> None:
    """Raise ModelError where ``tokenizer``, the content of ``tokenizer.json``, is not that of the model in ``path``.

    None, where there is no such file, passes: other formats of tokenizers are not read here.
    """
    if tokenizer is None:
        return
    file = path / "tokenizer.json"
    words, added = _words(tokenizer), _added(tokenizer)
    rows, ids = max(_embedding_rows(_present_weights(path)), default=0), words.keys() | added.keys()
    if rows and ids:
        _check_count(file, ids, rows)
    ordinary = {number: word for number, word in words.items() if number not in added and not _MARKER.fullmatch(word)}
    for key in ("image_token_id", "image_token_index"):
        if (word := ordinary.get(_number(config, key))) is not None:
            raise _other_token(path, key, word)
    _check_end(path, words | added, ordinary, end_tokens(path, config), _number(config, "bos_token_id"))


def _check_count(file: Path, ids: Set[int], rows: int) -> None:
    """Raise ModelError where the tokens ``ids`` of a file are far more or fewer than the ``rows`` of the model's embedding."""
    beyond = sum(number >= rows for number in ids)
    if beyond > _SPARE_TOKENS:
        raise ModelError(
            f"{file} has {beyond:,} tokens beyond the {rows:,} of the model's embedding, so it is of another model; "
            f"{fetch_again(file)}."
        )
    if rows > _LARGEST_PADDING * (max(ids) + 1):
        raise ModelError(
            f"{file} has {max(ids) + 1:,} tokens, and the model's embedding {rows:,}, so it is of another model; "
            f"{fetch_again(file)}."
        )


def _check_end(
    path: Path, tokens: Mapping[int, str], ordinary: Mapping[int, str], ends: Sequence[int], begin: int
) -> None:
    """Raise ModelError where the tokens ``ends``, by which answers end, cannot be meant; some tokens are ``ordinary`` words."""
    end = _check_special_tokens(path, tokens)
    is_begun_by_a_word = begin in ordinary and begin > _DEFAULT_TOKENS
    if any(tokens.get(number) == end for number in ends) or not (end or is_begun_by_a_word):
        return
    if ends and all(number in ordinary and number > _DEFAULT_TOKENS for number in ends):
        raise _other_token(path, "eos_token_id", ordinary[ends[0]])
    for number in ends if end else ():
        if _BEGINNING.search(tokens.get(number, "")):
            raise _other_token(path, "eos_token_id", tokens[number])


def _check_special_tokens(path: Path, tokens: Mapping[int, str]) -> str | None:
    """Return the token that ``tokenizer_config.json`` names as the end of an answer; None for none.

    ``tokens`` are those of ``tokenizer.json`` by their ids. Raises ModelError where the former gives a token that is in use
    the id of another, or names an end that neither file has.
    """
    file = path / "tokenizer_config.json"
    settings = _read_settings(file)
    stated = {number: _content(token) for number, token in _mapping(settings.get("added_tokens_decoder")).items()}
    end = _content(settings.get("eos_token"))
    in_use = f"{end} {_content(settings.get('bos_token'))} {settings.get('chat_template')} {_template(path)}"
    for number, content in stated.items():
        held = tokens.get(int(number)) if str(number).isdecimal() else None
        if held is not None and content and held != content and content in in_use:
            raise _contradiction(file, content, f"token {number}, which is {held[:40]!r} there")
    more = _read_settings(path / "added_tokens.json")
    if end and tokens and end not in {*tokens.values(), *stated.values(), *more}:
        raise _contradiction(file, end, "the end of an answer, and it is missing there")
    return end


def _content(token: Any) -> str | None:
    """Return the text of a token that a file names as a text or with its properties; None for anything else."""
    token = token.get("content") if isinstance(token, Mapping) else token
    return token if isinstance(token, str) else None


def _template(path: Path) -> str:
    file = path / "chat_template.jinja"
    return file.read_text("utf-8", "replace") if file.is_file() else str(_read_settings(path / "chat_template.json"))


def _read_settings(file: Path) -> Mapping[str, Any]:
    """Return the object in a JSON file, empty without one. Raises ModelError where it cannot be read."""
    try:
        return _mapping(read_json_file(file) if file.is_file() else {})
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{file} cannot be read as JSON; {fetch_again(file)}.") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _contradiction(file: Path, token: str, what: str) -> ModelError:
    return ModelError(
        f"{file} and tokenizer.json contradict each other: the former names {token[:40]!r} as {what}, so one of them is of "
        f"another model; {fetch_again(file)}."
    )


def has_head(path: Path) -> bool | None:
    """Return whether the weights in the folder ``path`` hold an output layer of their own; None where there are no weights."""
    files = _present_weights(path)
    return any(HEAD.search(name) for file in files for name in tensor_shapes(file)) if files else None


def _present_weights(path: Path) -> list[Path]:
    """Return the weight files in the folder ``path``: none where only its processor is used, as before a training."""
    return weight_files(path) if any(file.suffix == ".safetensors" for file in folder_entries(path)) else []


def _number(config: Mapping[str, Any], key: str) -> int:
    """Return the token that ``config`` names under ``key``; -1 where it names none."""
    return number if type(number := config.get(key)) is int else -1


def _words(tokenizer: Mapping[str, Any]) -> dict[int, str]:
    """Return the tokenizer's words by their ids, without tokens added to them."""
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocabulary, Mapping):
        return {number: word for word, number in vocabulary.items() if type(number) is int}
    if isinstance(vocabulary, list):
        return {number: str(entry[0]) for number, entry in enumerate(vocabulary) if isinstance(entry, list) and entry}
    return {}


def _added(tokenizer: Mapping[str, Any]) -> dict[int, str]:
    """Return the tokens added to the tokenizer's words, such as special ones, by their ids."""
    tokens = tokenizer.get("added_tokens")
    entries = [token for token in tokens if isinstance(token, Mapping)] if isinstance(tokens, list) else []
    return {token["id"]: str(token.get("content")) for token in entries if type(token.get("id")) is int}


def _embedding_rows(files: Iterable[Path]) -> Iterator[int]:
    """Yield the rows of every tensor that is named as a language model's embedding is."""
    for file in files:
        for name, shape in tensor_shapes(file).items():
            if _EMBEDDING.search(name) and not _OTHER_PART.search(name) and len(shape) == 2:
                yield shape[0]


def _other_token(path: Path, key: str, word: str) -> ModelError:
    return ModelError(
        f"{path / 'config.json'} sets {key} to a token that is {word[:40]!r} in tokenizer.json, so the tokenizer is "
        f"of another model; {fetch_again(path / 'config.json')}."
    )
