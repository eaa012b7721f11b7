"""Further features of a profile's Halide target, as a user asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from halide_autotune.targets.errors import ProfileError, UsageError
from halide_autotune.targets.profile.halide_target import parse_halide_target
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.values.checks import matching

NAME_MANGLING = "c_plus_plus_name_mangling"
# Of what ships: the runner asks a kernel what it touches, and must hear of an error.
_WITHOUT_CHECKS = ("no_asserts", "no_bounds_query")
feature_word = matching(r"[a-z0-9_]+", "a feature of a Halide target, such as avx512")


def split_features(texts: Iterable[str]) -> list[str]:
    """Features of texts such as 'avx512,strict_float', each once."""
    return list(dict.fromkeys(word.strip() for text in texts for word in text.split(",")))


def with_target_features(profile: TargetProfile, features: Sequence[str]) -> TargetProfile:
    """The profile with features that its Halide target lacks.

    Raises:
        UsageError: Halide has no such feature, or it does not fit the architecture; the message names the nearest one.
    """
    words = profile.halide_target.split("-")
    more = [feature for feature in features if feature not in words]
    if not more:
        return profile
    try:
        target = parse_halide_target("-".join((*words, *more)))
    except ProfileError as error:
        raise UsageError(
            f"--target-features: {error.message}", next_step="Halide's Target::Feature lists what each one means."
        ) from error
    machine = replace(profile.machine, vector_bits=max(profile.machine.vector_bits, target.vector_bits))
    return replace(profile, halide_target=target.text, machine=machine)


def kernel_target(halide_target: str) -> str:
    """The target of a kernel that the runner calls: it has its checks, and the runtime is linked beside it."""
    words = [word for word in halide_target.split("-") if word not in _WITHOUT_CHECKS]
    return "-".join((*words, "no_runtime"))
