"""Values as texts of JSON, the words in them, and the parts of a text that is too long for one grain."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._adapters import is_stable

#: Characters of a part: half a MiB at most, where each takes four bytes.
PART_CHARACTERS = 128 * 1024
# Bytes of the words of a part: with half a MiB of JSON they fit a grain, which has a MiB.
_WORDS_BYTES = 384 * 1024
# The most dicts and lists that are in one another: deeper ones, Python may write and not read.
_LEVELS = 200
# How far before its end a part may be cut, so that no word is.
_SLACK = 256

# A word with its neighbours: no quote, no backslash and no space. It is looked for only where one begins.
_WORD = re.compile(r'(?<![^\s"\\])[^\s"\\]*[^\x00-\x7f][^\s"\\]*')
# Words of JSON with the escapes that they stand beside, which full text would read as one.
_JOINED = re.compile(r'(?<![^\s"\\])([^\s"\\]*)((?:\\(?:u[0-9a-f]{4}|.)[^\s"\\]*)+)')
_ESCAPE = re.compile(r"((?:\\u[0-9a-f]{4})+)|\\.")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True)
class Part:
    """A part of the JSON of a value, or all of it."""

    json: str
    #: Words of it that full text does not find in the JSON, since they stand beside an escape.
    words: str


@dataclass(frozen=True)
class Text:
    """A value as JSON, in parts that a grain has room for."""

    parts: tuple[Part, ...]


def text_of(value: Mapping[str, Any], of: str) -> Text:
    """A value as JSON. ``of`` names it in errors.

    Raises ``TypeError`` for what JSON has no form of, ``ValueError`` for NaN, infinity, lone surrogates, a value that
    contains itself, and one of more than 200 levels.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"the value of {of} is a dict, not {type(value).__name__}")
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        _check(value)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the value of {of} has a lone surrogate, which is no text of Unicode") from None
    except RecursionError:
        raise ValueError(f"the value of {of} is nested too deeply for JSON") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"the value of {of} is no JSON: {error}") from error
    return Text(tuple(Part(piece, _words(piece)) for piece in _pieces(_stable(text))))


def value_of(text: str) -> dict[str, Any] | None:
    """The value of a JSON text; None where this Python cannot read it."""
    try:
        value: dict[str, Any] = json.loads(text)
    except (RecursionError, ValueError):
        return None
    return value


def _check(value: Mapping[str, Any]) -> None:
    """Refuses names that JSON would silently make texts, such as numbers, and more levels than are read."""
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        one, level = waiting.pop()
        if level > _LEVELS:
            raise ValueError(f"it is nested more than {_LEVELS} levels deep")
        if isinstance(one, Mapping):
            for name in one:
                if not isinstance(name, str):
                    raise TypeError(f"names are texts, not {type(name).__name__} ({name!r})")
        parts = one.values() if isinstance(one, Mapping) else one
        waiting.extend((of, level + 1) for of in parts if isinstance(of, (Mapping, list, tuple)))


def _stable(text: str) -> str:
    """A JSON text with escapes in place of what Grainstore would change."""
    if not is_stable(text):
        text = _WORD.sub(lambda found: _escaped(found.group()), text)
    return text if is_stable(text) else _escaped(text)


def _escaped(word: str) -> str:
    return word if is_stable(word) else _NOT_ASCII.sub(lambda found: _escape(found.group()), word)


def _escape(sign: str) -> str:
    return json.dumps(sign)[1:-1]


def _words(text: str) -> str:
    """The words of a JSON text that stand beside an escape, as far as there is room: each once."""
    if "\\" not in text:
        return ""
    words: dict[str, None] = {}
    left = _WORDS_BYTES
    for before, rest in _JOINED.findall(text):
        joined = unicodedata.normalize("NFC", before + _ESCAPE.sub(_unescaped, rest))
        if not is_stable(joined):
            joined = "".join(sign if is_stable(sign) else " " for sign in joined)
        found = joined.split(" ")
        # Full text finds a word that has an escape behind it alone.
        for word in found[1:] if found[0] == before else found:
            if word and word not in words:
                left -= len(word.encode()) + 1
                if left < 0:
                    return " ".join(words)
                words[word] = None
    return " ".join(words)


def _unescaped(escape: re.Match[str]) -> str:
    """The signs of an escape that are of a word; a space for others."""
    units = escape.group(1)
    if units is None:
        return " "
    signs = bytes.fromhex(units.replace("\\u", "")).decode("utf-16-be", "replace")
    return "".join(sign if sign.isprintable() else " " for sign in signs)


def _pieces(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > PART_CHARACTERS:
        end = _cut(text, begin + PART_CHARACTERS)
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _cut(text: str, end: int) -> int:
    """Where a part ends: at a space or an escape a little before its end, so that no word is cut."""
    least = end - _SLACK
    cut = max(text.rfind(sign, least, end) for sign in (" ", "\\"))
    if cut < 0:
        return end
    while cut > least and text[cut] == text[cut - 1] == "\\":
        cut -= 1
    return cut
