"""Who may still do what: ledger, snapshots, the gate. Synchronous; knows no client."""

from __future__ import annotations
