"""The parent session: configuration, approvals, clients, agents, and taking back."""

from __future__ import annotations
