"""Fuzz targets of short texts that decide much: header values, challenges, templates, URIs, policies."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from mcp_client.net.endpoint import within_origin
from mcp_client.net.http.encoding import encode_head
from mcp_client.net.http.errors import RequestRefusedError
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.http.challenges import (
    CHALLENGES_MAX,
    PARAMETERS_MAX,
    Challenge,
    read_challenges,
)
from mcp_client.protocol.http.headers import decode_value, encode_value
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.templates import (
    expand_template,
    match_template,
    template_variables,
)
from mcp_client.protocol.urls import WebAddress, fault_of_file_uri, is_loopback, read_address
from policies import Policy, PolicyError, PolicyLimits, parse

__all__ = ["auth_challenges", "header_values", "policy_files", "uri_templates", "uris"]

LIMITS = ClientLimits(uri_chars_max=256, template_parts_max=8)
_HTTP = HttpLimits()
_BASE = Target.parse("https://host.example/mcp")


def header_values(data: bytes) -> None:
    """Any text comes back from a header as it went in, and no text can end its header."""
    text = data.decode("utf-8", "surrogatepass") if _is_wtf8(data) else data.decode("latin-1")
    decode_value(text)
    try:
        value = encode_value(text)
    except LocalProtocolError:
        assert any("\ud800" <= char <= "\udfff" for char in text)
        return
    assert decode_value(value) == text
    assert value.isascii()
    head = encode_head(
        HttpRequest(method="POST", target=_BASE, headers=(("Mcp-Name", value),)),
        _HTTP,
        absolute=False,
    )
    assert head.count(b"\r\n") == head.count(b"\n") == 5
    assert head.endswith(b"\r\nMcp-Name: " + value.encode() + b"\r\n")


def _is_wtf8(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def auth_challenges(data: bytes) -> None:
    """Reading challenges never raises, is bounded, and reads what it would write the same."""
    values = data.decode("latin-1").split("\n")
    found = read_challenges(values)
    assert len(found) <= CHALLENGES_MAX
    for challenge in found:
        assert len(challenge.parameters) <= PARAMETERS_MAX
        assert challenge.scheme == challenge.scheme.lower() != ""
        assert all(name == name.lower() != "" for name in challenge.parameters)
    assert read_challenges(map(_written, found)) == found


def _written(challenge: Challenge) -> str:
    quoted = (
        name + '="' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for name, text in challenge.parameters.items()
    )
    return f"{challenge.scheme} {', '.join(quoted)}"


def uri_templates(data: bytes) -> None:
    """What is matched leads back to its URI, and what was expanded is a URI within the bound."""
    template, _, uri = data.decode("utf-8", "replace").partition("\n")
    try:
        names = template_variables(template, LIMITS)
    except LocalProtocolError:
        return
    found = match_template(template, uri, LIMITS)
    if found is not None:
        assert set(found) <= set(names)
        assert expand_template(template, found, LIMITS) == uri
    with suppress(LocalProtocolError):
        made = expand_template(template, dict.fromkeys(names, uri), LIMITS)
        assert len(made) <= LIMITS.uri_chars_max


def uris(data: bytes) -> None:
    """An address that is let through is what it looks like; none leads out of its origin."""
    text = data.decode("utf-8", "replace")
    address = read_address(text, chars_max=256)
    if isinstance(address, WebAddress):
        parts = urlsplit(text)
        assert address.url == text
        assert parts.hostname == address.host
        assert "@" not in parts.netloc
        assert parts.scheme == "https" or is_loopback(address.host)
    assert isinstance(fault_of_file_uri(text, chars_max=256), str)
    with suppress(RequestRefusedError):
        target = Target.parse(text)
        assert Target.parse(f"{target.origin}{target.path}") == target
        encode_head(HttpRequest(method="GET", target=target), _HTTP, absolute=True)
    with suppress(RemoteProtocolError):
        assert within_origin(_BASE, text).origin == _BASE.origin


_SMALL = PolicyLimits(source_bytes_max=2_048, condition_depth_max=6, rules_max=20)


def policy_files(data: bytes) -> None:
    """A policy file is read, or refused with the one error that names a place in it."""
    text = data.decode("utf-8", "surrogatepass") if _is_wtf8(data) else data.decode("latin-1")
    wrong: PolicyError | None = None
    policies: tuple[Policy, ...] = ()
    try:
        policies = parse(text, "fuzz.policy", limits=_SMALL)
    except PolicyError as error:
        wrong = error
    if wrong is not None:
        assert wrong.place.path == "fuzz.policy"
        assert wrong.place.line >= 1
        assert str(wrong)
    else:
        assert policies
