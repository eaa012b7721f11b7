"""What a toolchain of a package must keep to."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from halide_autotune.sdk.contracts.require import require
from halide_autotune.targets.errors import SdkError, ToolchainError
from halide_autotune.targets.extension_point import told
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.profile.profile import TOOLCHAINS, ToolchainChoice
from halide_autotune.targets.toolchain.packaged_toolchain import CompilerCommands, checked_toolchain

# What Halide's runtime needs of a C library.
_PROGRAM = r"""
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
static void *work(void *sum) { *(double *)sum = sqrt(1764.0); return NULL; }
int main(int count, char **words) {
    double sum = count > 9 ? 1.0 : 0.0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &sum) != 0) return 1;
    pthread_join(thread, NULL);
    printf("%.0f %d\n", sum, dlsym(RTLD_DEFAULT, "no_such_symbol") == NULL);
    return words == NULL;
}
"""
_RUN_S = 60.0


def check_toolchain(
    toolchain: str | Callable[[ToolchainChoice], CompilerCommands],
    triple: str,
    *,
    run_with: Sequence[str] | None = None,
) -> None:
    """Check that a toolchain compiles C for a target, links it and refuses what is wrong.

    Args:
        toolchain: the name of its entry point; or the function that the entry point leads to.
        triple: the target, as profiles have it in toolchain.triple.
        run_with: starts the program that was linked: an emulator's words, or () on this machine; None starts nothing.

    Raises:
        AssertionError: it does not keep to something; the message says to what.
        UsageError: there is none of that name, or it cannot be imported or made.
    """
    name, make = ("it", toolchain) if callable(toolchain) else (toolchain, TOOLCHAINS.load(toolchain))
    choice = ToolchainChoice(name, triple)
    commands = TOOLCHAINS.checked(name, make, choice)
    with tempfile.TemporaryDirectory() as folder:
        try:
            opened = checked_toolchain(commands, choice, Path(folder))
            words = {"version": opened.version(), "describe": opened.describe(), "fingerprint": opened.fingerprint()}
            program = _built(opened, _PROGRAM, Path(folder))
        except SdkError as error:
            raise AssertionError(f"The toolchain must compile and link for {triple}; it does not: {error}") from error
        require(program.is_file(), f"The toolchain must compile and link for {triple}", "there is no program")
        for method, said in words.items():
            require(said.isprintable(), f"{method} must be one line of printable text", repr(said))
        require(TOOLCHAINS.checked(name, make, choice) == commands, "An equal choice must give equal commands")
        try:
            _built(opened, "int main(void) { return undeclared; }", Path(folder))
        except ToolchainError:
            pass
        else:
            require(False, "The compiler must refuse a program that is wrong")
        if run_with is not None:
            _check_run([*run_with, str(program)])


def _built(toolchain: CToolchain, text: str, folder: Path) -> Path:
    source, compiled, program = folder / "program.c", folder / "program.o", folder / "program"
    source.write_text(text)
    toolchain.compile_c(source, compiled, [folder])
    toolchain.link([compiled], program)
    return program


def _check_run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AssertionError(f"The program must run; it does not: {told(error)}") from error
    printed = f"exit code {done.returncode}, {done.stdout + done.stderr}"
    require(done.returncode == 0 and done.stdout == "42 1\n", "The program must compute in a thread and print", printed)
