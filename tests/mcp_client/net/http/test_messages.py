"""Targets and heads: what is refused before anything is sent."""

from __future__ import annotations

import weakref

import pytest

from mcp_client.net.http.encoding import OWNED_HEADERS, encode_head, encode_late
from mcp_client.net.http.errors import RequestRefusedError
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest, Target

LIMITS = HttpLimits()
TARGET = Target.parse("https://example.org/mcp")


def request(
    *headers: tuple[str, str], method: str = "POST", body: bytes = b"", target: Target = TARGET
) -> HttpRequest:
    return HttpRequest(method=method, target=target, headers=headers, body=body)


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("http://Example.ORG", "http://example.org", "/"),
        ("http://example.org:80/a", "http://example.org", "/a"),
        ("https://example.org:443?q=1", "https://example.org", "/?q=1"),
        ("https://example.org:8443/a%20b?c#d", "https://example.org:8443", "/a%20b?c"),
        ("HTTP://127.0.0.1:1/", "http://127.0.0.1:1", "/"),
        ("http://[::1]:8080/x", "http://[::1]:8080", "/x"),
    ],
)
def test_a_url_is_taken_apart(url: str, origin: str, path: str) -> None:
    target = Target.parse(url)
    assert (target.origin, target.path) == (origin, path)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "//example.org/",
        "example.org",
        "",
        "http://",
        "http:///path",
        "http://user@example.org/",
        "http://user:word@example.org/",
        "http://@example.org/",
        "http://example.org:0/",
        "http://example.org:65536/",
        "http://example.org:port/",
        "http://exa mple.org/",
        "http://example.org/a b",
        "http://example.org/\r\nX: y",
        "http://example.org\t/",
        "http://example.org\\@evil.test/",
        "http://example.org/\x7f",
        "http://exämple.org/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://-example.org/",
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        Target.parse(url)
    assert "user" not in url or "word" not in str(caught.value)


def test_a_target_made_by_hand_is_checked_as_well() -> None:
    with pytest.raises(RequestRefusedError, match="path"):
        Target(scheme="http", host="a", port=80, path="/ HTTP/1.1\r\nX: y")
    with pytest.raises(RequestRefusedError, match="zero"):
        Target(scheme="http", host="a", port=80, unix_socket="/tmp/\0")


@pytest.mark.parametrize(
    "header",
    [
        ("A\r\nB", "c"),
        ("A", "b\r\nC: d"),
        ("A", "b\nC"),
        ("A", "b\0"),
        ("A: b", "c"),
        ("", "b"),
        ("A", " b"),
        ("A", "b\t"),
        ("A", "\u0100"),
        ("Ä", "b"),
    ],
)
def test_a_header_that_could_become_another_is_refused(header: tuple[str, str]) -> None:
    with pytest.raises(RequestRefusedError):
        encode_head(request(header), LIMITS, absolute=False)
    with pytest.raises(RequestRefusedError):
        encode_late(b"", [header], request(), LIMITS)


@pytest.mark.parametrize("name", sorted(OWNED_HEADERS))
def test_a_header_that_frames_the_message_is_not_the_callers(name: str) -> None:
    with pytest.raises(RequestRefusedError, match="not the caller's"):
        encode_head(request((name.title(), "x")), LIMITS, absolute=False)


@pytest.mark.parametrize("method", ["", "GET /", "PO\r\nST", "CONNECT"])
def test_a_method_that_is_no_plain_word_is_refused(method: str) -> None:
    with pytest.raises(RequestRefusedError):
        encode_head(request(method=method), LIMITS, absolute=False)


def test_a_refusal_of_a_header_does_not_repeat_its_value() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        encode_head(request(("Authorization", "secret\n")), LIMITS, absolute=False)
    assert "secret" not in str(caught.value)


@pytest.mark.requirement("S-28")
def test_a_request_shows_neither_its_headers_nor_its_body_nor_its_path() -> None:
    target = Target.parse("https://example.org/mcp?key=sesame")
    shown = repr(request(("Authorization", "sesame"), body=b"sesame", target=target))
    assert "sesame" not in shown
    assert "example.org" in shown


class Watched(str):
    """A text that a weak reference can be made to."""

    __slots__ = ("__weakref__",)


@pytest.mark.requirement("S-28")
def test_the_value_of_a_header_is_not_kept_once_its_request_is_gone() -> None:
    value = Watched("sesame")
    kept = weakref.ref(value)
    encode_head(request(("Authorization", value)), LIMITS, absolute=False)
    del value
    assert kept() is None


def test_a_late_header_may_not_come_twice() -> None:
    asked = request(("Authorization", "one"))
    with pytest.raises(RequestRefusedError, match="already"):
        encode_late(b"", [("authorization", "two")], asked, LIMITS)


def test_a_proxy_is_asked_for_the_whole_url() -> None:
    target = Target.parse("http://example.org:8080/a?b")
    head = encode_head(request(target=target), LIMITS, absolute=True)
    assert head.startswith(
        b"POST http://example.org:8080/a?b HTTP/1.1\r\nHost: example.org:8080\r\n"
    )


def test_only_what_has_a_body_has_a_length() -> None:
    assert b"Content-Length: 0\r\n" in encode_head(request(), LIMITS, absolute=False)
    assert b"Content-Length" not in encode_head(request(method="GET"), LIMITS, absolute=False)


def test_a_head_one_byte_too_large_is_refused() -> None:
    size = len(encode_head(request(("A", "x")), LIMITS, absolute=False))
    limits = HttpLimits(request_head_bytes_max=size)
    assert len(encode_head(request(("A", "x")), limits, absolute=False)) == size
    with pytest.raises(RequestRefusedError, match="over the bound"):
        encode_head(request(("A", "xx")), limits, absolute=False)
    with pytest.raises(RequestRefusedError, match="over the bound"):
        encode_late(bytes(size), [("A", "x")], request(), limits)
