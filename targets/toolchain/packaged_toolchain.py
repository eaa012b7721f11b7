"""The C compiler of an installed package, chosen by a profile's `toolchain.kind`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from halide_autotune.targets.errors import SdkError, ToolchainError
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.compiler_run import program_version
from halide_autotune.targets.profile.profile import TOOLCHAINS, ToolchainChoice

_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0")
_LINK_FLAGS = ("-O2", "-s")


@dataclass(frozen=True)
class CompilerCommands:
    """How a compiler is called for one target: words, which no shell sees. The SDK runs it, with limits.

    The compiler takes the arguments of gcc and clang, and prints its version with `--version`.

    Attributes:
        c: the C compiler, as a path or as a name in /usr/bin, and the arguments that each use of it has.
        cpp: the C++ compiler, likewise; empty where there is none. It links its library statically.
        compile_flags: when compiling, beside the SDK's.
        link_flags: when linking, before the files.
        libraries: when linking, after the files.
        library: for people, the C library and how it is linked, such as 'glibc 2.36, dynamic'.
    """

    c: tuple[str, ...]
    cpp: tuple[str, ...] = ()
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ("-lm", "-lpthread", "-ldl")
    library: str = ""

    def check(self) -> None:
        """Check the words.

        Raises:
            TypeError, ValueError: one of them is none, or there is no compiler.
        """
        for name, value in zip(("c", "cpp", "compile_flags", "link_flags", "libraries"), astuple(self), strict=False):
            if not isinstance(value, tuple) or not all(isinstance(word, str) and "\0" not in word for word in value):
                raise TypeError(f"CompilerCommands.{name} must be a tuple of texts")
        if not self.c:
            raise ValueError("CompilerCommands.c must name the C compiler")


def open_packaged_toolchain(choice: ToolchainChoice, cache_folder: Path) -> PackagedToolchain:
    """The toolchain of a profile whose kind is a package's.

    Raises:
        ToolchainError: the package is not installed or cannot be used.
    """
    try:
        commands = TOOLCHAINS.make(choice.kind, choice)
    except SdkError as error:
        raise ToolchainError(error.message, next_step=error.next_step) from error
    return checked_toolchain(commands, choice, cache_folder)


def checked_toolchain(commands: object, choice: ToolchainChoice, cache_folder: Path) -> PackagedToolchain:
    """The toolchain that calls a compiler in this way.

    Raises:
        ToolchainError: it is no `CompilerCommands`, or has a wrong word.
    """
    try:
        if not isinstance(commands, CompilerCommands):
            raise TypeError(f"it must make an sdk.CompilerCommands, and makes {type(commands).__name__}")
        commands.check()
    except (TypeError, ValueError) as error:
        raise ToolchainError(
            f"The toolchain {choice.kind!r} (group {TOOLCHAINS.group}) cannot be used: {error}.",
            next_step=f"Mend it, or {TOOLCHAINS.remedy}.",
        ) from error
    return PackagedToolchain(choice, commands, cache_folder / "packaged")


@dataclass(frozen=True)
class PackagedToolchain(CToolchain):
    """A package's compiler for one target."""

    choice: ToolchainChoice
    commands: CompilerCommands
    cache_dir: Path
    _name = "a package's compiler"

    @property
    def _target(self) -> str:
        return self.choice.triple

    def version(self) -> str:
        """Return the first line that the compiler prints of its version."""
        next_step = f"Install it, or {TOOLCHAINS.remedy}."
        return program_version(self._program(self.commands.c), "The C compiler", next_step)

    def fingerprint(self) -> str:
        """Return everything of this toolchain that an object depends on, for cache keys."""
        words = [word for part in astuple(self.commands)[:5] for word in (*part, ";")]
        return " ".join((self.choice.kind, self.version(), self.choice.triple, *_COMPILE_FLAGS, *_LINK_FLAGS, *words))

    def describe(self) -> str:
        """Return a phrase such as 'gcc (gcc 12.2.0) for aarch64-linux-gnu, glibc 2.36, dynamic'."""
        library = f", {self.commands.library}" if self.commands.library else ""
        return f"{self.choice.kind} ({self.version()}) for {self.choice.triple}{library}"

    def _command(self) -> list[str]:
        return [str(self._program(self.commands.c)), *self.commands.c[1:]]

    def _cpp_command(self) -> list[str]:
        if not self.commands.cpp:
            return super()._cpp_command()
        return [str(self._program(self.commands.cpp)), *self.commands.cpp[1:], "-static-libstdc++"]

    def _compile_flags(self) -> Sequence[str]:
        return (*_COMPILE_FLAGS, *self.commands.compile_flags)

    def _link_arguments(self, files: Sequence[str], output: Path) -> Sequence[str]:
        return [*_LINK_FLAGS, *self.commands.link_flags, *files, *self.commands.libraries]

    def _program(self, words: Sequence[str]) -> Path:
        found = shutil.which(words[0], path=os.defpath)
        if found is None:
            raise ToolchainError(
                f"The toolchain {self.choice.kind!r} needs {words[0]}, which is no program here.",
                next_step=f"Install it, or {TOOLCHAINS.remedy}.",
            )
        return Path(found).absolute()
