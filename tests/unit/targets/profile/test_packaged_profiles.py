"""Profiles of installed packages: found by name, extended, and refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.sdk.testing import check_profile
from halide_autotune.targets.errors import ProfileError, UsageError
from halide_autotune.targets.profile.loader import list_profiles, load_profile, profile_names
from halide_autotune.targets.profile.packaged_profiles import BUILT_IN_FOLDER, PROFILES
from tests.installed_package import install_package

A76 = 'extends = "arm64"\ndescription = "Two fast cores"\n[machine]\nparallelism = 2\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package, `lab_profiles`, that brings `lab-a76`, names a file that is not there and a module that is not."""
    names = {
        "lab-a76": "lab_profiles",
        "lab-lost": "lab_profiles",
        "lab-gone": "no_such_module",
        "host": "lab_profiles",
    }
    install_package(tmp_path, "lab-profiles", {PROFILES.group: names}, {"lab_profiles": ""}, monkeypatch)
    (tmp_path / "lab-a76.toml").write_text(A76)
    (tmp_path / "host.toml").write_text(A76)
    return tmp_path


def test_a_package_brings_one_by_name(folder: Path) -> None:
    profile = load_profile("lab-a76")
    assert (profile.machine.parallelism, profile.halide_target) == (2, load_profile("arm64").halide_target)
    assert profile.source == str(folder / "lab-a76.toml")
    assert {"lab-a76", "lab-lost", "lab-gone", "arm64"} <= {*profile_names()}
    check_profile("lab-a76")


def test_a_users_own_wins_and_may_extend_it(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "lab-a76.toml").write_text('extends = "lab-a76"\ndescription = "Mine"\n')
    profile = load_profile("lab-a76", own)
    assert (profile.description, profile.machine.parallelism) == ("Mine", 2)


def test_what_is_built_in_stays_and_is_refused_to_packages(folder: Path) -> None:
    assert load_profile("host").description != "Two fast cores"
    with pytest.raises(UsageError, match="The target profile 'host' .* has the name of a built-in one"):
        check_profile("host")


def test_one_that_cannot_be_loaded_is_one_sentence_and_listed(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"The target profile 'lab-lost' .* has no file lab-lost\.toml"):
        load_profile("lab-lost")
    with pytest.raises(UsageError, match="The target profile 'lab-gone' .* cannot be imported: ModuleNotFoundError"):
        load_profile("lab-gone")
    listed = {one.name: one for one in list_profiles()}
    assert listed["lab-a76"].profile is not None
    assert "cannot be imported" in (listed["lab-gone"].error or "")
    with pytest.raises(ProfileError, match="There is no target profile 'lab-a77'; the nearest is 'lab-a76'"):
        load_profile("lab-a77")


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ('extends = "arm65"\n', "must load; it does not: .*arm65"),
        ('extends = "arm64"\nhalide_target = "x"\n', "must load; it does not: .*halide_target"),
        ('extends = "arm64"\nstart_weights = "none.weights"\n', "must load; it does not: .*none.weights"),
    ],
)
def test_the_check_says_what_is_not_kept(folder: Path, text: str, promise: str) -> None:
    (folder / "lab-a76.toml").write_text(text)
    with pytest.raises(AssertionError, match=promise):
        check_profile("lab-a76")


@pytest.mark.parametrize("file", sorted(BUILT_IN_FOLDER.glob("arm*.toml")), ids=lambda file: file.stem)
def test_those_that_are_built_in_pass_as_a_packages(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"lab-{file.stem}.toml").write_bytes(file.read_bytes())
    names = {PROFILES.group: {f"lab-{file.stem}": f"lab_{file.stem.replace('-', '_')}"}}
    install_package(tmp_path, "lab", names, {f"lab_{file.stem.replace('-', '_')}": ""}, monkeypatch)
    check_profile(f"lab-{file.stem}")
