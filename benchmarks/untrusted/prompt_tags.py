"""Tags around untrusted text in a prompt, which the text can neither close nor open."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

_CHARACTER = re.compile(
    r"&(?:amp;)*(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,31});?|\\u[\da-f]{4}|%[\da-f]{2}|.", re.DOTALL | re.IGNORECASE
)
"""A character, or one that is written as an entity of HTML, an escape of JSON or one of a URL."""

_MAY_OPEN = re.compile(r"[<&%\\]|[^\x00-\x7f]")
"""The beginning of a tag, however it is spelled. Most answers have nothing of it, and need no millisecond."""

_LOOK_ALIKES = str.maketrans("‹〈⟨❮❬ᐸ«›〉⟩❯❭ᐳ»∕⁄⧸╱аеѕոԝгѵоіυԛт", "<<<<<<<>>>>>>>////aesnwrvoiuqt")


def wrap_in_tag(text: str, tag: str) -> str:
    """Return ``text`` between ``<tag>`` and ``</tag>``; these tags within it, however they are spelled, get square brackets."""
    plain, spans = _plain_spelling(text) if _MAY_OPEN.search(text) else (text, [])
    name = r"\s*".join(map(re.escape, tag))
    parts, end = [], 0
    for match in re.finditer(rf"<[\s/\\]*{name}(?:\s*>)?", plain):
        start = spans[match.start()][0]
        closes, complete = "/" if "/" in match[0] else "", "]" if match[0].endswith(">") else ""
        parts += [text[end:start], f"[{closes}{tag}{complete}"]
        end = spans[match.end() - 1][1]
    return f"<{tag}>\n{''.join(parts)}{text[end:]}\n</{tag}>"


def _plain_spelling(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return ``text`` in small letters, without entities, invisible characters and look-alikes, and each character's span."""
    characters: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _CHARACTER.finditer(text):
        for character in _plain_characters(match[0]):
            characters.append(character)
            spans.append(match.span())
    return "".join(characters), spans


def _plain_characters(written: str) -> Iterator[str]:
    if len(written) > 1:
        written = _unescaped(written)
    for character in unicodedata.normalize("NFKD", written).translate(_LOOK_ALIKES):
        if unicodedata.category(character) not in ("Cf", "Mn", "Me"):  # zero-width characters and combining marks
            yield from character.lower().translate(_LOOK_ALIKES)


def _unescaped(written: str) -> str:
    if written[0] in "\\%":
        return chr(int(written.lstrip("\\uU%"), 16))
    while (plain := html.unescape(written)) != written:
        written = plain
    return written
