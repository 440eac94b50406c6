from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.pipelines.loading import load_pipeline
from orchestrator.pipelines.spec import PipelineSpec

Load = Callable[[str], PipelineSpec]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a pipeline from its text; its folder has recipes.py, p.policy and .mcp.json."""
    (tmp_path / "recipes.py").write_text("def brief(): ...")
    (tmp_path / "p.policy").write_text("policy p v1 {}")
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {}}')

    def load_text(text: str) -> PipelineSpec:
        path = tmp_path / "brief.toml"
        path.write_text(dedent(text))
        return load_pipeline(path)

    return load_text
