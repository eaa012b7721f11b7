"""Profiles: found, inherited, validated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halide_autotune.targets.errors import ProfileError
from halide_autotune.targets.profile.host_probe import host_halide_target, probe_host
from halide_autotune.targets.profile.loader import BUILT_IN, list_profiles, load_profile, profile_names
from halide_autotune.targets.profile.profile import TargetProfile

GOOD = """
halide_target = "arm-64-linux"
device_kind = "qemu"
[machine]
parallelism = 4
[autoscheduler]
name = "Adams2019"
[toolchain]
kind = "zig"
triple = "aarch64-linux-gnu.2.28"
[emulator]
command = "qemu-aarch64"
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(file: Path, user_folder: Path | None = None) -> str:
    with pytest.raises(ProfileError) as caught:
        load_profile(str(file), user_folder)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_built_in_profiles() -> None:
    listings = list_profiles()
    names = [listing.name for listing in listings if not listing.name.startswith(("cuda-", "hexagon-"))]
    assert names == ["host", "arm32", "arm64", "arm64-android", "riscv64-rvv", "x86-64", "x86-64-avx512"]
    assert all(listing.error is None for listing in listings)
    arm64 = load_profile("arm64")
    assert arm64.halide_target == "arm-64-linux"
    assert arm64.toolchain.triple == "aarch64-linux-gnu.2.28"
    assert arm64.device_kind == "qemu"
    assert arm64.emulator is not None
    assert arm64.emulator.system_root == "/usr/aarch64-linux-gnu"
    assert arm64.emulator.debian_packages == ("qemu-user", "libc6-arm64-cross")
    assert (arm64.machine.parallelism, arm64.machine.vector_bits) == (4, 128)
    assert load_profile("x86-64").halide_target == "x86-64-linux-avx-avx2-f16c-fma-sse41"
    avx512 = load_profile("x86-64-avx512")
    assert (avx512.machine.parallelism, avx512.machine.vector_bits) == (16, 512)
    assert avx512.toolchain.triple == "x86_64-linux-gnu.2.28"


def test_the_profile_of_phones() -> None:
    phone = load_profile("arm64-android")
    assert phone.halide_target == "arm-64-android"
    assert (phone.machine.parallelism, phone.machine.vector_bits) == (4, 128)
    assert (phone.toolchain.kind, phone.toolchain.triple) == ("android", "aarch64-linux-musl")
    assert phone.toolchain.android_api_level == 28
    assert phone.device_kind == "qemu"
    assert phone.emulator is not None and phone.emulator.system_root is None


def test_host_is_this_machine() -> None:
    host, machine = load_profile("host"), probe_host()
    assert host.halide_target == host_halide_target()
    assert host.machine.parallelism == machine.logical_cores
    assert host.machine.last_level_cache_bytes == machine.last_level_cache_bytes
    assert host.toolchain.triple.startswith(machine.architecture)
    assert host.source == BUILT_IN


@pytest.mark.toolchain
def test_the_triple_compiles_with_zig(tmp_path: Path) -> None:
    from halide_autotune.targets.toolchain.zig import ZigToolchain

    source = tmp_path / "empty.c"
    source.write_text("int answer(void) { return 42; }\n")
    for name in ("host", "arm64", "arm64-android", "x86-64"):
        toolchain = ZigToolchain(load_profile(name).toolchain.triple, tmp_path / "zig")
        toolchain.compile_c(source, tmp_path / f"{name}.o", [])
        assert (tmp_path / f"{name}.o").stat().st_size > 0


def test_a_user_profile_wins_over_a_built_in_one_and_may_extend_it(tmp_path: Path) -> None:
    write(tmp_path, "arm64", 'extends = "arm64"\n[machine]\nparallelism = 8')
    profile = load_profile("arm64", tmp_path)
    assert profile.machine.parallelism == 8
    assert profile.machine.l2_cache_bytes == load_profile("arm64").machine.l2_cache_bytes
    assert profile.emulator == load_profile("arm64").emulator
    assert profile.source == str(tmp_path / "arm64.toml")


def test_extending_host_keeps_what_was_probed(tmp_path: Path) -> None:
    file = write(tmp_path, "mine", 'extends = "host"\n[machine]\nparallelism = 1')
    profile = load_profile(str(file))
    assert profile.halide_target == host_halide_target()
    assert profile.machine.parallelism == 1


def test_extends_takes_a_path_beside_the_file(tmp_path: Path) -> None:
    write(tmp_path, "base", GOOD)
    file = write(tmp_path, "child", 'extends = "./base.toml"\ndescription = "a child"')
    assert load_profile(str(file)).description == "a child"


def test_another_autoscheduler_drops_the_parameters_of_the_first(tmp_path: Path) -> None:
    write(tmp_path, "base", GOOD + "[autoscheduler.parameters]\nbeam_size = 8\nrandom_dropout = true")
    write(tmp_path, "same", 'extends = "base"\n[autoscheduler.parameters]\nbeam_size = 1')
    write(tmp_path, "other", 'extends = "base"\n[autoscheduler]\nname = "Mullapudi2016"')
    same = load_profile("same", tmp_path).autoscheduler
    assert same.parameters == {"beam_size": "1", "random_dropout": "1"}
    assert load_profile("other", tmp_path).autoscheduler.parameters == {}


def test_start_weights_are_beside_the_profile(tmp_path: Path) -> None:
    (tmp_path / "board.weights").write_bytes(b"")
    file = write(tmp_path, "board", 'start_weights = "board.weights"\n' + GOOD)
    assert load_profile(str(file)).start_weights == str(tmp_path / "board.weights")
    gone = write(tmp_path, "gone", 'start_weights = "gone.weights"\n' + GOOD)
    assert "there is no file" in refusal(gone)


def test_a_circle_is_found(tmp_path: Path) -> None:
    write(tmp_path, "a", 'extends = "b"')
    write(tmp_path, "b", 'extends = "a"')
    with pytest.raises(ProfileError, match="goes round in a circle"):
        load_profile("a", tmp_path)
    itself = write(tmp_path, "itself", 'extends = "itself"')
    assert "circle" in refusal(itself, tmp_path)


def test_a_broken_user_profile_is_listed_with_its_error(tmp_path: Path) -> None:
    file = write(tmp_path, "broken", "halide_target = 3")
    write(tmp_path, "good", GOOD)
    listings = {listing.name: listing for listing in list_profiles(tmp_path)}
    assert set(listings) == set(profile_names(tmp_path)) == {*profile_names(), "broken", "good"}
    assert listings["good"].profile is not None
    broken = listings["broken"]
    assert broken.profile is None
    assert broken.source == str(file)
    assert broken.error is not None
    assert "key 'halide_target' must be a string, not an integer" in broken.error


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("parallelism = 4", "parallelism = 0"), "'machine.parallelism' must be an integer from 1"),
        (("parallelism = 4", "parallelism = true"), "not true or false"),
        (("parallelism = 4", "paralelism = 4"), "the nearest is 'machine.parallelism'"),
        (("parallelism = 4", ""), "the key 'machine.parallelism' is missing"),
        (("parallelism = 4", f"parallelism = 1{'0' * 4000}"), "a number of more than 20 digits"),
        (("parallelism = 4", "parallelism = 4\nvector_bits = 100"), "must be a power of two"),
        (("Adams2019", "Adams2018"), "the nearest is 'Adams2019'"),
        (("Adams2019", "Adams2019\\n"), "not 'Adams2019\\n'; the nearest is 'Adams2019'"),
        (('command = "qemu-aarch64"', 'command = "a\\nb"'), "the name or path of one program"),
        (("arm-64-linux", "arm-64-linx"), "'linx' is not a valid operating system"),
        (("aarch64-linux-gnu.2.28", "x86_64-linux-gnu"), "for another architecture"),
        (("aarch64-linux-gnu.2.28", "aarch64 linux"), "a zig target such as"),
        (('"qemu"', '"qemo"'), "must be one of local, qemu, not 'qemo'; the nearest is 'qemu'"),
        (('command = "qemu-aarch64"', ""), "'emulator.command' is missing"),
        (('[emulator]\ncommand = "qemu-aarch64"\n', ""), "a table [emulator] is needed"),
        (('command = "qemu-aarch64"', 'arguments = ["-cpu", "max"]'), "'emulator.command' is missing"),
        (('"qemu-aarch64"', '"qemu-aarch64 -cpu max"'), "name or path of one program"),
        (('"qemu-aarch64"', '"q"\narguments = "-cpu"'), "'emulator.arguments' must be a list, not a string"),
        (('"qemu-aarch64"', '"q"\nsystem_root = "arm"'), "must be an absolute path"),
        (
            ('"qemu-aarch64"', '"q"\ndebian_packages = ["-y"]'),
            "'emulator.debian_packages[0]' must be the name of a Debian package, not '-y'",
        ),
        (("[machine]", "name = 1\n[machine]"), "the file's name is the profile's name"),
        (("[machine]", "emulator = 1\n[machine]"), "not valid TOML"),
        (("[emulator]", "[emulators]"), "the nearest is 'emulator'"),
        (("[toolchain]", "[machine.parallelism]"), "not valid TOML"),
        (("[toolchain]", '["machine.parallelism"]\nx=1\n[toolchain]'), "unknown key"),
    ],
)
def test_refusals_name_file_key_and_expectation(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    assert change[0] in GOOD
    file = write(tmp_path, "board", GOOD.replace(*change))
    text = refusal(file)
    assert text.startswith(str(file))
    assert expected in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("beam_sise = 3", "Adams2019 has no parameter 'beam_sise'; the nearest is 'beam_size'"),
        ("beam_size = 1.5", "must be a whole number"),
        ('beam_size = "many"', "must be a whole number"),
        ("parallelism = 3", "machine.parallelism sets it"),
        ("random_dropout_seed = 3", "its own seed"),
        ("balance = 3", "has no parameter 'balance'"),
        ("beam_size = 1979-05-27", "not a date or time"),
    ],
)
def test_parameters_are_those_of_the_autoscheduler(tmp_path: Path, line: str, expected: str) -> None:
    file = write(tmp_path, "board", GOOD + "[autoscheduler.parameters]\n" + line)
    assert expected in refusal(file)


PHONE = 'extends = "arm64-android"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[toolchain]\nandroid_api_level = 20", "'toolchain.android_api_level' must be an integer from 21 to 99"),
        ('[toolchain]\nandroid_api_level = "28"', "not a string"),
        ('[toolchain]\ntriple = "aarch64-linux-gnu.2.28"', "'toolchain.triple' must be for musl, such as aarch64-"),
        ('halide_target = "arm-64-linux"', "'android' does not fit the Halide target 'arm-64-linux'"),
        ('[toolchain]\nkind = "androit"', "the nearest is 'android'"),
    ],
)
def test_the_android_toolchain_fits_its_profile(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(write(tmp_path, "phone", PHONE + text))


def test_the_android_toolchain_wants_an_api_level(tmp_path: Path) -> None:
    text = GOOD.replace("arm-64-linux", "arm-64-android").replace('"zig"', '"android"')
    file = write(tmp_path, "phone", text.replace("linux-gnu.2.28", "linux-musl"))
    assert "the key 'toolchain.android_api_level' is missing" in refusal(file)


def test_a_phone_of_another_api_level_or_toolchain(tmp_path: Path) -> None:
    newer = load_profile(str(write(tmp_path, "newer", PHONE + "[toolchain]\nandroid_api_level = 34")))
    assert newer.toolchain.android_api_level == 34
    always_static = load_profile(str(write(tmp_path, "static", PHONE + '[toolchain]\nkind = "zig"')))
    assert always_static.toolchain.android_api_level is None


def test_toml_errors_have_the_line(tmp_path: Path) -> None:
    assert "at line 2" in refusal(write(tmp_path, "syntax", 'description = "x"\nhalide_target = = 1\n'))
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'description = "\xe9"')
    assert "byte 15 is not UTF-8" in refusal(latin)
    assert "nested too deeply" in refusal(write(tmp_path, "deep", "a = " + "[" * 5000 + "]" * 5000))
    assert "more than" in refusal(write(tmp_path, "big", "#" * 1_100_000))
    assert "not valid TOML" in refusal(write(tmp_path, "number", "a = " + "1" * 5000))
    (tmp_path / "folder.toml").mkdir()
    assert "cannot be read" in refusal(tmp_path / "folder.toml")


def test_missing_profiles(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="the nearest is 'arm64'"):
        load_profile("arm46")
    for name in ("", "a\nb", "x" * 5000, "./arm64", "nowhere.toml", str(tmp_path)):
        with pytest.raises(ProfileError):
            load_profile(name, tmp_path)
    assert "key 'extends': There is no target profile 'arm46'" in refusal(write(tmp_path, "lost", 'extends = "arm46"'))
    assert "is not a profile's name" in refusal(write(tmp_path, "my board", GOOD))
    assert profile_names(tmp_path / "not there") == profile_names()


scalars = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["arm-64-linux", "x86-64-linux-avx2", "local", "qemu", "zig", "Adams2019", "baseline"]),
    st.sampled_from(["aarch64-linux-gnu", "host", "arm64", "random", "qemu-aarch64", "x.weights"]),
)
keys = st.sampled_from(
    "description extends halide_target device_kind start_weights name machine toolchain emulator".split()
)
inner_keys = st.one_of(
    st.sampled_from("name kind triple command arguments parallelism vector_bits parameters beam_size".split()),
    st.text(max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(inner_keys, inner, max_size=4)),
    max_leaves=8,
)


def toml_of(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_of(key)} = {toml_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" if ord(c) < 0xD800 or ord(c) > 0xDFFF else "" for c in value) + '"'
    return repr(value)


@given(st.dictionaries(st.one_of(keys, st.text(max_size=5)), values, max_size=6), st.booleans())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_toml_is_a_profile_or_a_profile_error(tmp_path: Path, table: dict[str, object], on_top: bool) -> None:
    text = "".join(f"{toml_of(key)} = {toml_of(value)}\n" for key, value in table.items())
    file = write(tmp_path, "random", 'extends = "arm64"\n' + text if on_top and "extends" not in table else text)
    try:
        assert isinstance(load_profile(str(file), tmp_path), TargetProfile)
    except ProfileError as error:
        assert "\n" not in str(error)


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_profile_error(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "random.toml"
    file.write_bytes(data)
    with pytest.raises(ProfileError):
        load_profile(str(file))
