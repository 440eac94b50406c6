"""What names, URIs, pointers, paths and hosts match. No regular expression of a policy is ever run.

A name is compared as it is. A URI, a path and a host are first brought into one form; where that
cannot be done without guessing, the answer is None, "no value", and the rule restricts.
"""

from __future__ import annotations

from policies.patterns.errors import PatternError
from policies.patterns.globs import glob
from policies.patterns.hosts import (
    host_in,
    host_of,
    network_in,
    parse_host,
    parse_network,
)
from policies.patterns.names import Matcher, NamePattern, covers, expand_braces, matcher_of
from policies.patterns.outlines import outline
from policies.patterns.paths import NormalPath, normal_path, path_flaw, path_like, under
from policies.patterns.pointers import parse_pointer
from policies.patterns.uris import parse_uri_pattern, uri_parts

__all__ = [
    "Matcher",
    "NamePattern",
    "NormalPath",
    "PatternError",
    "covers",
    "expand_braces",
    "glob",
    "host_in",
    "host_of",
    "matcher_of",
    "network_in",
    "normal_path",
    "outline",
    "parse_host",
    "parse_network",
    "parse_pointer",
    "parse_uri_pattern",
    "path_flaw",
    "path_like",
    "under",
    "uri_parts",
]
