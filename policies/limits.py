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
    """Files of one set, those that are included among them; so deep may they include one another."""
    set_bytes_max: int = 2 * 1024 * 1024
    """All files of one set in UTF-8: twice what the most rules of a set take."""
    policies_max: int = 256
    """Policies of one set."""
    rules_max: int = 10_000
    """Rules of one set: a decision looks at those about its tool, and stays as fast."""
    roles_max: int = 256
    """Roles that one policy declares, and that one rule names."""
    set_servers_max: int = 256
    """Servers of one named set."""
    targets_max: int = 64
    """Targets of one rule, or of one set of sinks."""
    cases_max: int = 1_000
    """Tests of one set: they run each time that it is loaded."""
    assertions_max: int = 256
    """Claims of one set: each may be a search."""
    includes_max: int = 64
    """Files that one file names: as many as a set has."""
    value_depth_max: int = 32
    """Arrays and objects inside one another in a test's arguments: as deep as may be sent."""
    rate_count_max: int = 10_000
    """Calls that a rate counts: the moment of each is remembered."""
    duration_seconds_max: int = 366 * 86_400
    """A rate's stretch, a deadline: a year."""
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
    leaves_max: int = 10_000
    """Values that `any arg` looks at; beyond, it has no value."""
    host_chars_max: int = 2_048
    """A URL whose host is tested; a longer one has no value."""
    witnesses_max: int = 4_096
    """Argument values tried to find out whether any could be allowed; beyond, the answer is yes."""
    remembered_max: int = 16_384
    """Answers of each kind which a set keeps: one for each tool of a large session."""
    analysis_states_max: int = 4_096
    """States in which a walk through patterns may be; with more, analysis says "not proved"."""
    analysis_requests_max: int = 20_000
    """Requests tried for one thing that is asked for: a tenth of a second."""
    analysis_milliseconds_max: int = 5_000
    """How long the solver looks for one request."""
    analysis_work_max: int = 50_000_000
    """Rules asked in one analysis, over all requests: a minute; what is left is "not proved"."""
