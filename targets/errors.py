"""The one error tree of the SDK.

    SdkError                 anything a user can act on; the command line prints it and exits with exit_code
    ├── UsageError           a wrong argument or option (exit code 2)
    ├── ProfileError         a target profile is missing or has a wrong field
    ├── GeneratorError       a generator cannot be built, found or run at all
    ├── ToolchainError       a compiler, linker or Halide itself is missing or fails
    ├── EmulatorError        an emulator or its system root is missing
    ├── DeviceError          a device cannot be reached or used
    ├── FarmError            a farm's scheduler or member cannot be reached, or a certificate or version is refused
    ├── WeightsError         a weights, featurization or sample file is missing, damaged or of another version
    └── RunFolderError       a run folder is in use, damaged, or was made with other settings

Expected failures of one candidate (a search that crashes, a wrong output) are typed results, never exceptions.
"""

from __future__ import annotations


class SdkError(Exception):
    """One clear message: what is wrong, where, what was expected; then what to do next.

    Attributes:
        message: what is wrong, where, and what was expected.
        next_step: what the user can do about it; may be empty.
    """

    exit_code = 1

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        # The next step is a keyword argument, which pickling between workers would lose.
        return _rebuild, (type(self), self.message, self.next_step)


def _rebuild(kind: type[SdkError], message: str, next_step: str) -> SdkError:
    return kind(message, next_step=next_step)


class UsageError(SdkError):
    """A wrong argument or option."""

    exit_code = 2


class ProfileError(SdkError):
    """A target profile is missing or has a wrong field."""


class GeneratorError(SdkError):
    """A generator cannot be built, found or run at all."""


class ToolchainError(SdkError):
    """A compiler, a linker or Halide itself is missing or fails."""


class EmulatorError(SdkError):
    """An emulator or its system root is missing."""


class DeviceError(SdkError):
    """A device cannot be reached or used."""


class FarmError(SdkError):
    """A farm's scheduler or member cannot be reached, or a certificate or version is refused."""


class WeightsError(SdkError):
    """A weights, featurization or sample file is missing, damaged or of another version."""


class RunFolderError(SdkError):
    """A run folder is in use, damaged, or was made with other settings."""
