"""Settings from environment variables."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.sdk.settings import read_settings


def test_without_variables_everything_is_below_home() -> None:
    settings = read_settings({"HOME": "/home/eve"})
    assert settings.cache_folder == Path("/home/eve/.cache/halide-autotune-sdk")
    assert settings.config_folder == Path("/home/eve/.config/halide-autotune-sdk")
    assert settings.profile_folder == settings.config_folder / "profiles"


def test_xdg_variables_count_where_they_are_absolute() -> None:
    settings = read_settings({"HOME": "/home/eve", "XDG_CACHE_HOME": "/fast", "XDG_CONFIG_HOME": "relative"})
    assert settings.cache_folder == Path("/fast/halide-autotune-sdk")
    assert settings.config_folder == Path("/home/eve/.config/halide-autotune-sdk")


def test_own_variables_win_and_empty_ones_do_not_count() -> None:
    settings = read_settings(
        {
            "HOME": "/home/eve",
            "XDG_CACHE_HOME": "/fast",
            "SDK_CACHE_DIR": "/mine",
            "SDK_CONFIG_DIR": "",
            "SDK_PROFILE_DIR": "boards",
        }
    )
    assert settings.cache_folder == Path("/mine")
    assert settings.config_folder == Path("/home/eve/.config/halide-autotune-sdk")
    assert settings.profile_folder == Path.cwd() / "boards"


def test_children_do_not_see_what_would_change_a_result() -> None:
    variables = {"HOME": "/h", "PATH": "/bin", "HL_RANDOMIZE_WEIGHTS": "1", "QEMU_CPU": "max"}
    assert dict(read_settings(variables).environment) == {"HOME": "/h", "PATH": "/bin"}


def ndk_root(**variables: str) -> Path | None:
    return read_settings({"HOME": "/h", **variables}).ndk_root


def test_the_ndk_has_three_variables_of_which_the_first_counts() -> None:
    assert ndk_root() is None
    assert ndk_root(ANDROID_NDK_ROOT="", ANDROID_NDK="/c") == Path("/c")
    assert ndk_root(ANDROID_NDK_HOME="/b", ANDROID_NDK="/c") == Path("/b")
    assert ndk_root(ANDROID_NDK_ROOT="a", ANDROID_NDK_HOME="/b") == Path.cwd() / "a"


def test_else_the_newest_ndk_of_the_android_sdk_counts(tmp_path: Path) -> None:
    assert ndk_root(ANDROID_HOME=str(tmp_path)) is None
    (tmp_path / "ndk").mkdir()
    assert ndk_root(ANDROID_HOME=str(tmp_path)) is None
    for name in ("9.0.1", "26.1.10909125", "26.1.9", ".installing", "side-by-side"):
        (tmp_path / "ndk" / name).mkdir()
    (tmp_path / "ndk" / "99.0").write_text("a file")
    assert ndk_root(ANDROID_HOME=str(tmp_path)) == tmp_path / "ndk" / "26.1.10909125"
    assert ndk_root(ANDROID_HOME=str(tmp_path), ANDROID_NDK="/c") == Path("/c")


def test_no_home_variable_falls_back_on_the_password_file() -> None:
    assert read_settings({}).cache_folder.is_absolute()
