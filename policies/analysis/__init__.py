"""Analysis: what policies say of all requests at once. Decides no single one of its own."""

from __future__ import annotations

from policies.analysis.comparing import Claim, Proof, Widening, breaks, compare, subset

__all__ = ["Claim", "Proof", "Widening", "breaks", "compare", "subset"]
