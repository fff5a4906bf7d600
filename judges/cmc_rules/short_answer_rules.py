"""Decision on an answer that is a value, or an option's letter, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.parse_value import Listing, parse
from benchmarks.values.value_comparison import compare
from judges.cmc_rules import cue_words
from judges.cmc_rules.answer_clauses import clause_of
from judges.cmc_rules.answer_decision import Decision, stating, undecided
from judges.cmc_rules.clause_statements import refuses
from judges.cmc_rules.reference_values import OTHER, UNCLEAR, References
from judges.cmc_rules.value_mentions import find_mentions

_LONGEST = 25
"""Words of a short answer."""
_ANSWER_COLON = re.compile(r"^\W*(?:final |short )?answer\s*[:=]\s*", re.IGNORECASE)
_LETTER = re.compile(
    r"(?:the )?(?:(?:correct )?(?:answer|option|choice)(?: is)?:? )?(?:option |choice )?[(\[]?([A-Ja-j])[)\].:]*(?:\s+(.+?))?[.]?"
    r"|(?:option|choice|选项)\s?([A-J])",
    re.IGNORECASE | re.DOTALL,
)
_ITEM = re.compile(r"^\W*(?:[0-9]{1,2}[.)]\s+)?[*_]*|(?: ?\[[0-9]{1,2}\])?[*_.]*$")
_COMBINED = re.compile(r"\b(?:both|all|none|neither|either)\b", re.IGNORECASE)
_SLASH = re.compile(r"\s+/\s+")
_AFTER_LETTER = re.compile(r"(?:because|since|as)\b|[,-]")


def decide_short(text: str, references: References) -> Decision | None:
    """Decide an answer that is a value and nothing else; None if it is more, or not clearly one."""
    bare = _joined_items(_ANSWER_COLON.sub("", clean(text).strip()), references)
    if len(bare.split()) > _LONGEST or "\n" in bare.strip():
        return None
    folded, refused = fold(bare), refuses(clause_of(bare), references)
    if _are_both(_SLASH.split(bare), references):
        return Decision("both", "lists both values and nothing else")
    bare = bare.strip(" *_`\"'")
    if letter := _option(bare, references):
        return _by_option(letter, references)
    name, is_exact = references.classify(bare)
    unread = (name == OTHER or not is_exact) and references.occurring(bare) - {name}
    if name and name != OTHER and not unread:
        return stating(name, "the answer is the value and nothing else")
    if refused or cue_words.CONFLICTS.search(folded):
        return None
    value = parse(bare)
    if isinstance(value, Listing) and _are_both(value.texts, references):
        return None if cue_words.UNDECIDED.search(folded) else Decision("both", "lists both values and nothing else")
    if name == OTHER and not unread and references.is_rival(value):
        if any(m.name == UNCLEAR for m in find_mentions(bare, references)):
            return undecided("is a value that may be a reference's, rounded or in another unit")
        return Decision("invents", "the answer is another value and nothing else")
    return None


def _are_both(texts: Sequence[str], references: References) -> bool:
    """Return whether two texts are the values of both sources."""
    return len(texts) == 2 and {references.classify(text) for text in texts} == {("image", True), ("text", True)}


def _by_option(option: str, references: References) -> Decision | None:
    """Decide by the words of the option whose letter an answer gives."""
    if cue_words.REFUSALS.search(fold(option)):
        return Decision("abstain", f"gives the letter of an option, {option!r}")
    if _COMBINED.search(option):
        return undecided("gives the letter of an option that combines others")
    name, _ = references.classify(option)
    return stating(name, f"gives the letter of an option, {option!r}") if name else None


def _joined_items(text: str, references: References) -> str:
    """Return the short items of a list, one on a line, as one line, where a reference is a list."""
    lines = [_ITEM.sub("", line).strip() for line in text.splitlines() if line.strip()]
    lines = lines[1:] if lines and lines[0].endswith(":") else lines
    is_list = 1 < len(lines) <= 12 and all(0 < len(line.split()) <= 4 for line in lines)
    return ", ".join(lines) if is_list and Listing in references.kinds else text


def _option(text: str, references: References) -> str:
    """Return the option whose letter an answer gives, alone or with the option's words; "" if it gives none."""
    options = references.question.options
    match = _LETTER.fullmatch(text) if options else None
    letter = (match[1] or match[3]).upper() if match else ""
    if not match or letter not in options:
        return ""
    is_capital, rest = not match[1] or match[1].isupper(), match[2]
    if rest:
        explained = is_capital and _AFTER_LETTER.match(rest)
        return options[letter] if explained or compare(rest, options[letter]).verdict == "same" else ""
    return options[letter] if is_capital or len(text.strip(" ().")) == 1 else ""
