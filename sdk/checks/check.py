"""The result of one check, whatever was checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from halide_autotune.targets.errors import SdkError


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes:
        name: what was checked.
        passed: whether it is as it should be.
        found: what was found, or what is wrong.
        fix: what to do about it; empty if the check passed.
        needed: False if a failure is no fault (this machine lacks another machine's vector unit).
    """

    name: str
    passed: bool
    found: str
    fix: str = ""
    needed: bool = True


def try_check(name: str, ask: Callable[[], str], *, needed: bool = True) -> Check:
    """Return a check that passes with the answer of `ask`, or fails with the SdkError that it raises."""
    try:
        return Check(name, True, ask(), needed=needed)
    except SdkError as error:
        return Check(name, False, error.message, error.next_step, needed)
