"""Features that a user adds to a profile's Halide target."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.target_features import kernel_target, split_features, with_target_features


def test_features_are_words_with_commas_between() -> None:
    assert split_features(["avx512, strict_float", "no_asserts,avx512"]) == ["avx512", "strict_float", "no_asserts"]


@pytest.mark.parametrize("text", ["", "avx512,", "avx-avx2", "AVX2", "strict float"])
def test_what_is_no_word_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--target-features: .* must be a feature of a Halide target, such as avx512"):
        RunOptions.of(target_features=[text])


def test_they_come_after_those_of_the_profile() -> None:
    profile = load_profile("x86-64")
    more = with_target_features(profile, ["avx2", "avx512", "strict_float"])
    assert more.halide_target == f"{profile.halide_target}-avx512-strict_float"
    assert (profile.machine.vector_bits, more.machine.vector_bits) == (256, 512)
    assert with_target_features(profile, ["avx2"]) == profile


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("strict_flota", "the nearest is 'strict_float'"),
        ("sve2", "the feature 'sve2' is for arm"),
        ("host", "the word 'host' is not allowed"),
        ("no_runtime", "the SDK adds it where needed"),
    ],
)
def test_a_feature_that_the_target_cannot_have_is_one_sentence(feature: str, words: str) -> None:
    with pytest.raises(UsageError, match="--target-features: ") as found:
        with_target_features(load_profile("x86-64"), [feature])
    assert words in found.value.message


def test_a_kernel_that_the_runner_calls_keeps_its_checks() -> None:
    assert kernel_target("arm-64-linux-no_asserts-sve2-no_bounds_query") == "arm-64-linux-sve2-no_runtime"
