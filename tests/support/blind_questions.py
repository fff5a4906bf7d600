"""Random closed questions that give nothing away, and giveaways to plant in them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.audit import BlindOption, BlindQuestion

WORDS = (
    "red",
    "blue",
    "green",
    "dog",
    "cat",
    "tree",
    "house",
    "car",
    "boat",
    "sun",
    "lamp",
    "chair",
    "cup",
    "road",
    "hill",
)
MODALITIES = ("audio", "image", "video", "point_cloud")


def clean_question(number: int, random_source: random.Random, options: int = 4) -> BlindQuestion:
    """Return a question whose right option is drawn from the same distribution as the others; two share a cluster."""
    draw = random_source

    def option() -> BlindOption:
        sha256 = f"{draw.getrandbits(256):064x}"
        text = f"{' '.join(draw.choices(WORDS, k=draw.randint(1, 4)))} {draw.randint(10, 9_999)}"
        return BlindOption(text, draw.choice(MODALITIES), sha256, f"scene_{draw.randint(0, 999)}.png")

    return BlindQuestion(
        id=f"q{number}",
        task="task",
        cluster=number // 2,
        question=" ".join(draw.choices(WORDS, k=draw.randint(4, 9))),
        options=tuple(option() for _ in range(options)),
        right=frozenset([draw.randrange(options)]),
        categories={"brand": draw.choice("abcdef")},
        sources={"text": " ".join(draw.choices(WORDS, k=draw.randint(8, 15)))},
        media=tuple(f"{draw.getrandbits(256):064x}" for _ in range(2)),
    )


def media_size(sha256: str) -> int:
    """Return a size that a medium's sha256 determines."""
    return int(sha256[:5], 16)


Change = Callable[[BlindQuestion, random.Random], BlindQuestion]


def of_right(change: Callable[[BlindOption], BlindOption]) -> Change:
    """Return a giveaway in the right option."""

    def planted(question: BlindQuestion, _: random.Random) -> BlindQuestion:
        options = [change(o) if place in question.right else o for place, o in enumerate(question.options)]
        return replace(question, options=tuple(options))

    return planted


def of_wrong(change: Callable[[BlindOption], BlindOption]) -> Change:
    """Return a giveaway in all wrong options."""

    def planted(question: BlindQuestion, _: random.Random) -> BlindQuestion:
        options = [o if place in question.right else change(o) for place, o in enumerate(question.options)]
        return replace(question, options=tuple(options))

    return planted


def closed(right: Callable[[BlindQuestion], bool]) -> Change:
    """Return a giveaway in which the answer is yes or no, by a property of the question."""

    def planted(question: BlindQuestion, _: random.Random) -> BlindQuestion:
        options = (BlindOption("Yes"), BlindOption("No"))
        return replace(question, options=options, right=frozenset([0 if right(question) else 1]))

    return planted


def _numbers(values: Callable[[random.Random], list[int]]) -> Change:
    """Return options that are numbers only, the first of which is the right one, in random order."""

    def planted(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
        numbers = values(draw)
        order = draw.sample(range(len(numbers)), len(numbers))
        options = tuple(BlindOption(str(numbers[place])) for place in order)
        return replace(question, options=options, right=frozenset([order.index(0)]))

    return planted


def _text(change: Callable[[str], str]) -> Callable[[BlindOption], BlindOption]:
    return lambda option: replace(option, text=change(option.text))


def _centre(draw: random.Random) -> list[int]:
    centre = draw.randint(100, 900)
    return [centre, *(round(centre * factor) for factor in (draw.uniform(0.7, 0.9), draw.uniform(1.1, 1.4), 1.6))]


def _ladder(draw: random.Random) -> list[int]:
    base = draw.randrange(101, 999, 2)
    return [base, 2 * base, 4 * base, 8 * base] if draw.random() < 0.9 else [8 * base, base, 2 * base, 4 * base]


def _endings(draw: random.Random) -> list[int]:
    return [draw.randint(10, 99) * 10 + 9, *(draw.randint(10, 99) * 10 + draw.randint(0, 8) for _ in range(3))]


def _by_category(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    return replace(question, right=frozenset([ord(question.categories["brand"]) % 4]))


def _by_modality(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    return _where(question, lambda option: option.modality == "audio")


def _where(question: BlindQuestion, test: Callable[[BlindOption], bool]) -> BlindQuestion:
    places = [place for place, option in enumerate(question.options) if test(option)]
    return replace(question, right=frozenset(places[:1] or question.right))


def _by_modality_and_brand(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    wanted = MODALITIES["abcdef".index(question.categories["brand"]) % 4]
    return _where(question, lambda option: option.modality == wanted)


def _by_size(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    largest = max(question.options, key=lambda option: media_size(option.media or ""))
    return _where(question, lambda option: option is largest)


def _first(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    return replace(question, right=frozenset([0])) if draw.random() < 0.6 else question


def _copied(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    """Wrong options are the right one with a word replaced, so that it is closest to all others."""
    right = next(iter(question.right))
    words = [*draw.sample(WORDS, 4)]
    options = [
        BlindOption(
            " ".join(draw.choice(WORDS) if place == other and other != right else w for place, w in enumerate(words))
        )
        for other in range(4)
    ]
    return replace(question, options=tuple(options))


def _decoys_repeat(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    """Wrong options are drawn from a small pool, and right ones are new."""
    decoys = draw.sample([f"decoy {word}" for word in WORDS], 4)
    options = [
        BlindOption(f"decoy {draw.getrandbits(40):x}" if place in question.right else decoys[place])
        for place in range(4)
    ]
    return replace(question, options=tuple(options))


def _stated(name: str) -> Change:
    """The right option has words of the question, or of the text."""

    def planted(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
        known = (question.question if name == "question" else question.sources["text"]).split()
        options = tuple(
            replace(option, text=" ".join(draw.choices(known if place in question.right else WORDS, k=3)))
            for place, option in enumerate(question.options)
        )
        return replace(question, options=options)

    return planted


def _alike(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    """Two files of about the same size mean yes; both have as many bytes in all as those of other questions."""
    is_alike = draw.random() < 0.5
    less = round(0x80000 * (draw.uniform(0.9, 0.99) if is_alike else draw.uniform(0.2, 0.8)))
    sizes = draw.sample([less, 0xFFFFF - less], 2)
    media = tuple(f"{size:05x}{draw.getrandbits(236):059x}" for size in sizes)
    return replace(closed(lambda _: is_alike)(question, draw), media=media)


def _alphabetical(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    """The options are strings of letters, of which the right one comes first."""
    texts = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in question.options]
    options = tuple(map(BlindOption, texts))
    return replace(question, options=options, right=frozenset([texts.index(min(texts))]))


def _offered_again(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    """Each title has one price, which is offered with it every time it is asked for; decoys are the prices of others."""
    number = int(question.id[1:])
    title = number % 25
    prices = [str(1_000 + 37 * name) for name in (title, *draw.sample([n for n in range(25) if n != title], 3))]
    order = draw.sample(range(4), 4)
    return BlindQuestion(
        question.id,
        question.task,
        number,
        question.question,
        tuple(BlindOption(prices[place]) for place in order),
        frozenset([order.index(0)]),
        {"product": str(title)},
    )


def _rare_title(question: BlindQuestion, draw: random.Random) -> BlindQuestion:
    """A title that does not fit its picture is one that was altered, which no other question has."""
    is_altered = draw.random() < 0.5
    number = int(question.id[1:]) % 10
    words = draw.sample(WORDS, 4) if is_altered else [WORDS[(number + place * 4) % len(WORDS)] for place in range(4)]
    question = replace(question, question=f"Is this the {' '.join(words)} that is shown?")
    return closed(lambda _: is_altered)(question, draw)


GIVEAWAYS: Mapping[str, Change] = {
    "first": _first,
    "longest": of_right(_text(lambda text: f"{text} with {text}")),
    "shortest": of_right(_text(lambda text: text.split()[0])),
    "one more digit": of_right(_text(lambda text: f"{text}7")),
    "greatest number": of_right(_text(lambda text: f"{text.rsplit(' ', 1)[0]} 12345")),
    "no number": of_right(_text(lambda text: text.rsplit(" ", 1)[0])),
    "a capital": of_right(_text(str.capitalize)),
    "a full stop": of_right(_text(lambda text: f"{text}.")),
    "no full stop": of_wrong(_text(lambda text: f"{text}.")),
    "decimals": of_right(_text(lambda text: f"{text}.95")),
    "a price's ending": _numbers(_endings),
    "round decoys": of_wrong(_text(lambda text: f"{text}00")),
    "base of a ladder": _numbers(_ladder),
    "between the others": _numbers(_centre),
    "decoys are its copies": _copied,
    "decoys repeat": _decoys_repeat,
    "modality": _by_modality,
    "modality by category": _by_modality_and_brand,
    "larger file": _by_size,
    "file's name": of_right(lambda option: replace(option, file_name=option.file_name.replace("scene", "truth"))),
    "file's number": of_right(lambda option: replace(option, file_name="scene_1000.png")),
    "category": _by_category,
    "words of the question": _stated("question"),
    "words of the text": _stated("text"),
    "a word of the question": closed(lambda question: "dog" in question.question.split()),
    "a word of the text": closed(lambda question: "cat" in question.sources["text"].split()),
    "a long question": closed(lambda question: len(question.question.split()) > 6),
    "a long text": closed(lambda question: len(question.sources["text"].split()) > 11),
    "brand": closed(lambda question: question.categories["brand"] in "ab"),
    "larger media": closed(lambda question: sum(map(media_size, question.media)) > 0xFFFFF),
    "order of media": closed(lambda question: media_size(question.media[0]) > media_size(question.media[1])),
    "files of a size": _alike,
    "alphabet": _alphabetical,
    "offered again": _offered_again,
    "an altered title": _rare_title,
    "mostly yes": closed(lambda question: hash(question.cluster) % 4 > 0),
    "always no": closed(lambda question: False),
    "a word of the option": of_right(_text(lambda text: f"{text} perhaps")),
}
"""The giveaways by name: each changes a clean question so that its right answer stands out."""
