"""Positions of texts and images in a prompt, whatever the texts contain."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.vocabulary import Media, Message, Part, Text
from mlx_backends.core.prompts.chat_prompt import Prompter
from mlx_backends.core.prompts.message_forms import PromptError
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.mlx_load import load
from tests.mlx_backends.conftest import answer, request_of
from tests.support.tiny_models import internvl_chat, lfm2_vl

CONTROL = [
    "<|im_end|>",
    "<|im_start|>",
    "<|image_pad|>",
    "<|vision_start|><|image_pad|><|vision_end|>",
    "<|endoftext|>",
    "<|video_pad|>",
    "<image>",
    "<think>",
    "</think>",
    "<|image_1|>",
]


@pytest.fixture(scope="module")
def tiny_parts(tiny: Path) -> tuple[Any, Any]:
    return load(tiny)


@pytest.fixture(scope="module")
def prompter(tiny_parts: tuple[Any, Any]) -> Prompter:
    model, processor = tiny_parts
    return Prompter(processor, model.config)


def user(*parts: Part) -> tuple[Message, ...]:
    return (Message("user", parts),)


def picture(number: int = 0) -> Media:
    return Media(f"{number:064x}", ".png")


def test_prompt_keeps_the_order_of_the_parts(prompter: Prompter) -> None:
    image = "<|vision_start|><|image_pad|><|vision_end|>"
    got = prompter.prompt(user(Text("a "), picture(1), Text("\n"), picture(2), Text(" b"), Text("c ")))
    assert got.text == f"<|im_start|>user\na {image}\n{image} bc <|im_end|>\n<|im_start|>assistant\n"
    assert got.images == (picture(1), picture(2))
    assert got.segments == ("<|im_start|>user\na ", "\n", " bc <|im_end|>\n<|im_start|>assistant\n")


def test_prompt_matches_mlx_vlm(prompter: Prompter, tiny_parts: tuple[Any, Any]) -> None:
    from mlx_vlm.prompt_utils import apply_chat_template

    model, processor = tiny_parts
    ours = prompter.prompt(user(picture(), Text("What is it?")))
    assert ours.text == apply_chat_template(processor, model.config, "What is it?", num_images=1)


@pytest.mark.parametrize("token", CONTROL)
def test_control_token_in_text_is_neutralised(prompter: Prompter, token: str) -> None:
    got = prompter.neutralise(f"before {token} after")
    assert got.replace(" ", "") == f"before{token}after"
    assert token not in got
    assert prompter.neutralise(got) == got


def test_control_token_split_over_parts_is_neutralised(prompter: Prompter) -> None:
    got = prompter.prompt(user(Text("x <|im_"), Text("end|> y")))
    assert got.text == "<|im_start|>user\nx < |im_end|> y<|im_end|>\n<|im_start|>assistant\n"


def test_ordinary_text_is_left_as_it_is(prompter: Prompter) -> None:
    text = "a < b, <table>, [1], | x |, 5 > 3, <|, |>, ünïcode 図\u200b"
    assert prompter.neutralise(text) == text


hostile = st.lists(
    st.one_of(st.sampled_from([*CONTROL, "<|im_", "end|>", "Rashomon000001Text", "'type':", "{{ 1 }}"]), st.text()),
    max_size=6,
).map("".join)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(hostile, min_size=1, max_size=4))
def test_no_text_adds_an_image_or_ends_the_turn(
    prompter: Prompter, tiny_parts: tuple[Any, Any], texts: list[str]
) -> None:
    parts: list[Part] = [part for number, text in enumerate(texts) for part in (picture(number), Text(text))]
    got = prompter.prompt(user(*parts))
    tokenizer = tiny_parts[1].tokenizer
    ids = tokenizer(got.text)["input_ids"]
    count = {token: ids.count(tokenizer.convert_tokens_to_ids(token)) for token in ("<|image_pad|>", "<|im_end|>")}
    assert count == {"<|image_pad|>": len(texts), "<|im_end|>": 1}
    assert got.text.count("<|im_end|>") == 1
    for text, segment in zip(texts, got.segments[1:], strict=True):
        displayed = segment.removesuffix("<|im_end|>\n<|im_start|>assistant\n")
        assert "".join(displayed.split()) == "".join(prompter.neutralise(text).split())


class FakeTokens:
    """The input ids of a prepared prompt, as far as they are looked at."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids

    def flatten(self) -> FakeTokens:
        return self

    def tolist(self) -> list[int]:
        return self._ids


@pytest.mark.parametrize("damage", ["cut", "no image", "moved", "one more", "swapped", "none"])
def test_inputs_that_differ_from_the_prompt_are_refused(
    prompter: Prompter, tiny_parts: tuple[Any, Any], damage: str
) -> None:
    tokenizer = tiny_parts[1].tokenizer
    prompt = prompter.prompt(user(Text("first "), picture(), Text("second")))
    ids: list[int] = tokenizer(prompt.text)["input_ids"]
    image = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    at = ids.index(image)
    expanded = [*ids[:at], image, image, *ids[at:]]
    swapped = tokenizer(prompt.text.replace("first", "third"))["input_ids"]
    damaged = {
        "cut": expanded[:-3],
        "no image": [token for token in expanded if token != image],
        "moved": [image, *(token for token in expanded if token != image)],
        "one more": [*expanded, image],
        "swapped": swapped,
        "none": expanded,
    }[damage]
    if damage == "none":
        prompter.check_inputs(prompt, {"input_ids": FakeTokens(damaged)})
    else:
        with pytest.raises(PromptError, match="processor"):
            prompter.check_inputs(prompt, {"input_ids": FakeTokens(damaged)})


def with_template(tiny: Path, template: str) -> Prompter:
    model, processor = load(tiny)
    processor.chat_template = template
    processor.tokenizer.chat_template = template
    return Prompter(processor, model.config)


IMAGES_FIRST = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content if c.type == 'image' %}<|image_pad|>{% endfor %}\
{% for c in m.content if c.type == 'text' %}{{ c.text }}{% endfor %}{% endif %}<|im_end|>
{% endfor %}"""
STRINGS_ONLY = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
NO_IMAGES = """{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content | replace('<', '') }}{% else %}\
{% for c in m.content %}{{ c.text | default('') | replace('<', '') }}{% endfor %}{% endif %}{% endfor %}"""
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"


@pytest.mark.parametrize("template", [IMAGES_FIRST, STRINGS_ONLY])
def test_template_that_moves_parts_gets_inline_placeholders(tiny: Path, template: str) -> None:
    got = with_template(tiny, template).prompt(user(Text("see "), picture(1), Text(" and "), picture(2), Text(".")))
    assert got.text.strip() == "<|im_start|>user\nsee <|image_pad|> and <|image_pad|>.<|im_end|>"


def test_template_that_prints_lists_gets_a_string(tiny: Path) -> None:
    got = with_template(tiny, STRINGS_ONLY).prompt(user(Text("hello")))
    assert got.text == "<|im_start|>user\nhello<|im_end|>\n"


def test_control_token_from_normalisation_is_an_error(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "normalising")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    added = [{**token, "normalized": True} for token in tokenizer["added_tokens"]]
    changed = {**tokenizer, "normalizer": {"type": "NFKC"}, "added_tokens": added}
    (folder / "tokenizer.json").write_text(json.dumps(changed))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**settings, "tokenizer_class": "PreTrainedTokenizerFast"})
    )
    model, processor = load(folder)
    prompter = Prompter(processor, model.config)
    assert prompter.prompt(user(Text("wide: \uff11"))).text
    with pytest.raises(PromptError, match="could not be neutralised"):
        prompter.prompt(user(Text("\uff1c|im_end|\uff1e")))


def test_a_template_that_drops_images_is_an_error(tiny: Path) -> None:
    prompter = with_template(tiny, NO_IMAGES)
    assert prompter.prompt(user(Text("no image"))).text == "user: no image"
    with pytest.raises(PromptError, match="no image can be put into its prompt"):
        prompter.prompt(user(Text("see "), picture()))


def test_a_template_without_a_system_role_gets_its_text_before_the_question(tiny: Path) -> None:
    prompter = with_template(tiny, NO_SYSTEM + IMAGES_FIRST)
    system = Message("system", (Text("be good"),))
    assert "user\nbe good\n\nhello" in prompter.prompt((system, *user(Text("hello")))).text
    with pytest.raises(PromptError, match="System role not supported"):
        prompter.prompt((system,))


def test_a_template_that_drops_a_turn_is_an_error(tiny: Path) -> None:
    prompter = with_template(tiny, IMAGES_FIRST.replace("in messages", "in messages[:1]"))
    with pytest.raises(PromptError, match="order"):
        prompter.prompt((*user(Text("one")), Message("assistant", (Text("two"),))))


def test_images_between_texts_keep_their_place(tmp_path: Path) -> None:
    model, processor = load(internvl_chat(tmp_path / "internvl"))
    prompter = Prompter(processor, model.config)
    middle = prompter.prompt(user(Text("see "), picture(), Text(" there <image>")))
    assert middle.text == "User: see <image> there < image>\nAssistant:\n"
    assert prompter.prompt(user(picture(), Text("there"))).text == "User: <image>\nthere\nAssistant:\n"


def test_opening_token_occurs_once(tmp_path: Path) -> None:
    folder = lfm2_vl(tmp_path / "lfm2")
    backend = load_backend(str(folder), lambda media: tmp_path / media.name)
    prompt = "<|startoftext|><|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    once = load(folder)[1].tokenizer(prompt, add_special_tokens=False)["input_ids"]
    assert answer(backend, request_of(Text("hello"))).prompt_tokens == len(once)
