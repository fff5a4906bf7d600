"""Fifty prompts for a real language model: short and long, in several languages, with digits, code and earlier turns."""

from __future__ import annotations

from benchmarks.vocabulary import Decoding, Message, Request, Text

_SHORT = (
    "Hi",
    "What is the capital of France?",
    "Reply with the single word yes.",
    "Name three colours.",
    "Is the sky blue? Answer yes or no.",
    "What is the opposite of hot?",
    "Finish the sentence: the cat sat on the",
    "Who wrote Romeo and Juliet?",
    "Translate 'thank you' into Spanish.",
    "Give me a synonym of big.",
    "?",
    "SHOUT BACK AT ME!!!",
)
_DIGITS = (
    "What is 7 + 5?",
    "Repeat this number: 9081726354",
    "The bar for 2015 is 41.7 and that for 2016 is 38.2. Which year is higher?",
    "Sort these: 12, 7, 103, 45, 9.",
    "1, 2, 3, 4,",
    "How many days are in 3 weeks?",
    "Read the value: £1,234,567.89",
    "Is 17 a prime number? Answer with one word.",
)
_LANGUAGES = (
    "Was ist die Hauptstadt von Österreich?",
    "¿Cuántos días tiene una semana?",
    "Où est la bibliothèque ?",
    "日本の首都はどこですか？",
    "Сколько будет два плюс два?",
    "ما هي عاصمة مصر؟",
    "今天天气怎么样？",
    "नमस्ते, आप कैसे हैं?",
    "Quanto fa dieci meno quattro?",
    "🙂👍🏽 What do these mean?",
)
_CODE = (
    "Write a Python function that adds two numbers.",
    "```python\nfor i in range(3):\n\tprint(i)\n```\nWhat does this print?",
    "Write one line of SQL that counts the rows of the table users.",
    'Fix this JSON: {"a": 1, "b": [2, 3}',
    "<p>Hello</p> What does this HTML show?",
    "Reply with JSON only: the key is label, the value is TEXT.",
    "What does `git status` do?",
    "x = 3\n\n\n    y = x ** 2   \n\nWhat is y?",
)
_SENTENCE = (
    "In {year} the harbour of {place} handled {count} ships, which was {share} percent of all ships of that coast. "
)
_PLACES = ("Dover", "Genoa", "Kobe", "Lagos", "Bergen", "Cádiz", "Gdańsk", "Porto")


def _report(sentences: int) -> str:
    lines = (
        _SENTENCE.format(year=1990 + n, place=_PLACES[n % len(_PLACES)], count=120 + 37 * n, share=3 + n % 9)
        for n in range(sentences)
    )
    return "".join(lines)


_LONG = tuple(f"{_report(size)}\n\n{question}" for size, question in (
    (2, "Which harbour is named first?"),
    (3, "How many ships did Genoa handle?"),
    (5, "Summarise this in one sentence."),
    (8, "Which place comes last?"),
    (12, "Answer with a year only: when did Kobe handle ships?"),
))  # fmt: skip

_CONVERSATIONS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("system", "You answer with one word."), ("user", "What colour is grass?")),
    (("system", "You answer with one word."), ("user", "What colour is snow?")),
    (("system", "You are a careful auditor. " + _report(2)), ("user", "Which harbours are in the report?")),
    (("system", "You are a careful auditor. " + _report(2)), ("user", "Is Kobe in the report?")),
    (("user", "My name is Ada."), ("assistant", "Hello Ada!"), ("user", "What is my name?")),
    (
        ("system", "Reply in French."),
        ("user", "Good morning."),
        ("assistant", "Bonjour !"),
        ("user", "How are you?"),
    ),
    (("user", "Count to three."), ("assistant", "1, 2, 3"), ("user", "Now to five.")),
)


def real_requests(count: int = 50, max_tokens: int = 12) -> list[Request]:
    """Return ``count`` requests, spread evenly over the fifty, for greedy answers of up to ``max_tokens`` tokens."""
    single = [(("user", text),) for text in (*_SHORT, *_DIGITS, *_LANGUAGES, *_CODE, *_LONG)]
    conversations = [*single, *_CONVERSATIONS]
    assert len(set(conversations)) == 50
    chosen = [conversations[n * 50 // count] for n in range(count)]
    return [
        Request(f"real-{n}", 0, tuple(Message(role, (Text(text),)) for role, text in turns), Decoding(max_tokens))  # type: ignore[arg-type]
        for n, turns in enumerate(chosen)
    ]
