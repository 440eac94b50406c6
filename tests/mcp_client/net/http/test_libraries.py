"""What the libraries call our errors is what they have; only headers of their own are left out."""

from __future__ import annotations

import httpx
import httpx2
import pytest

from mcp_client.net.http.errors import (
    CertificateError,
    ConnectError,
    ConnectionLostError,
    ConnectStep,
    ConnectTimeoutError,
    ExchangeTimeoutError,
    HttpError,
    HttpProtocolError,
    RequestRefusedError,
)
from mcp_client.net.http.libraries import asked_headers, error_name

NAMED = {
    "ConnectTimeout": ConnectTimeoutError("late", step=ConnectStep.CONNECT),
    "ProxyError": ConnectError("no tunnel", step=ConnectStep.PROXY),
    "ConnectError": ConnectError("nobody there", step=ConnectStep.CONNECT),
    "WriteTimeout": ExchangeTimeoutError("late", stage="send"),
    "ReadTimeout": ExchangeTimeoutError("late", stage="receive"),
    "WriteError": ConnectionLostError("gone", stage="send"),
    "ReadError": ConnectionLostError("gone", stage="receive"),
    "RemoteProtocolError": HttpProtocolError("no HTTP", stage="receive"),
    "LocalProtocolError": RequestRefusedError("too large", stage="send"),
}


@pytest.mark.parametrize("name", NAMED)
def test_each_error_has_a_name_that_both_libraries_know(name: str) -> None:
    assert error_name(NAMED[name]) == name
    assert issubclass(getattr(httpx, name), httpx.TransportError)
    assert issubclass(getattr(httpx2, name), httpx2.TransportError)


def test_a_certificate_that_is_not_trusted_is_no_connection() -> None:
    assert error_name(CertificateError("not trusted", step=ConnectStep.TLS)) == "ConnectError"


def test_what_the_libraries_have_no_word_for_is_what_all_of_theirs_descend_from() -> None:
    assert error_name(HttpError("something else", stage="wait")) == "TransportError"


def test_only_what_a_library_adds_by_itself_is_left_out() -> None:
    added = ("Host", "accept-encoding", "Connection", "content-length", "Transfer-Encoding")
    mine = [("Accept", "*/*"), ("x-host", "1"), ("Authorization", "Bearer x")]

    assert asked_headers([*((name, "x") for name in added), *mine]) == mine
