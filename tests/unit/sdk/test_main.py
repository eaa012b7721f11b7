"""The command line as a whole: exit codes, errors, start-up, completion."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

import halide_autotune.sdk.main as sdk_main
from halide_autotune.sdk import entry
from halide_autotune.targets.errors import ProfileError, UsageError

ROOT = Path(__file__).parents[3]


def run(*arguments: str, cache: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "halide_autotune.sdk.main", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cache), **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


class Interrupted(ModuleType):
    """The command's modules, while Ctrl-C comes."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


def test_an_interrupt_while_the_command_is_loaded_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, sdk_main.__name__, Interrupted("main"))
        assert entry.main() == 130
    assert capsys.readouterr().err == "sdk: interrupted.\n"
    monkeypatch.setattr(sdk_main, "main", lambda: 7)
    assert entry.main() == 7
    (script,) = (each for each in importlib.metadata.entry_points(group="console_scripts") if each.name == "sdk")
    assert script.load() is entry.main


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))


def outcome(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    def work() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(sdk_main, "_COMMANDS", (work,))
    code = sdk_main.main(["work"])
    captured = capsys.readouterr()
    assert captured.out == ""
    return code, captured.err


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(None, monkeypatch, capsys) == (0, "")
    failed = ProfileError("It is wrong.", next_step="Mend it.")
    assert outcome(failed, monkeypatch, capsys) == (1, "sdk: It is wrong. Mend it.\n")
    assert outcome(UsageError("No."), monkeypatch, capsys) == (2, "sdk: No.\n")
    assert outcome(KeyboardInterrupt(), monkeypatch, capsys) == (130, "sdk: interrupted.\n")
    assert outcome(typer.Exit(7), monkeypatch, capsys) == (7, "")


def test_an_unexpected_error_is_one_line_and_a_saved_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = outcome(ZeroDivisionError("by\nzero"), monkeypatch, capsys)
    assert code == 1
    assert text.startswith("sdk: unexpected error, a bug in the SDK (ZeroDivisionError: by zero).")
    (report,) = (tmp_path / "cache" / "crashes").iterdir()
    assert str(report) in text
    assert text.count("\n") == 1
    assert "Traceback" in report.read_text()
    assert "sdk work" in report.read_text()


def test_a_report_that_cannot_be_saved_goes_to_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SDK_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, text = outcome(ValueError("x"), monkeypatch, capsys)
    assert code == 1
    assert f"The details are in {tmp_path}/crash-" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["targts"], "No such command 'targts'"),
        (["targets", "--jsn"], "No such option: --jsn"),
        (["targets", "show"], "Missing argument 'PROFILE'. See `sdk targets show --help`."),
        (["doctor", "--target"], "requires an argument. See `sdk doctor --help`."),
        (["weights", "export", "arm64", "-o"], "requires an argument. See `sdk weights export --help`."),
        (["bench", "a.py", "a.schedule.h"], "Give a header with --schedule FILE. See `sdk bench --help`."),
        (["report", "run", "a.schedule.h"], "(a.schedule.h) See `sdk report --help`."),
    ],
)
def test_wrong_usage(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sdk_main.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("sdk: ")
    assert expected in error
    assert error.count("\n") == 1


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert sdk_main.main([]) == 2
    assert "Commands" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["autotune", "bench", "ship", "report"])
def test_the_help_has_each_bracket_once_and_says_of_flags_what_they_do(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sdk_main.main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not any("[[" in line or "]]" in line for line in lines)
    assert [line for line in lines if "<bool>" in line and "--help" not in line] == []


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["targets", "--help"], ["targets", "show", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert sdk_main.main(arguments) == 0
    assert "Usage: sdk" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        expected = importlib.metadata.version("halide-autotune-sdk")
    except importlib.metadata.PackageNotFoundError:
        expected = "not installed"
    assert sdk_main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"sdk {expected}\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "halide_autotune.sdk.main", "targets", "--json"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(240) == 1


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [
        (">&-", "--version", 0),
        (">&-", "weights list --json", 0),
        (">&-", "weights", 0),
        ("<&- >&- 2>&-", "targets", 0),
        ("2>&-", "targets show nobody", 1),
    ],
)
def test_a_stream_that_is_closed_is_no_error(closed: str, arguments: str, code: int, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m halide_autotune.sdk.main {arguments} {closed}', sys.executable],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SDK_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    assert not (tmp_path / "cache" / "crashes").exists()


def test_a_full_disk_is_one_message(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "halide_autotune.sdk.main", "targets"],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("sdk: standard output or a file: No space left on device. Free")
    assert done.stderr.count("\n") == 1


def test_starting_loads_nothing_heavy() -> None:
    heavy = "numpy tensorflow halide distributed dask paramiko adb_shell rich.table multiprocessing sqlite3"
    code = (
        "import sys, halide_autotune.sdk.main as sdk_main; sdk_main.make_application();"
        f"print(*(name for name in '{heavy}'.split() if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_completion_of_commands_and_of_values(tmp_path: Path) -> None:
    def complete(words: str) -> list[str]:
        done = run(
            cache=tmp_path,
            _SDK_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split(" ")) - 1),
            SDK_PROFILE_DIR=str(tmp_path),
        )
        assert done.stderr == ""
        return done.stdout.split()

    (tmp_path / "x86-mine.toml").write_text("broken")
    assert complete("sdk tar") == ["targets"]
    assert complete("sdk targets show x86") == ["x86-64", "x86-64-avx512", "x86-mine"]
    assert complete("sdk doctor --target arm6") == ["arm64", "arm64-android"]
    assert complete("sdk doctor --run exam") == ["examples/"]
    assert complete("sdk autotune --model gauss") == ["gaussian_process"]
    assert complete("sdk autotune --resume exam") == ["examples/"]
    assert complete("sdk autotune exam") == [], "a generator: the shell offers files"


def test_completion_can_be_installed(tmp_path: Path) -> None:
    done = run("--show-completion", "bash", cache=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert "complete -o default -F _sdk_completion sdk" in done.stdout


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_file_that_cannot_be_written_is_one_message(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: list[str]) -> int:
        raise OSError(number, os.strerror(number), "/there/file")

    monkeypatch.setattr(sdk_main, "_run", fail)
    assert sdk_main.main(["targets"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"sdk: /there/file: {os.strerror(number)}. ") and said.count("\n") == 1
