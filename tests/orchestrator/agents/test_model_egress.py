"""What an agent knows does not leave for a model provider once its authority is taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import httpx2
import pytest

from orchestrator.broker.model_wire import open_model_wire
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.loopback import Connect, failed_with
from tests.orchestrator.agents.stage import Stage
from tests.servers.openai_like import OpenAiLike, answer, failure


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Leave:
    """An agent's leave that is taken back after so many looks at it."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.looks = 0

    def __call__(self) -> None:
        self.looks += 1
        self.left -= 1
        if self.left < 0:
            raise AuthorityError("the agent has ended", reason=DenyReason.AGENT_CANCELLED)


async def asked(url: str, leave: Callable[[], None], *, times: int = 1) -> httpx2.Response:
    with anyio.fail_after(30):
        async with open_model_wire(leave) as wire, httpx2.AsyncClient(transport=wire) as client:
            for _ in range(times - 1):
                await client.post(f"{url}/chat/completions", json={"messages": []})
            return await client.post(f"{url}/chat/completions", json={"messages": []})


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def looks_of_one_request(times: int) -> int:
    leave = Leave(1_000)
    with OpenAiLike(*[answer("x")] * times) as server:
        await asked(server.url, leave, times=times)
    return leave.looks


@pytest.mark.requirement("S-27")
@pytest.mark.parametrize("times", [1, 2], ids=["new connection", "kept alive"])
async def test_at_whatever_look_leave_is_gone_no_byte_of_the_request_arrives(times: int) -> None:
    looks = await looks_of_one_request(times)
    before = await looks_of_one_request(times - 1) if times > 1 else 0
    assert looks - before >= 1

    for allowed in range(before, looks):
        with (
            OpenAiLike(*[answer("x")] * times) as server,
            pytest.raises(AuthorityError) as caught,
        ):
            await asked(server.url, Leave(allowed), times=times)

        assert caught.value.reason is DenyReason.AGENT_CANCELLED
        assert len(server.seen) == times - 1


async def test_with_leave_to_the_end_the_answer_arrives() -> None:
    with OpenAiLike(answer("hello")) as server:
        response = await asked(server.url, Leave(1_000))

    assert response.status_code == 200
    assert "hello" in response.text


async def test_no_name_or_password_in_an_address_is_sent_anywhere() -> None:
    with OpenAiLike(answer("x")) as server, pytest.raises(httpx2.TransportError) as caught:
        await asked(server.url.replace("//", "//canary:secret@"), Leave(1_000))

    assert "canary" not in str(caught.value)
    assert server.seen == []


@pytest.mark.requirement("I15")
async def test_a_second_attempt_is_asked_for_anew(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(failure(503), answer("never")) as server:

        def until_seen() -> None:
            if server.seen:
                raise AuthorityError("the agent has ended", reason=DenyReason.AGENT_CANCELLED)

        stage.gate = until_seen
        result = await stage.run(connect(server, streaming=False))

    assert (result.status, len(server.seen)) == (RunStatus.CANCELLED, 1)


async def test_a_redirect_of_a_provider_is_not_followed(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(answer("never")) as elsewhere:
        moved = failure(307, headers={"location": f"{elsewhere.url}/chat/completions"})
        with OpenAiLike(moved) as server:
            await failed_with(stage, connect(server, streaming=False))

        assert elsewhere.seen == []


@pytest.mark.parametrize(
    ("proxies", "code"),
    [
        ({"http_proxy": "http://127.0.0.1:9"}, httpx2.ConnectError),
        ({"http_proxy": "socks5://127.0.0.1:9"}, httpx2.LocalProtocolError),
    ],
)
async def test_the_proxy_of_the_environment_is_used_or_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, proxies: Mapping[str, str], code: type[Exception]
) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)
    with OpenAiLike(answer("x")) as server, pytest.raises(code):
        await asked(server.url, Leave(1_000))

    assert server.seen == []
