import platform
import shutil
import sys

import pytest
from lab_extensions.walk import Walk

from sdk.testing import (
    check_model,
    check_notifier,
    check_profile,
    check_technique,
    check_toolchain,
    check_transport,
)


def test_the_technique():
    check_technique("walk")


def test_the_model():
    check_model("neighbours")


def test_the_notifier(tmp_path):
    file = tmp_path / "runs.log"
    check_notifier(sys.executable, "-m", "lab_extensions.log", file)
    assert file.read_text().startswith("blur for arm64 (finished): 1.84 times as fast (/tuned/blur-arm64-1)\n")


def test_the_transport(tmp_path):
    check_transport("here", f"here://{tmp_path}")


def test_the_profile():
    check_profile("lab-a76")


def test_the_toolchain():
    if shutil.which("x86_64-linux-gnu-gcc") is None:
        pytest.skip("Debian's gcc for x86-64 is not installed")
    check_toolchain("gcc", "x86_64-linux-gnu", run_with=() if platform.machine() == "x86_64" else None)


def test_a_check_says_what_is_not_kept():
    class Forgetful(Walk):
        def propose(self, population, count, source):
            return None

    with pytest.raises(AssertionError, match="propose must not fail with 0 schedules known"):
        check_technique(Forgetful)
