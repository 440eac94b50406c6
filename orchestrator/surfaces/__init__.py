"""What a person sees. Surfaces may print; they know nothing of each other."""

from __future__ import annotations
