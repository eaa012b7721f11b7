"""What installed packages add, with real packages on the path: found, loaded and refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.extension_point import ExtensionPoint
from tests.installed_package import install_package

POINT = ExtensionPoint(
    group="halide_autotune.samples",
    noun="sample",
    protocol="sdk.Sample",
    methods=("work",),
    built_in=("plain", "simple"),
    remedy="leave it out of --sample",
)
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package with an entry point and a module of the test's own."""

    def installed(name: str, module: str, package: str = "lab-samples") -> None:
        own = f"lab_{abs(hash((tmp_path, name, package)))}"
        install_package(tmp_path / package, package, {POINT.group: {name: f"{own}:Lab"}}, {own: module}, monkeypatch)

    return installed


def test_names_are_those_that_are_built_in_and_those_of_packages(install: Install) -> None:
    assert POINT.names() == ["plain", "simple"]
    install("lab", "")
    assert POINT.names() == ["plain", "simple", "lab"]


def test_what_is_asked_for_is_made_with_its_arguments(install: Install) -> None:
    install("lab", "class Lab:\n    def __init__(self, x):\n        self.x = x\n    def work(self): ...\n")
    assert POINT.make("lab", 3).x == 3
    assert POINT.problem(POINT.entry("lab")) is None


def test_an_unknown_name_says_which_there_are(install: Install) -> None:
    install("lab", "")
    with pytest.raises(UsageError, match="There is no sample 'simpel'; the nearest is 'simple'") as caught:
        POINT.make("simpel")
    assert "plain, simple, lab" in caught.value.next_step


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        ("import no_such_module", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("", "cannot be imported: AttributeError"),
        ("import sys\nsys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("Lab = 5", "is an int, and cannot be called to make one"),
        (
            "class Lab:\n    def __init__(self):\n        raise OSError('no\\nboard')",
            "cannot be made: OSError: no board",
        ),
        ("class Lab: ...", "made a Lab, which has no method `work`"),
    ],
)
def test_one_that_cannot_be_used_is_one_sentence(install: Install, module: str, fault: str) -> None:
    install("lab", module)
    with pytest.raises(UsageError) as caught:
        POINT.make("lab")
    message = caught.value.message
    assert message.startswith("The sample 'lab' (lab_") and fault in message and "\n" not in str(caught.value)
    assert "of the package lab-samples, group halide_autotune.samples" in message
    assert caught.value.next_step == "Mend it (sdk.Sample says what it must be), or leave it out of --sample."


def test_an_error_for_the_user_goes_through(install: Install) -> None:
    text = (
        "from halide_autotune.targets.errors import DeviceError\ndef Lab():\n    raise DeviceError('The board is off.')"
    )
    install("lab", text)
    with pytest.raises(DeviceError, match="The board is off"):
        POINT.make("lab")


def test_a_name_that_is_built_in_is_refused_where_it_is_asked_for(install: Install) -> None:
    install("plain", "raise SystemError('it must not be imported')")
    POINT.refuse_taken(["simple"])
    with pytest.raises(UsageError, match="has the name of a built-in one") as caught:
        POINT.refuse_taken(["simple", "plain"])
    assert "none of plain, simple, or uninstall the package lab-samples" in caught.value.next_step
    assert POINT.problem(POINT.installed()[0]) is not None
    assert POINT.names() == ["plain", "simple"]


def test_a_name_of_two_packages_is_refused(install: Install) -> None:
    install("lab", "class Lab: ...")
    install("lab", "class Lab: ...", package="other-samples")
    with pytest.raises(UsageError, match="is in the package lab-samples and the package other-samples"):
        POINT.make("lab")
