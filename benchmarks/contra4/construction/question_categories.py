"""Categories of constructed questions: a model names a topic, which keywords assign to a category (Appendix D).

The prompt is the paper's. It says that topics "are then grouped based on keyword matching" without the keywords; these
are ours, made from the names of the published categories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.contra4.contra4_constants import CATEGORIES

OTHER = CATEGORIES[0]

_TASK = (
    "You are tasked with categorizing a question that compares or evaluates inputs based on a specific property (e.g., which "
    "input is more positive, has more action, etc.).\n\nExample Questions and Outputs:\n\n"
)
_EXAMPLES = (
    (
        "Which input is more positive in tone?",
        "Sentiment Analysis",
        "The question explicitly asks about emotional tone, a sentiment-related property.",
    ),
    (
        "Which video has more action?",
        "Activity Level",
        "The question focuses on the level of dynamism or activity in the input videos.",
    ),
    (
        "Which object is larger?",
        "Size Comparison",
        "The question compares a specific property, size, between inputs.",
    ),
    (
        "Which scene is more likely to involve human presence?",
        "Human Presence",
        "The question asks about the likelihood of human presence",
    ),
    (
        "Which scene involves more unpredictable or sudden changes?",
        "Dynamic Changes",
        "The question asks about the level of unpredictability or sudden changes in the scene.",
    ),
)

LONGEST_TOPIC = 80
"""The maximum characters of a topic; longer ones are no topic."""

_LABEL = re.compile(r"\A\W*category\W*:\s*", re.IGNORECASE)
_REASON = re.compile(r"\breasoning\s*:", re.IGNORECASE)

_KEYWORDS: Mapping[str, str] = {
    "Audio, Sound & Music": r"audi|sound|music|nois|loud|acoustic|voice|speech|volume|melod|rhythm|instrument",
    "Threats, Risks & Safety": r"threat|risk|safe|danger|hazard|emergen|urgen|violen|conflict|weapon|disaster|harm",
    "Emotions & Sentory Experiences": (
        r"emotion|sentiment|mood|sens(?:e|or|ation)|feel|tone|calm|relax|tranquil|seren|peace|tension|excite|joy|fear|stress"
        r"|comfort|atmospher|chaos|chaotic|aesthetic|beaut|humou?r|playful|nostalg|elegan"
    ),
    "Time, Space & Location": r"time|tempor|histor|era|season|space|spatial|locat|distan|place|geograph|position|age",
    "Motion & Physical Activity": (
        r"motion|mov(?:e|ing)|physical|activit|action|dynami|speed|energ|sport|exercis|danc|vigor|effort|exert"
    ),
    "Humans, Animals & Social Behavior": (
        r"human|people|person|animal|pet|wildlife|social|behavio|interact|communit|famil|relationship|crowd|cultur"
        r"|communicat|child|collabor|cooperat"
    ),
    "Environmental & Scene Context": (
        r"environment|scen(?:e|ic)|context|natur|outdoor|indoor|weather|landscape|setting|urban|rural|climate|background"
        r"|habitat|ecolog"
    ),
    "Objects, Tools & Technology": (
        r"object|tool|technolog|mechan|machin|devic|vehicle|transport|material|textur|colou?r|shape|size|structur|furnitur"
        r"|food|cloth|design|electronic|function|weight|equipment|construct"
    ),
}
"""The beginnings of words that assign a topic, the first category that matches; the order of the more specific ones first."""

_PATTERNS = {name: re.compile(rf"\b(?:{words})", re.IGNORECASE) for name, words in _KEYWORDS.items()}


def category_prompt(question: str) -> str:
    """Return the prompt of Appendix D, which requests the topic of a question."""
    examples = (f'Question: "{q}"\nCategory: {topic}\nReasoning: {reason}' for q, topic, reason in _EXAMPLES)
    return _TASK + "\n\n".join((*examples, f"Question: {question}\nCategory:"))


def parse_topic(reply: str) -> str | None:
    """Return the topic on the first line of a reply; None if there is none."""
    line = next((line.strip() for line in reply.splitlines() if line.strip()), "")
    topic = _REASON.split(_LABEL.sub("", line), maxsplit=1)[0].strip(" \"'*.“”")
    return topic if 0 < len(topic) <= LONGEST_TOPIC and topic.isprintable() else None


def group_topic(topic: str) -> str:
    """Return the category of a topic: the first whose keywords begin one of its words, else Other."""
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(topic)), OTHER)
