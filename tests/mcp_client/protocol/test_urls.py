from __future__ import annotations

import pytest

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.roots import Root, check_roots, roots_result
from mcp_client.protocol.urls import WebAddress, read_address

LIMITS = ClientLimits()


@pytest.mark.requirement("C-25")
@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/a?b=c#d", "example.com"),
        ("https://EXAMPLE.com:8443", "example.com"),
        ("http://localhost:3000/callback", "localhost"),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://127.8.8.8/", "127.8.8.8"),
        ("http://[::1]:8080/", "::1"),
        ("https://xn--e1awd7f.com/", "xn--e1awd7f.com"),
        ("https://10.0.0.1/", "10.0.0.1"),
    ],
)
def test_https_and_this_machine_may_be_shown_with_their_host(url: str, host: str) -> None:
    assert read_address(url, chars_max=100) == WebAddress(url, host)


def test_a_host_that_is_not_what_it_looks_like_is_told_apart() -> None:
    address = read_address("https://login.xn--e1awd7f.com/", chars_max=100)

    assert isinstance(address, WebAddress)
    assert address.is_punycode


@pytest.mark.requirement("C-25")
@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        7,
        "example.com",
        "http://example.com/",
        "http://localhost.example.com/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "ftp://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://@example.com/",
        "https://example.com\\@evil.com/",
        "https://exam%70le.com/",
        "https://example.com:port/",
        "https://example.com:99999/",
        "https://[::1",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://example.com/\x00",
        "https://example.com/\x1b[2J",
        " https://example.com/",
        "https://example.com/é",
        "https://exämple.com/",
        "https://example.com/\u202e",
        'https://example.com/"',
        "https://example.com/`id`",
        "-https://example.com",
    ],
)
def test_every_other_url_is_refused(url: object) -> None:
    assert isinstance(read_address(url, chars_max=100), str)


def test_a_url_one_character_over_the_bound_is_refused() -> None:
    url = "https://a.b/" + "c" * 8

    assert isinstance(read_address(url, chars_max=20), WebAddress)
    assert isinstance(read_address(url, chars_max=19), str)


@pytest.mark.requirement("C-1", "S-44")
@pytest.mark.parametrize(
    "uri", ["file:///", "file:///home/a", "file:///a%20b/", "file:///C:/a", "file:///a.b/..c"]
)
def test_a_file_uri_with_an_absolute_path_can_be_a_root(uri: str) -> None:
    assert check_roots([Root(uri)], LIMITS) == (Root(uri),)


@pytest.mark.requirement("C-1", "S-44")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/home/a",
        "file:a",
        "file://host/a",
        "file://localhost/a",
        "FILE:///a",
        "https://example.com/",
        "file:///a/../b",
        "file:///a/%2e%2E/b",
        "file:///a/./b",
        "file:///..",
        "file:///a%2fb",
        "file:///a%5Cb",
        "file:///a\\b",
        "file:///a%00",
        "file:///a\n",
        "file:///a b",
        "file:///é",
        "file:///a?b",
        "file:///a#b",
    ],
)
def test_every_other_uri_cannot_be_a_root(uri: str) -> None:
    with pytest.raises(LocalProtocolError):
        check_roots([Root(uri)], LIMITS)


@pytest.mark.parametrize("name", ["a\nb", "x" * 257])
def test_a_roots_name_is_short_and_can_be_shown(name: str) -> None:
    with pytest.raises(LocalProtocolError):
        check_roots([Root("file:///a", name)], LIMITS)


def test_one_root_over_the_bound_is_refused_and_repetitions_count_once() -> None:
    limits = ClientLimits(roots_max=2)
    roots = [Root("file:///a"), Root("file:///b")]

    assert check_roots([*roots, Root("file:///b")], limits) == tuple(roots)
    with pytest.raises(LocalProtocolError):
        check_roots([*roots, Root("file:///c")], limits)


def test_a_server_sees_the_uris_and_the_names_that_there_are() -> None:
    result = roots_result([Root("file:///a"), Root("file:///b", "B")])

    assert result == {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]}
