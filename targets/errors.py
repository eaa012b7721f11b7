"""The one error tree of the SDK.

The command line prints an `SdkError`, which a user can act on, and exits with its `exit_code`. Expected failures of one
candidate (a search that crashes, a wrong output) are typed results, never exceptions.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator


class SdkError(Exception):
    """An error that a user can act on.

    Attributes:
        message: what is wrong, where, and what was expected.
        next_step: what to do about it; may be empty.
    """

    exit_code = 1

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".rstrip()


class UsageError(SdkError):
    """A wrong argument or option."""

    exit_code = 2


class ProfileError(SdkError):
    """A target profile is missing or has a wrong field."""


class GeneratorError(SdkError):
    """A generator cannot be found, built or run."""


class ToolchainError(SdkError):
    """A compiler, a linker or Halide is missing or fails."""


class KernelLinkError(ToolchainError):
    """Kernels cannot be linked.

    Attributes:
        kernels: the names of those that stand in the way, as far as the linker tells; others may, too.
    """

    def __init__(self, message: str, *, next_step: str = "", kernels: tuple[str, ...] = ()) -> None:
        super().__init__(message, next_step=next_step)
        self.kernels = kernels


class EmulatorError(SdkError):
    """An emulator or its system root is missing."""


class DeviceError(SdkError):
    """A device cannot be reached or used."""


class FarmError(SdkError):
    """A farm's scheduler or worker cannot be reached, or a certificate or version is refused."""


class WeightsError(SdkError):
    """A weights, featurization or sample file is missing, damaged or has another version."""


class HistoryError(SdkError):
    """The history of earlier runs, or a file that was exported from one, is damaged or has another version."""


class RunFolderError(SdkError):
    """A run folder is in use, is damaged, or was made with other settings."""


class BudgetError(SdkError):
    """A run's budget was over before its first schedule was timed; the run can be continued with a longer one."""


class NetworkError(SdkError):
    """A neural network cannot be read."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def remedy(error: OSError) -> str:
    """What to do about a disk that is full or must not be written to; empty for other errors."""
    if error.errno in _FULL:
        return "Free some disk space there."
    return "Correct its permissions, or choose another folder." if error.errno in _FORBIDDEN else ""


@contextlib.contextmanager
def os_error_as(kind: type[SdkError], what: str, *, next_step: str = "") -> Iterator[None]:
    """Raise an OSError inside as `kind`: its message is `what`, such as 'FILE cannot be read', and the reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}.", next_step=next_step or remedy(error)) from error
