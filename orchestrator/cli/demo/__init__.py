"""The files of `remit demo`: a files server, recipes, a policy and a pipeline. They ship in the wheel."""

from __future__ import annotations
