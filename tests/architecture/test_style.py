"""Habits of the code that a linter does not know: size, first lines, documented names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

import pytest

from tests.architecture.sources import PACKAGES, Source, source_from, sources

MODULE_LINES_MAX: Final = 500
TEST_LINES_MAX: Final = 600
"""A test module is a list without branches; it may be longer before it hides something."""
FUNCTION_LINES_MAX: Final = 60
FIRST_LINE_WORDS_MIN: Final = 3
NAME_TABLES: Final = ("orchestrator.telemetry.names",)
"""Constants that name other people's names: the first lines of the module say whose."""
RECIPES: Final = ("orchestrator.cli.demo.recipes",)
"""Files as a project has them: loaded by function name, imported by nobody."""

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules_too_long(files: Iterable[Source]) -> Iterator[str]:
    """Modules that should have been split."""
    for source in files:
        lines = len(source.text.splitlines())
        if lines > (TEST_LINES_MAX if source.path.startswith("tests/") else MODULE_LINES_MAX):
            yield f"{source.path} has {lines} lines"


def functions_too_long(files: Iterable[Source]) -> Iterator[str]:
    """Functions that do not fit a screen; the docstring is not counted."""
    for source in files:
        for node in ast.walk(source.tree):
            if isinstance(node, FUNCTIONS):
                lines = line_count(node) - docstring_lines(node)
                if lines > FUNCTION_LINES_MAX:
                    yield f"{source.at(node)} {node.name} has {lines} lines"


def line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return line_count(node.body[0]) if ast.get_docstring(node) is not None else 0


def modules_without_first_line(files: Iterable[Source]) -> Iterator[str]:
    """Modules whose docstring does not begin with a sentence."""
    for source in files:
        first = (ast.get_docstring(source.tree) or "").partition("\n")[0]
        if len(first.split()) < FIRST_LINE_WORDS_MIN or not first.endswith((".", "!", "?", ":")):
            yield f"{source.path} begins with {first!r}"


def packages_with_logic(files: Iterable[Source]) -> Iterator[str]:
    """Packages whose `__init__` does more than pass names on; the three at the top may be lazy."""
    for source in files:
        if source.is_package and source.module not in PACKAGES:
            for node in source.tree.body:
                if not passes_names_on(node):
                    yield source.at(node)


def passes_names_on(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case _:
            return is_text(node)


def modules_without_all(files: Iterable[Source]) -> Iterator[str]:
    """Public modules with public definitions that do not say which of them are public."""
    for source in files:
        private = any(part.startswith("_") for part in source.module.split("."))
        private = private or is_program(source) or source.module in RECIPES
        defines = any(isinstance(node, (*FUNCTIONS, ast.ClassDef)) for node in source.tree.body)
        if defines and not private and not source.is_package and public_names(source) is None:
            yield source.path


def is_program(source: Source) -> bool:
    """True for what is run and not imported."""
    last = source.tree.body[-1] if source.tree.body else None
    return isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'"


def undocumented_names(files: Iterable[Source]) -> Iterator[str]:
    """Names in `__all__` without a docstring; for a constant, the string that follows it."""
    for source in files:
        if source.module in NAME_TABLES:
            continue
        documented = dict(documented_names(source.tree))
        for name in public_names(source) or ():
            if not documented.get(name, True):
                yield f"{source.path} {name}"


def public_names(source: Source) -> list[str] | None:
    """What `__all__` lists, or None where there is none."""
    for node in source.tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        target = node.target if isinstance(node, ast.AnnAssign) else target
        if isinstance(target, ast.Name) and target.id == "__all__":
            return [
                constant.value
                for constant in ast.walk(node)
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
            ]
    return None


def documented_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Every name that a module defines itself, and whether it is documented."""
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, ast.get_docstring(node) is not None
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, is_text(following)
            case _:
                pass


def is_text(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def test_no_module_is_too_long():
    assert list(modules_too_long(sources(*PACKAGES, "tests", "benchmarks", "examples"))) == []


def test_a_module_one_line_too_long_is_found():
    fits = source_from("x = 1\n" * MODULE_LINES_MAX, "policies/fits.py")
    long = source_from("x = 1\n" * (MODULE_LINES_MAX + 1), "policies/long.py")

    assert list(modules_too_long([fits, long])) == ["policies/long.py has 501 lines"]


def test_every_function_fits_a_screen():
    assert list(functions_too_long(sources(*PACKAGES, "tests", "benchmarks", "examples"))) == []


def test_a_function_one_line_too_long_is_found():
    head = 'def f():\n    """Do it.\n\n    At length.\n    """\n'
    fits = source_from(head + "    x = 1\n" * (FUNCTION_LINES_MAX - 1), "policies/fits.py")
    long = source_from(head + "    x = 1\n" * FUNCTION_LINES_MAX, "policies/long.py")

    assert list(functions_too_long([fits, long])) == ["policies/long.py:1 f has 61 lines"]


def test_every_module_says_first_what_it_is():
    assert list(modules_without_first_line(sources())) == []


@pytest.mark.parametrize("text", ["x = 1", '"""."""', '"""Helpers."""', '"""no end of sentence"""'])
def test_a_module_that_says_nothing_is_found(text: str):
    assert len(list(modules_without_first_line([source_from(text, "policies/x.py")]))) == 1


def test_packages_only_pass_names_on():
    assert list(packages_with_logic(sources())) == []


def test_logic_in_a_package_is_found():
    text = '"""A package of things."""\nfrom a import b\n__all__ = ["b"]\n'
    plain = source_from(text, "policies/x/__init__.py")
    clever = source_from(f"{text}c = b()", "policies/y/__init__.py")

    assert list(packages_with_logic([plain, clever])) == ["policies/y/__init__.py:4"]


def test_every_public_module_lists_its_names():
    assert list(modules_without_all(sources())) == []


def test_a_module_without_a_list_is_found():
    assert list(modules_without_all([source_from("class A: ...", "policies/x.py")])) == [
        "policies/x.py"
    ]


def test_every_public_name_is_documented():
    assert list(undocumented_names(sources())) == []


@pytest.mark.parametrize(
    "text",
    [
        "class A: ...",
        "def A(): ...",
        "async def A(): ...",
        "A = int | str",
        "A: Final = 3\nx = 'no'",
    ],
)
def test_an_undocumented_public_name_is_found(text: str):
    source = source_from(f"__all__ = ['A']\n{text}", "policies/x.py")

    assert list(undocumented_names([source])) == ["policies/x.py A"]


@pytest.mark.parametrize(
    "text", ["class A:\n    '''It.'''", "A: Final = 3\n'''It.'''", "from b import A"]
)
def test_a_documented_or_passed_on_name_is_fine(text: str):
    source = source_from(f"__all__ = ['A']\n{text}", "policies/x.py")

    assert list(undocumented_names([source])) == []
