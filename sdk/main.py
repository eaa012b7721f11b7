"""The command `sdk`: its commands, and its exit codes.

0    done
1    failed, with one message on standard error that names the next step
2    wrong usage
3 to 7: of `sdk check`, which has found something
130  interrupted
"""

from __future__ import annotations

import functools
import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from halide_autotune.sdk.commands import config, history, schedule, targets
from halide_autotune.sdk.commands.autotune.autotune import autotune
from halide_autotune.sdk.commands.bench import bench
from halide_autotune.sdk.commands.build import build
from halide_autotune.sdk.commands.check import check
from halide_autotune.sdk.commands.cmake_dir import cmake_dir
from halide_autotune.sdk.commands.compare import compare
from halide_autotune.sdk.commands.devices import devices
from halide_autotune.sdk.commands.doctor import doctor
from halide_autotune.sdk.commands.explain import explain
from halide_autotune.sdk.commands.farm import farm
from halide_autotune.sdk.commands.network import network
from halide_autotune.sdk.commands.report import report
from halide_autotune.sdk.commands.retrain import retrain
from halide_autotune.sdk.commands.ship import ship
from halide_autotune.sdk.commands.suggest import suggest
from halide_autotune.sdk.commands.weights import weights
from halide_autotune.sdk.options.completion_scripts import use_own_scripts
from halide_autotune.sdk.options.help_text import help_text
from halide_autotune.sdk.output import accept_every_text, open_closed_streams
from halide_autotune.sdk.service.interrupts import end_in_order
from halide_autotune.targets.errors import SdkError, remedy

# Commands import what is slow to import inside their functions, so that `sdk --help` stays instant.
_COMMANDS: tuple[Callable[..., None], ...] = (
    autotune,
    suggest,
    build,
    bench,
    ship,
    check,
    retrain,
    report,
    explain,
    compare,
    doctor,
    cmake_dir,
)
_GROUPS = (
    schedule.group,
    targets.group,
    devices.group,
    farm.group,
    weights.group,
    history.group,
    network.group,
    config.group,
)


_DONE = 0
_FAILED = 1
_INTERRUPTED = 130
# Some versions of typer have their own copy of click, others use the package; both have this class.
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (this process's if none is given) and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    accept_every_text()
    try:
        with end_in_order():
            code = _run(given)
        sys.stdout.flush()
    except SdkError as error:
        return _complain(str(error), error.exit_code)
    except _CommandLineError as error:
        return _complain(*_usage(error, given))
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError as error:
        if not _stdout_is_closed():
            return _report_unexpected(error, given)
        _discard_stdout()
        return _FAILED
    except OSError as error:
        step = remedy(error)
        # Without a file it is not known what is forbidden.
        if not step or (error.filename is None and isinstance(error, PermissionError)):
            return _report_unexpected(error, given)
        _flush_or_discard_stdout()
        return _complain(f"{error.filename or 'standard output or a file'}: {error.strerror}. {step}", _FAILED)
    except Exception as error:
        return _report_unexpected(error, given)
    return _complain("interrupted.", code) if code == _INTERRUPTED else code


def make_application() -> typer.Typer:
    """Return the application with all its commands."""
    application = typer.Typer(
        name="sdk",
        help="Autotune Halide pipelines for the devices they will run on."
        "\n\nExample: sdk autotune blur.py --target host --budget 5m",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback(invoke_without_command=True)(_without_command)
    for command in _COMMANDS:
        application.command()(command)
    for group in _GROUPS:
        application.add_typer(group)
    return application


def _run(arguments: list[str]) -> int:
    use_own_scripts()
    command = typer.main.get_command(make_application())
    _explain_plainly(command, short="-h" in arguments and "--help" not in arguments)
    result = command.main(args=arguments, prog_name="sdk", standalone_mode=False)
    return result if isinstance(result, int) else _DONE


def _explain_plainly(command: Any, *, short: bool) -> None:
    """Give a command and those below it our help, in place of Typer's, which has boxes and names of Python's types."""
    command.get_help = functools.partial(help_text, command, short=short)
    for each in getattr(command, "commands", {}).values():
        _explain_plainly(each, short=short)


def _version(wanted: bool) -> None:
    if wanted:
        from halide_autotune.sdk.output import sdk_version

        typer.echo(f"sdk {sdk_version()}")
        raise typer.Exit


def _without_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def _complain(text: str, exit_code: int) -> int:
    try:
        sys.stderr.write(f"sdk: {text}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody can read it; the exit code still says it
    return exit_code


def _usage(error: Exception, arguments: Sequence[str]) -> tuple[str, int]:
    """Return the message and the exit code of an error that typer found in the command line."""
    format_message = getattr(error, "format_message", None)
    message = " ".join(str(format_message() if callable(format_message) else error).split())
    # An option without its value is found where typer does not say of which command it is.
    path = getattr(getattr(error, "ctx", None), "command_path", None) or _command_path(arguments)
    stop = "" if message.endswith(("?", ")", ".")) else "."
    return f"{message}{stop}{_header_hint(error, message)} See `{path} --help`.", int(getattr(error, "exit_code", 2))


def _header_hint(error: Exception, message: str) -> str:
    """How a header is given to commands that take one, for those who give it without the option."""
    context = getattr(error, "ctx", None)
    takes_one = context is not None and any("--schedule" in each.opts for each in context.command.params)
    return " Give a header with --schedule FILE." if takes_one and ".schedule.h" in message else ""


def _command_path(arguments: Sequence[str]) -> str:
    """The command that a command line begins with, such as 'sdk weights show'."""
    command, path = typer.main.get_command(make_application()), "sdk"
    for word in arguments:
        commands = getattr(command, "commands", {})
        if word not in commands:
            break
        command, path = commands[word], f"{path} {word}"
    return path


def _stdout_is_closed() -> bool:
    """Say whether the reader of standard output is gone."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def _flush_or_discard_stdout() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()


def _discard_stdout() -> None:
    """Discard what is still buffered, or Python fails again when it exits."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def _report_unexpected(error: Exception, arguments: list[str]) -> int:
    """Save the traceback of a bug in the SDK and say where it is."""
    from halide_autotune.sdk.service.crash_report import save_crash_report

    place = save_crash_report(error, arguments)
    summary = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return _complain(f"unexpected error, a bug in the SDK ({summary}). The details are in {place}.", _FAILED)


if __name__ == "__main__":
    sys.exit(main())
