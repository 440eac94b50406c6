from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.fingerprints import (
    CommandLine,
    Digests,
    file_digest,
    file_digests,
)


def named(project: Path, *words: str, cwd: str = "") -> dict[str, str]:
    return dict(file_digests(words, project=project, folders=(project, project / cwd)))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "server.py").write_text("print()")
    (tmp_path / "tools" / "__main__.py").write_text("print(1)")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("python", "tools/server.py"),
        ("python", "./tools/server.py"),
        ("tools/server.py",),
        ("node", "--require=tools/server.py"),
        ("sh", "-c", "python tools/server.py; echo"),
        ("python", "-m", "tools.server"),
        ("/usr/lib:tools/server.py",),
        ("sh", "-c", "exec python 'tools/server.py' >&2"),
        ("sh", "-c", 'python "tools/ser"ver.py'),
        ("node", "-rtools/server.py"),
        ("node", "--import=file:tools/server.py"),
        ("node", "--import=file:tools%2Fserver.py"),
        ("python", "-mtools.server"),
        ("python", "-um", "tools.server"),
        ("sh", "-c", "python -m tools.server"),
        ("x", "~/tools/server.py"),
    ],
)
def test_a_file_of_the_project_is_found_however_it_is_named(
    project: Path, words: tuple[str, ...]
) -> None:
    assert named(project, *words) == {"tools/server.py": hashlib.sha256(b"print()").hexdigest()}


def test_a_package_that_is_run_is_found_with_all_that_its_import_runs(project: Path) -> None:
    (project / "tools" / "inner").mkdir()
    for name in ("__init__.py", "inner/__init__.py", "inner/__main__.py"):
        (project / "tools" / name).write_text("")

    assert list(named(project, "python", "-m", "tools")) == [
        "tools/__init__.py",
        "tools/__main__.py",
    ]
    assert list(named(project, "python", "-m", "tools.inner")) == [
        "tools/__init__.py",
        "tools/inner/__init__.py",
        "tools/inner/__main__.py",
    ]


def test_a_module_is_found_in_a_folder_that_is_named(project: Path) -> None:
    assert "tools/server.py" in named(project, "python", "-m", "server", "tools")


@pytest.mark.parametrize("word", ["tools", "./tools/", "--prefix=tools"])
def test_a_folder_counts_by_what_is_run_of_it(project: Path, word: str) -> None:
    assert list(named(project, "python", word)) == ["tools/__main__.py"]


@pytest.mark.parametrize(
    "form", ["{}", "file://{}", "file://localhost{}", "--import=file://{}", "-r{}", "//{}"]
)
def test_an_absolute_path_is_found_in_every_form(project: Path, form: str) -> None:
    assert list(named(project, form.format(project / "tools" / "server.py"))) == ["tools/server.py"]


def test_an_absolute_path_that_leads_into_the_project_counts(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "link").symlink_to(project)
    path = elsewhere / "link" / "tools" / "server.py"

    assert list(named(project, str(path)).values()) == [hashlib.sha256(b"print()").hexdigest()]


@pytest.mark.parametrize(
    "word",
    [
        *("/proc/self/cwd/server.py", "//proc/self/cwd/server.py", "/proc/1/root/x"),
        *("--require=/proc/self/cwd/x", "/tmp/../proc/self/cwd/x", "file:///proc/self/cwd/x"),
        *("/dev/fd/3", "sh -c '. /proc/self/cwd/x'"),
    ],
)
def test_a_path_that_is_another_one_for_each_process_is_refused(project: Path, word: str) -> None:
    with pytest.raises(ConfigError, match="another file for each process"):
        named(project, "python", word)


def test_a_link_of_the_project_to_such_a_path_is_refused(project: Path) -> None:
    (project / "here").symlink_to("/proc/self/cwd")
    (project / "there").symlink_to("here")

    with pytest.raises(ConfigError, match="another file for each process"):
        named(project, "python", "there/server.py")


def test_where_messages_go_is_no_such_path(project: Path) -> None:
    assert named(project, "x", "--log=/dev/stderr", "/dev/null") == {}


@pytest.mark.parametrize("target", ["/proc/self/mem", "/proc/self/pagemap", "/dev/zero"])
def test_a_link_to_a_file_without_an_end_holds_nobody_up(project: Path, target: str) -> None:
    (project / "endless").symlink_to(target)

    with contextlib.suppress(ConfigError):
        assert named(project, "endless") == {}


def command_line(project: Path, program: str, *, search: str = "/usr/bin:/bin") -> CommandLine:
    return CommandLine(
        words=(program, search), program=program, search=search, project=project, folder=project
    )


def test_a_program_is_found_as_the_servers_process_would_find_it(project: Path) -> None:
    (project / "tools" / "sh").write_text("evil")
    (project / "tools" / "sh").chmod(0o755)

    assert str(command_line(project, "sh").resolve()) in ("/usr/bin/sh", "/bin/sh")
    for search in (f"{project}/tools:/usr/bin", "tools:/usr/bin"):
        line = command_line(project, "sh", search=search)
        assert line.resolve() == project / "tools" / "sh"
        assert "tools/sh" in dict(line.files())


def test_what_a_program_would_look_for_in_its_path_is_found_there(project: Path) -> None:
    (project / "tools" / "git-mcp").write_text("evil")
    line = CommandLine(
        words=("/usr/bin/env", "git-mcp"),
        program="/usr/bin/env",
        search=f"{project}/tools",
        project=project,
        folder=project,
    )

    assert list(dict(line.files())) == ["tools/git-mcp"]


def test_a_program_that_is_not_there_is_none(project: Path) -> None:
    assert command_line(project, "no-such-program").resolve() is None
    assert command_line(project, "./tools").resolve() is None


def test_one_name_too_many_cannot_be_compared(project: Path) -> None:
    words = [f"n{number}" for number in range(10)]

    # each is looked up twice: as a folder, and as a file
    folders = (project,)
    assert (
        file_digests(words, project=project, folders=folders, digests=Digests(lookups_max=20)) == ()
    )
    with pytest.raises(ConfigError, match="names more files"):
        file_digests(words, project=project, folders=folders, digests=Digests(lookups_max=19))


def test_one_character_too_many_cannot_be_compared(project: Path) -> None:
    words = ("python", "x" * 94)

    assert file_digests(words, project=project, folders=(), digests=Digests(chars_max=100)) == ()
    with pytest.raises(ConfigError, match="names more files"):
        file_digests(words, project=project, folders=(), digests=Digests(chars_max=99))


def test_the_bounds_are_for_all_command_lines_together(project: Path) -> None:
    digests = Digests(chars_max=10)
    file_digests(("python",), project=project, folders=(), digests=digests)

    with pytest.raises(ConfigError, match="names more files"):
        file_digests(("python",), project=project, folders=(), digests=digests)


def test_a_path_relative_to_the_servers_folder_is_found(project: Path) -> None:
    assert list(named(project, "python", "server.py", cwd="tools")) == ["tools/server.py"]


def test_an_absolute_path_inside_the_project_counts(project: Path) -> None:
    assert list(named(project, str(project / "tools/server.py"))) == ["tools/server.py"]


def test_an_absolute_path_elsewhere_does_not(project: Path) -> None:
    assert named(project / "tools", str(project / "x"), "/bin/sh", "python", "--flag") == {}


def test_a_link_counts_by_what_it_leads_to(project: Path) -> None:
    (project / "link.py").symlink_to(project / "tools" / "server.py")

    assert named(project, "link.py")["link.py"] == hashlib.sha256(b"print()").hexdigest()


def test_what_is_no_file_is_passed_over(project: Path) -> None:
    os.mkfifo(project / "pipe")

    assert named(project, ".", "pipe", "missing", "a" * 5_000, "tools/server.py/x") == {}


def test_one_byte_past_the_bound_cannot_be_compared(project: Path) -> None:
    exact = len("print()") + len("print(1)")
    words = ("tools/server.py", "tools/__main__.py")

    assert (
        len(file_digests(words, project=project, folders=(project,), digests=Digests(exact))) == 2
    )
    with pytest.raises(ConfigError, match="more bytes than can be compared"):
        file_digests(words, project=project, folders=(project,), digests=Digests(exact - 1))


def test_a_file_that_is_missing_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        file_digest(tmp_path / "none")
