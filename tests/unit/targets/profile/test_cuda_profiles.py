"""Profiles with a card: the built-in ones, those that extend them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.targets.errors import ProfileError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.profile.cuda_card import compiled_capability, known_cards
from halide_autotune.targets.profile.halide_target import parse_halide_target
from halide_autotune.targets.profile.loader import load_profile, profile_names
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler

CUDA_PROFILES = [name for name in profile_names() if name.startswith("cuda-")]


def test_there_are_profiles_for_every_capability_and_both_hosts() -> None:
    expected = "sm75 sm80 sm86 sm87-arm64 sm89 sm90 sm90-arm64".split()
    assert [name.removeprefix("cuda-") for name in CUDA_PROFILES] == expected


@pytest.mark.parametrize("name", CUDA_PROFILES)
def test_the_search_is_told_what_the_card_is_like(name: str, halide: HalideInstall) -> None:
    profile = load_profile(name)
    card = profile.machine.gpu
    assert card is not None and card.architecture.replace("_", "") == name.split("-")[1]
    # Halide 21 has nothing newer than 8.6.
    assert compiled_capability(parse_halide_target(profile.halide_target)) == min(card.capability_tenths, 86)
    request = profile_autoscheduler(halide, profile, profile.machine.parallelism, {"beam_size": "1"})
    assert request.name == "Anderson2021"
    assert request.parameters == {
        "shared_memory_limit_kb": "48",
        "shared_memory_sm_limit_kb": str(card.shared_memory_per_multiprocessor_bytes // 1024),
        "active_block_limit": str(card.blocks_per_multiprocessor),
        "active_warp_limit": str(card.threads_per_multiprocessor // 32),
        "parallelism": str(card.multiprocessors),
        "beam_size": "1",
    }
    assert profile.toolchain.triple.endswith("-linux-gnu.2.28"), "a static program cannot load a driver"
    shown = profile.to_dict()["machine"]
    assert shown["parallelism"] == card.multiprocessors and shown["gpu"]["name"] == card.name


def test_the_table_of_cards_agrees_with_what_nvidia_says_of_two() -> None:
    turing, ampere = known_cards()["Tesla T4"], known_cards()["A100"]
    assert (turing.architecture, turing.multiprocessors, turing.threads_per_multiprocessor) == ("sm_75", 40, 1024)
    assert (turing.shared_memory_per_multiprocessor_bytes, turing.blocks_per_multiprocessor) == (64 * 1024, 16)
    assert (ampere.architecture, ampere.multiprocessors, ampere.threads_per_multiprocessor) == ("sm_80", 108, 2048)
    assert (ampere.shared_memory_per_multiprocessor_bytes, ampere.blocks_per_multiprocessor) == (164 * 1024, 32)


def test_another_card_brings_its_own_multiprocessors_and_a_profile_its_own_limits(
    halide: HalideInstall, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(
        'extends = "cuda-sm86"\n[gpu]\ncard = "A40"\n[autoscheduler.parameters]\nactive_block_limit = 8\n'
    )
    profile = load_profile("mine", tmp_path)
    assert profile.machine.parallelism == 84
    parameters = profile_autoscheduler(halide, profile, 84, {}).parameters
    assert (parameters["active_block_limit"], parameters["active_warp_limit"]) == ("8", "48")
    (tmp_path / "mine.toml").write_text('extends = "cuda-sm86"\n[machine]\nparallelism = 12\n')
    assert load_profile("mine", tmp_path).machine.parallelism == 12


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('extends = "cuda-sm80"\n[gpu]\ncard = "A1000"', r"key 'gpu.card' must be one of .*the nearest is 'A100'"),
        (
            'extends = "cuda-sm86"\n[gpu]\ncard = "Tesla T4"',
            r"needs compute capability 8\.6, but .*'Tesla T4' has 7\.5",
        ),
        ('extends = "cuda-sm86"\nhalide_target = "x86-64-linux"', "has no feature cuda"),
        ('extends = "cuda-sm86"\nhalide_target = "x86-64-windows-cuda"', "need linux, not"),
        ('extends = "cuda-sm86"\n[autoscheduler]\nname = "Adams2019"', "must be Anderson2021 in a profile with a"),
        ('extends = "x86-64"\n[autoscheduler]\nname = "Anderson2021"', "key 'gpu.card' is missing"),
        ('extends = "cuda-sm80"\n[gpu]\ncards = "A100"', "the nearest is 'gpu.card'"),
        ('extends = "cuda-sm80"\ngpu = "A100"', r"'gpu' must be a table, not a string"),
    ],
)
def test_what_does_not_fit_together_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ProfileError, match=expected) as refused:
        load_profile("mine", tmp_path)
    assert "mine.toml" in str(refused.value)
