"""URLs and file URIs that a server or a host names: parsed and judged, never fetched."""

from __future__ import annotations

import ipaddress
import string
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

__all__ = ["WebAddress", "fault_of_file_uri", "is_loopback", "read_address"]

_VISIBLE: Final = frozenset(string.ascii_letters + string.digits + string.punctuation)
_REFUSED: Final = frozenset('\\"<>^`{|}')
"""Visible, but no part of any URI; what browsers make of a backslash differs from what parsers do."""
_HOST_CHARS: Final = frozenset(string.ascii_letters + string.digits + "-._:")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A URL that a person may be asked to visit. It names the server's wish, and proves nothing.

    Attributes:
        url: the whole of it, as the server wrote it: to be shown whole.
        host: its host, in lower case: to be shown apart.
        is_punycode: the host's name is not what it looks like in ASCII: worth a warning.
    """

    url: str
    host: str

    @property
    def is_punycode(self) -> bool:
        """Whether a part of the host's name stands for letters beyond ASCII."""
        return any(label.startswith("xn--") for label in self.host.split("."))


def read_address(url: object, *, chars_max: int) -> WebAddress | str:
    """Return a URL that may be shown and opened on consent, or what is wrong with it.

    Only https, or http on this machine; a host; no user, no password; visible ASCII only.
    """
    if not isinstance(url, str) or not url:
        return "a URL is a text"
    if len(url) > chars_max:
        return f"a URL has more than {chars_max} characters"
    if not set(url) <= _VISIBLE or not _REFUSED.isdisjoint(url):
        return "a URL holds characters that no URL has"
    parts = _split(url)
    if parts is None:
        return "a URL is malformed"
    host = (parts.hostname or "").lower()
    if "@" in parts.netloc:
        return "a URL names a user"
    if not host or not set(host) <= _HOST_CHARS:
        return "a URL has no host that can be told"
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return WebAddress(url, host)
    return "a URL is neither https nor http on this machine"


def is_loopback(host: str) -> bool:
    """Return whether a host, as a URL names it, is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def fault_of_file_uri(uri: object, *, chars_max: int) -> str:
    """Return what is wrong with a file URI that is to be granted; empty if nothing is.

    It has an absolute path on this machine without any step up, however that is written.
    """
    if not isinstance(uri, str) or len(uri) > chars_max:
        return f"a root is a text of at most {chars_max} characters"
    if not set(uri) <= _VISIBLE or not _REFUSED.isdisjoint(uri):
        return "a root holds characters that no URI has"
    if not uri.startswith("file:///"):
        return "a root is a file URI of this machine with an absolute path"
    if "?" in uri or "#" in uri:
        return "a root has no query and no fragment"
    path = uri.removeprefix("file://")
    segments = [unquote(segment, errors="replace") for segment in path.split("/")]
    if any(segment in (".", "..") or set(segment) & set("/\\\0") for segment in segments):
        return "a root does not step up or hide a separator"
    return ""


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is no port
    except ValueError:
        return None
    return parts
