"""Names as adapters store them: the same under every version of Python that runs this, and back again."""

from __future__ import annotations

from grainstore._adapters import decoded, encoded

#: Names and what they are stored as. Some signs came with Unicode 3.2 or before, some with 4, 6, 14, 15.1 and 16.
NAMES = {
    "": "%",
    "plain name": "plain name",
    "a:b%": "a%3Ab%25",
    "caf\u00e9 \u6771\u4eac": "caf\u00e9 \u6771\u4eac",
    "cafe\u0301": "cafe%CC%81",
    "line\n\x7f\x85": "line%0A%7F%C2%85",
    "\ufeffbom": "%EF%BB%BFbom",
    "\ud800": "%ED%A0%80",
    "\u2615 tea": "%E2%98%95 tea",
    "mood\U0001f600": "mood%F0%9F%98%80",
    "mood\U0001fae0 \u00e9": "mood%F0%9F%AB%A0 %C3%A9",
    "\u1ac1": "%E1%AB%81",
    "\U0002ebf0": "%F0%AE%AF%B0",
    "\u1c89\U00011383": "%E1%B2%89%F0%91%8E%83",
    "\u0378": "%CD%B8",
    "\U00011099\U000110ba": "%F0%91%82%99%F0%91%82%BA",
    "\U0002f868": "%F0%AF%A1%A8",
}


def test_names_are_stored_as_they_always_were() -> None:
    assert {name: encoded(name) for name in NAMES} == NAMES
    assert {decoded(stored): stored for stored in NAMES.values()} == NAMES
