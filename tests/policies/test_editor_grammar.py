"""The editors' grammar has every word of the language, and takes words from nowhere else."""

from __future__ import annotations

import json
import re
from typing import Final, cast

from policies.parsing.syntax import GRAMMAR
from tests.architecture.sources import ROOT

FILE: Final = ROOT / "editors" / "remit-policy.tmLanguage.json"
SPELLED: Final = {"ANY_SERVER": "server", "ANY_ARG": "arg", "ALL_ARG": "arg", "SINK_OF": "sink"}
TOKENS: Final = ("NAME", "NAMES", "POINTER", "STRING", "NUMBER", "DURATION", "SIZE", "STARRED")
SIGNS: Final = ("COMMENT", "SPACE", "EQ", "NE", "LT", "LE", "GT", "GE")


def patterns() -> list[re.Pattern[str]]:
    grammar = cast("dict[str, dict[str, dict[str, str]]]", json.loads(FILE.read_text("utf-8")))
    found = [each["match"] for each in grammar["repository"].values() if "match" in each]
    return [re.compile(each) for each in found]


def words_of_the_language() -> set[str]:
    rules = GRAMMAR.partition("\nNAME:")[0]
    quoted = set(re.findall(r'"([a-z_]+)"', rules))
    named = set(re.findall(r"\b[A-Z][A-Z_]+\b", rules)) - {*TOKENS, *SIGNS, *SPELLED}
    plain = {name.removesuffix("_TYPE").lower().replace("_", " ") for name in named}
    return quoted | {word for name in plain for word in (name.replace(" ", "_"), name)} - {""}


def test_every_word_of_the_language_has_a_colour() -> None:
    seen = patterns()
    dull = {
        word
        for word in words_of_the_language()
        if not any(pattern.fullmatch(word) for pattern in seen)
        and not any(pattern.fullmatch(word.replace("_", " ")) for pattern in seen)
        and not any(pattern.fullmatch(word.replace(" ", "_")) for pattern in seen)
    }
    # words that are coloured with what stands beside them
    assert dull <= {
        "by default",
        "by_default",
        "arg",
        "uri",
        "hint",
        "args",
        "only",
        "digest",
        "unknown",
        "pinned",
    }
