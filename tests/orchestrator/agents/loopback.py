"""A model behind a loopback provider."""

from __future__ import annotations

import pytest

from orchestrator.agents.bridge import PydanticAiModel
from orchestrator.agents.limits import AgentLimits
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.stage import CountedIds, Stage
from tests.servers.openai_like import OpenAiLike

KEY = "sk-loopback-secret"
HASTY = AgentLimits(retry_seconds_min=0.0, request_seconds_max=5.0)


class Connect:
    """Makes models of loopback servers, and sets the environment that their provider reads."""

    def __init__(self, environment: pytest.MonkeyPatch) -> None:
        self._environment = environment
        environment.setenv("NO_PROXY", "127.0.0.1")
        environment.setenv("OPENAI_API_KEY", KEY)

    def __call__(
        self,
        server: OpenAiLike,
        *,
        provider: str = "openai",
        streaming: bool = True,
        bounds: AgentLimits = HASTY,
    ) -> PydanticAiModel:
        self._environment.setenv("OPENAI_BASE_URL", server.url)
        return PydanticAiModel(
            provider, "loopback-1", ids=CountedIds(), bounds=bounds, stream=streaming
        )


async def failed_with(stage: Stage, model: PydanticAiModel) -> str:
    """Run a model that must fail, and return the code."""
    result = await stage.run(model)
    assert result.status is RunStatus.FAILED
    assert result.error is not None
    return result.error.code
