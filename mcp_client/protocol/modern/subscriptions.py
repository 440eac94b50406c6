"""Streams of notices (MCP 2026-07-28, `subscriptions/listen`): what was asked for, what may come; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, cast

from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.metadata import SUBSCRIPTION_ID

__all__ = [
    "ACKNOWLEDGED",
    "SubscriptionAcknowledged",
    "SubscriptionEnded",
    "SubscriptionFilter",
    "SubscriptionState",
    "Subscriptions",
    "Verdict",
    "read_filter",
]

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
"""The first notice of each stream."""
_CANCELLED: Final = "notifications/cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionFilter:
    """Which notices one stream carries."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resources: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()

    def members(self) -> Mapping[str, object]:
        """Return it as on the wire; what is not asked for is left out."""
        flags = {
            "toolsListChanged": self.tools_list_changed,
            "promptsListChanged": self.prompts_list_changed,
            "resourcesListChanged": self.resources_list_changed,
        }
        members: dict[str, object] = {name: True for name, wanted in flags.items() if wanted}
        if self.resources:
            members["resourceSubscriptions"] = sorted(self.resources)
        if self.tasks:
            members["taskIds"] = sorted(self.tasks)
        return members

    def within(self, asked: SubscriptionFilter) -> SubscriptionFilter:
        """Return what of it was asked for."""
        return SubscriptionFilter(
            tools_list_changed=self.tools_list_changed and asked.tools_list_changed,
            prompts_list_changed=self.prompts_list_changed and asked.prompts_list_changed,
            resources_list_changed=self.resources_list_changed and asked.resources_list_changed,
            resources=self.resources & asked.resources,
            tasks=self.tasks & asked.tasks,
        )

    def allows(self, method: str, params: Mapping[str, object]) -> bool:
        """Return whether a notice is one of those that were asked for."""
        match method:
            case "notifications/tools/list_changed":
                return self.tools_list_changed
            case "notifications/prompts/list_changed":
                return self.prompts_list_changed
            case "notifications/resources/list_changed":
                return self.resources_list_changed
            case "notifications/resources/updated":
                uri = params.get("uri")
                return isinstance(uri, str) and any(_within(uri, each) for each in self.resources)
            case "notifications/tasks":
                task_id = params.get("taskId")
                return isinstance(task_id, str) and task_id in self.tasks
            case _:
                return False


def read_filter(value: object) -> SubscriptionFilter:
    """Read what a server granted. What is malformed counts as not granted."""
    members = as_object(value) or {}
    return SubscriptionFilter(
        tools_list_changed=members.get("toolsListChanged") is True,
        prompts_list_changed=members.get("promptsListChanged") is True,
        resources_list_changed=members.get("resourcesListChanged") is True,
        resources=_texts(members.get("resourceSubscriptions")),
        tasks=_texts(members.get("taskIds")),
    )


@dataclass(frozen=True, slots=True)
class SubscriptionAcknowledged:
    """The server acknowledged a stream: what it granted of what was asked may come from now on."""

    request_id: int
    granted: SubscriptionFilter


@dataclass(frozen=True, slots=True)
class SubscriptionEnded:
    """The server tears a stream down."""

    request_id: int


class SubscriptionState(Enum):
    """Where a stream stands."""

    ASKED = "asked"
    ACTIVE = "active"


class Verdict(Enum):
    """What a notice with a subscription's id is."""

    GRANTED = "granted"
    """The stream is acknowledged: `granted` says with what."""
    DELIVER = "deliver"
    ENDED = "ended"
    """The server tears the stream down."""
    IGNORE = "ignore"
    """Unknown, too early, twice, or not asked for."""


class Subscriptions:
    """The streams of one connection, by the id of the request that asked for each."""

    def __init__(self) -> None:
        self._asked: dict[int, SubscriptionFilter] = {}
        self._granted: dict[int, SubscriptionFilter] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def open(self, request_id: int, asked: SubscriptionFilter) -> None:
        """Take note that a stream was asked for."""
        self._asked[request_id] = asked

    def close(self, request_id: int) -> None:
        """Forget a stream. Nothing happens if there is none."""
        self._asked.pop(request_id, None)
        self._granted.pop(request_id, None)

    def granted(self, request_id: int) -> SubscriptionFilter | None:
        """Return what the server granted of what was asked for; None before it has answered."""
        return self._granted.get(request_id)

    def state(self, request_id: int) -> SubscriptionState | None:
        """Return where a stream stands; None if there is none."""
        if request_id not in self._asked:
            return None
        active = request_id in self._granted
        return SubscriptionState.ACTIVE if active else SubscriptionState.ASKED

    def judge(self, method: str, params: Mapping[str, object]) -> tuple[int, Verdict]:
        """Return whose stream a notice is of, and what it means for it; 0 if it is of none."""
        request_id = stream_of(method, params)
        asked = self._asked.get(request_id)
        if asked is None:
            return 0, Verdict.IGNORE
        granted = self._granted.get(request_id)
        if method == _CANCELLED:
            return request_id, Verdict.ENDED
        if method == ACKNOWLEDGED:
            if granted is not None:
                return request_id, Verdict.IGNORE
            # no server widens what was asked for
            self._granted[request_id] = read_filter(params.get("notifications")).within(asked)
            return request_id, Verdict.GRANTED
        deliver = granted is not None and granted.allows(method, params)
        return request_id, Verdict.DELIVER if deliver else Verdict.IGNORE


def stream_of(method: str, params: Mapping[str, object]) -> int:
    """Return the id of the stream that a notice belongs to; 0 if it names none of ours."""
    if method == _CANCELLED:
        named = params.get("requestId")
    else:
        named = (as_object(params.get("_meta")) or {}).get(SUBSCRIPTION_ID)
    # true is equal to 1 as a key, and is no id
    return named if type(named) is int else 0


def _within(uri: str, asked: str) -> bool:
    # MCP: it may be a part of the resource that was asked for
    return uri == asked or (
        uri.startswith(asked) and (asked[-1:] == "/" or uri[len(asked)] in "/?#")
    )


def _texts(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        return frozenset()
    return frozenset(each for each in cast("list[object]", value) if isinstance(each, str))
