"""Every bound of the policy language, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PolicyLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLimits:
    """The bounds of one policy set. A test goes one past each of them."""

    source_bytes_max: int = 256 * 1024
    """One policy file in UTF-8: about 3,000 rules, more than anybody reviews."""
    sources_max: int = 64
    """Files of one set."""
    policies_max: int = 256
    """Policies of one set."""
    rules_max: int = 1_000
    """Rules of one set: a decision may have to look at all of them."""
    roles_max: int = 256
    """Roles that one policy declares, and that one rule names."""
    set_servers_max: int = 256
    """Servers of one named set."""
    name_chars_max: int = 128
    """A name or the id of a rule: it has to fit into a line of a log."""
    string_chars_max: int = 4_096
    """A string, with its parameters filled in: the longest path of Linux."""
    number_chars_max: int = 40
    """The digits of a number: more than a double or 64 bits can tell apart."""
    pattern_chars_max: int = 512
    """A pattern for names or URIs."""
    alternatives_max: int = 64
    """Names that one pattern with braces stands for."""
    pointer_keys_max: int = 32
    """Keys of one pointer: arguments are not nested deeper."""
    options_max: int = 256
    """Values of one `in [...]`."""
    condition_depth_max: int = 32
    """Parentheses, `not`, `and`, `or` inside one another."""
    condition_tests_max: int = 64
    """Tests of one rule."""
    path_chars_max: int = 4_096
    """An argument tested with `under`; a longer one is no path and has no value."""
    witnesses_max: int = 4_096
    """Argument values tried to find out whether any could be allowed; beyond, the answer is yes."""
    remembered_max: int = 1_024
    """Answers to that question which a set keeps."""
