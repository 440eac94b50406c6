"""Which variables a server's process gets: a short list from ours, and what is declared for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_client.protocol.errors import StartError

__all__ = ["INHERITED_NAMES", "INHERITED_PREFIXES", "server_environment", "withheld_names"]

INHERITED_NAMES: Final = frozenset(
    {
        "CURL_CA_BUNDLE",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NODE_EXTRA_CA_CERTS",
        "PATH",
        "REQUESTS_CA_BUNDLE",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "TZ",
        "USER",
    }
)
"""What programs need to find files, to speak the user's language, and to know whom TLS may trust here.

On purpose nothing that is, points to, or may contain a secret: no tokens, no agents' sockets, no
proxies (their addresses carry passwords), nothing of the session bus.
"""

INHERITED_PREFIXES: Final = ("LC_",)
"""The same, by the beginning of the name."""

_NEEDED_TO_GO_OUT: Final = frozenset(
    {
        "ALL_PROXY",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "NPM_CONFIG_REGISTRY",
        "PIP_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "UV_INDEX_URL",
    }
)
"""In capitals; programs read most of them in small letters as well."""


def server_environment(declared: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a server's process.

    `inherited` is filtered by the allow-list; `declared` is taken as it is, and wins. Raises
    StartError for what no environment can hold. No value appears in the error.
    """
    environment = {
        name: value
        for name, value in inherited.items()
        # an exported shell function is code, whatever its name
        if _is_inherited(name) and not value.startswith("()")
    }
    for name, value in declared.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise StartError(f"{name!r} cannot be a variable of a process", stage="start")
        environment[name] = value
    return environment


def withheld_names(declared: Mapping[str, str], inherited: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that often are why a server comes to nothing: set here, and not given to it.

    They say how to get out of this network, and to which index of packages. In alphabetical order.
    """
    return tuple(
        sorted(
            name
            for name in inherited
            if name.upper() in _NEEDED_TO_GO_OUT and name not in declared and inherited[name]
        )
    )


def _is_inherited(name: str) -> bool:
    return name in INHERITED_NAMES or name.startswith(INHERITED_PREFIXES)
