"""Halide target strings, compared with Halide's own parser."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.targets.errors import ProfileError
from halide_autotune.targets.profile.halide_target import (
    ARCHITECTURES,
    OPERATING_SYSTEMS,
    feature_words,
    parse_halide_target,
)


@st.composite
def target_texts(draw: st.DrawFn) -> str:
    architecture = draw(st.sampled_from(ARCHITECTURES))
    words = [*sorted(feature_words(architecture)), "vector_bits_128", "vector_bits_512"]
    features = draw(st.lists(st.sampled_from(words), max_size=6))
    bits = draw(st.sampled_from(["32", "64"]))
    return "-".join([architecture, bits, draw(st.sampled_from(OPERATING_SYSTEMS)), *features])


@given(target_texts())
@settings(max_examples=150, deadline=None)
def test_what_is_accepted_halide_accepts_with_the_same_vector_width(text: str) -> None:
    import halide

    try:
        target = parse_halide_target(text)
    except ProfileError:
        return
    of_halide = halide.Target(text)
    assert of_halide.bits == target.bits
    width_bits = max(of_halide.natural_vector_size(t) * t.bits() for t in (halide.Float(32), halide.UInt(8)))
    assert target.vector_bits == width_bits


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_feature_word_is_one_of_halides(architecture: str) -> None:
    import halide

    needed = ["hvx_128"] if architecture == "hexagon" else []
    for word in sorted(feature_words(architecture)):
        halide.Target("-".join([architecture, "64", "linux", word, *needed]))


def test_every_feature_of_halide_is_known() -> None:
    import halide

    known = frozenset[str]().union(*(feature_words(architecture) for architecture in ARCHITECTURES))
    refused = {"jit", "no_runtime"}
    for name, feature in halide.TargetFeature.__members__.items():
        if name == "FeatureEnd":
            continue
        # RISC-V is where Halide lets every feature pass.
        text = halide.Target(halide.TargetOS.Linux, halide.TargetArch.RISCV, 64, [feature]).to_string()
        assert set(text.split("-")[3:]) <= known | refused


@pytest.mark.parametrize(
    "text",
    ["arm-64-linux", "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", "hexagon-32-noos-hvx_128"],
)
def test_parts(text: str) -> None:
    target = parse_halide_target(text)
    architecture, bits, operating_system, *features = text.split("-")
    assert (target.architecture, target.bits, target.operating_system) == (
        architecture,
        int(bits),
        operating_system,
    )
    assert target.features == tuple(features)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x86-64-linux-avx3", "'avx3' is not a feature of a Halide target; the nearest is 'avx"),
        ("arm-64-linux-avx2", "the feature 'avx2' is for x86, but the target's architecture is arm"),
        ("arm64-linux", "expected arch-bits-os"),
        ("mips-32-linux", "'mips' is not a valid architecture"),
        ("x86-16-linux", "'16' is not a valid number of bits"),
        ("x86-64-beos", "'beos' is not a valid operating system"),
        ("host", 'write extends = "host"'),
        ("arm-64-linux-no_runtime", "the SDK adds it"),
        ("x86-64-linux-tune_k8-tune_znver4", "more than one processor to tune for"),
        ("riscv-64-linux-rvv-vector_bits_100", "a power of two"),
        ("hexagon-32-noos-hvx_v66", "needs the feature hvx_128"),
        ("x86-64-linux-", "'' is not a feature"),
        ("", "expected arch-bits-os"),
    ],
)
def test_refusals_name_the_word_and_what_was_expected(text: str, expected: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_halide_target(text)
    assert expected in str(caught.value)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_target_or_a_profile_error(text: str) -> None:
    try:
        assert parse_halide_target(text).text == text
    except ProfileError as error:
        assert error.message
