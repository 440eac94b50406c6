"""What a person and a project have set: model, policies, budget, prices. Starts and approves nothing.

The profile's `config.toml` is the person's word. A project's `remit.toml` counts only once it is
approved, and even then it cannot set what would send something elsewhere or switch a guard off.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from orchestrator.agents.budget import Budget, Price
from orchestrator.agents.resolve import check_model_name
from orchestrator.core.display import safe_line
from orchestrator.core.documents import Table, read_toml
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.reading import read_configured
from orchestrator.sessions.sandbox import SandboxMinimum, read_minimum
from orchestrator.sessions.state import StatePaths

__all__ = [
    "PROFILE_FILE",
    "PROJECT_FILE",
    "Setting",
    "Settings",
    "load_settings",
    "merge_settings",
    "read_budget",
    "sandbox_minimum",
]

PROFILE_FILE: Final = "config.toml"
"""The person's own settings, in the configuration folder."""
PROJECT_FILE: Final = "remit.toml"
"""A project's settings, at its top."""
_VERSION: Final = 1
_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max
_POLICIES_MAX: Final = 100
"""Policy files of one settings file; nobody keeps track of more."""
_PRICES_MAX: Final = 1_000
_BUDGET: Final = ("turns", "calls", "tokens", "usd", "bytes", "seconds")
_KNOWN: Final = ("remit", "model", "policy", "budget", "prices", "sandbox")
_REFUSED: Final[Mapping[str, str]] = {
    "base_url": "a project cannot say where a model's requests go",
    "models": "a project cannot say where a model's requests go",
    "telemetry": "a project cannot say where traces go",
    "approve": "no file gives consent",
    "approvals": "no file gives consent",
    "trust": "no file gives consent",
    "servers": "a project's servers stand in .mcp.json",
    "sandbox": "what every server is confined to is the person's word; an entry has its own `sandbox`",
}
"""Keys that somebody could look for here and that no project may set, with the reason."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where one value comes from, for `remit config show --origin`."""

    name: str
    value: str
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is set. What nobody set has the value that means so.

    Attributes:
        model: `PROVIDER:NAME`, or empty.
        policies: policy files, absolute, in the order they are named.
        budget: of one conversation; the smaller of both layers' values.
        prices: what models cost, by `PROVIDER:NAME`.
        minimum: what every server is confined to; None for nothing.
        origins: where each value comes from.
        item: what of a project a person approves; None for a profile.
    """

    model: str = ""
    policies: tuple[Path, ...] = ()
    budget: Budget = field(default_factory=Budget)
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    minimum: SandboxMinimum | None = None
    origins: tuple[Setting, ...] = ()
    item: Item | None = None


def load_settings(path: Path, origin: Origin) -> Settings:
    """Read one settings file; a file that is not there sets nothing.

    Raises ConfigError, with the place, for what it holds.
    """
    if not path.exists():
        return Settings()
    content = read_configured(path, what="", code="E-CONFIG-FILE")
    table = read_toml(content, str(path)).table()
    if origin is Origin.PROJECT:
        _refuse(table)
    table.only(_KNOWN)
    if table.integer("remit", _VERSION) != _VERSION:
        raise table.error(
            f"this version reads settings of version {_VERSION}", "remit", fix=f"remit = {_VERSION}"
        )
    found = Settings(
        model=_model(table),
        policies=_policies(table, path.parent, origin),
        budget=read_budget(table),
        prices=_prices(table),
        minimum=_minimum(table),
    )
    return replace(
        found,
        origins=_origins(table),
        item=_item(found, content, path) if origin is Origin.PROJECT else None,
    )


def sandbox_minimum(paths: StatePaths) -> SandboxMinimum | None:
    """Return what the person's settings confine every server to. Raises ConfigError, as `load_settings`."""
    return load_settings(paths.config / PROFILE_FILE, Origin.PROFILE).minimum


def merge_settings(profile: Settings, project: Settings) -> Settings:
    """Return what holds: the profile's word first (S-20), of budgets the smaller, policies of both."""
    known = {setting.name for setting in profile.origins} & {"model"}
    return Settings(
        model=profile.model or project.model,
        policies=(*profile.policies, *project.policies),
        budget=profile.budget.at_most(project.budget),
        # a price is what a budget of money is held against: a project's would stretch it
        prices=profile.prices,
        minimum=profile.minimum,
        origins=(
            *profile.origins,
            *(item for item in project.origins if item.name not in known),
        ),
        item=project.item,
    )


def read_budget(table: Table) -> Budget:
    """Read `[budget]`; what it leaves out stays open. Raises ConfigError with the place."""
    budget = table.optional("budget")
    if budget is None:
        return Budget()
    budget.only(_BUDGET)
    for name in budget:
        if budget.number(name) < 0:
            raise budget.error(f"{name} of a budget cannot be negative", name)
    return Budget(
        turns=budget.integer("turns", None),
        calls=budget.integer("calls", None),
        tokens=budget.integer("tokens", None),
        usd=budget.number("usd", None),
        bytes=budget.integer("bytes", None),
        seconds=budget.number("seconds", None),
    )


def _refuse(table: Table) -> None:
    for name in table:
        if name in _REFUSED:
            raise ConfigError(
                f"a project's settings cannot have the key {name!r}",
                code="E-SETTINGS-PROJECT",
                why=_REFUSED[name],
                fix="remove it; what is yours stands in your own config.toml",
                where=table.where(name),
            )
    if "prices" in table:
        raise ConfigError(
            "a project's settings cannot say what models cost",
            code="E-SETTINGS-PROJECT",
            why="a budget of money would be held against its word",
            fix="remove it, or move it to your own config.toml",
            where=table.where("prices"),
        )


def _model(table: Table) -> str:
    name = table.text("model", "")
    if name:
        try:
            check_model_name(name)
        except ConfigError as error:
            raise table.error(error.message, "model", fix=error.fix) from None
    return name


def _policies(table: Table, folder: Path, origin: Origin) -> tuple[Path, ...]:
    names = table.strings("policy", ())
    if len(names) > _POLICIES_MAX:
        raise table.error(f"more than {_POLICIES_MAX} policy files", "policy")
    if any("\x00" in name for name in names):
        raise table.error("a name of a file has no such character", "policy")
    paths = tuple(folder.absolute() / name for name in names)
    if origin is Origin.PROJECT:
        root = os.path.realpath(folder)
        for name, path in zip(names, paths, strict=True):
            # an error in a policy shows the line: nobody's other files are read for a project
            if Path(name).is_absolute() or not Path(os.path.realpath(path)).is_relative_to(root):
                raise ConfigError(
                    f"a project's settings name a policy outside of it: {safe_line(name)!r}",
                    code="E-SETTINGS-PROJECT",
                    why="a project may name only files of its own, with all links followed",
                    fix="move the file into the project, or name it in your own config.toml",
                    where=table.where("policy"),
                )
    return paths


def _minimum(table: Table) -> SandboxMinimum | None:
    wanted = table.optional("sandbox")
    return None if wanted is None else read_minimum(wanted)


def _prices(table: Table) -> Mapping[str, Price]:
    prices = table.optional("prices")
    if prices is None:
        return {}
    if len(prices) > _PRICES_MAX:
        raise table.error(f"more than {_PRICES_MAX} prices", "prices")
    found: dict[str, Price] = {}
    for name, entry in prices.tables():
        entry.only(("input_usd", "output_usd"))
        price = Price(entry.number("input_usd"), entry.number("output_usd"))
        if price.input_usd < 0 or price.output_usd < 0:
            raise entry.error("a price cannot be negative")
        found[name] = price
    return found


def _origins(table: Table) -> tuple[Setting, ...]:
    found: list[Setting] = []
    for name in table:
        if name in ("budget", "prices", "sandbox"):
            inner = table.table(name)
            found += [
                Setting(f"{name}.{key}", str(inner.value[key]), inner.where(key)) for key in inner
            ]
        elif name == "policy":
            found += [Setting(name, text, table.where(name)) for text in table.strings(name)]
        elif name != "remit":
            found.append(Setting(name, str(table.value[name]), table.where(name)))
    return tuple(found)


def _item(found: Settings, content: bytes, path: Path) -> Item:
    lines = [
        *([f"model: {found.model}"] if found.model else []),
        *(f"policy: {file}" for file in found.policies),
        *(
            f"budget: at most {value:g} {name}"
            for name in _BUDGET
            if (value := getattr(found.budget, name)) is not None
        ),
    ]
    return Item(
        name=path.name,
        kind=ItemKind.SETTINGS,
        digest=hashlib.sha256(content).hexdigest(),
        origin=Origin.PROJECT,
        description_lines=tuple(lines) or ("sets nothing",),
    )
