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
# How far before its end a part may be cut, so that no word is.
_SLACK = 256

# A word with its neighbours: no quote, no backslash and no space.
_WORD = re.compile(r'[^\s"\\]*[^\x00-\x7f][^\s"\\]*')
# What is escaped in JSON, and the rest of the word behind it, which full text would read as one.
_ESCAPED = re.compile(r'\\(?:u[0-9a-f]{4}|.)([^\s"\\]*)')
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True)
class Text:
    """A value as JSON."""

    json: str
    #: Words of it that full text does not find in the JSON, since they stand beside an escape.
    words: str

    def parts(self) -> list[str]:
        """The JSON in parts that a grain has room for."""
        return list(_parts(self.json))


def text_of(value: Mapping[str, Any], of: str) -> Text:
    """A value as JSON. ``of`` names it in errors.

    Raises ``TypeError`` for what JSON has no form of, ``ValueError`` for NaN, infinity, lone surrogates, and a value
    that contains itself.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"the value of {of} is a dict, not {type(value).__name__}")
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        _check_names(value)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the value of {of} has a lone surrogate, which is no text of Unicode") from None
    except RecursionError:
        raise ValueError(f"the value of {of} is nested too deeply for JSON") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"the value of {of} is no JSON: {error}") from error
    return _stable(text)


def value_of(text: str) -> dict[str, Any]:
    """The value of a JSON text."""
    value: dict[str, Any] = json.loads(text)
    return value


def _check_names(value: Mapping[str, Any]) -> None:
    """Refuses names that JSON would silently make texts, such as numbers."""
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            for name, of in one.items():
                if not isinstance(name, str):
                    raise TypeError(f"names are texts, not {type(name).__name__} ({name!r})")
                if isinstance(of, (Mapping, list, tuple)):
                    waiting.append(of)
        elif isinstance(one, (list, tuple)):
            waiting.extend(of for of in one if isinstance(of, (Mapping, list, tuple)))


def _stable(text: str) -> Text:
    """A JSON text with escapes in place of what Grainstore would change."""
    words: list[str] = []
    if not is_stable(text):
        text = _WORD.sub(lambda found: _escaped(found.group(), words), text)
    if not is_stable(text):
        text = _NOT_ASCII.sub(lambda found: _escape(found.group()), text)
    if "\\" in text:
        words.extend(found.group(1) for found in _ESCAPED.finditer(text) if found.group(1))
    return Text(text, " ".join(dict.fromkeys(words)))


def _escaped(word: str, words: list[str]) -> str:
    if is_stable(word):
        return word
    normal = unicodedata.normalize("NFC", word)
    words.append("".join(sign if is_stable(sign) else " " for sign in normal))
    return _NOT_ASCII.sub(lambda found: _escape(found.group()), word)


def _escape(sign: str) -> str:
    return json.dumps(sign)[1:-1]


def _parts(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > PART_CHARACTERS:
        end = begin + PART_CHARACTERS
        space = text.rfind(" ", end - _SLACK, end)
        end = end if space < 0 else space
        yield text[begin:end]
        begin = end
    yield text[begin:]
