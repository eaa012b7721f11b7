"""Schedules of sharpen for arm-64-linux, x86-64-linux-avx-avx2-f16c-fma-sse41. MACHINE GENERATED -- DO NOT EDIT."""

import halide as hl

try:
    from . import sharpen_arm64_schedule, sharpen_x86_64_schedule
except ImportError:
    import sharpen_arm64_schedule, sharpen_x86_64_schedule

SCHEDULES = (
    ("arm-64-linux", sharpen_arm64_schedule.apply_schedule),
    ("x86-64-linux-avx-avx2-f16c-fma-sse41", sharpen_x86_64_schedule.apply_schedule),
)


def choose_schedule(target):
    """The function of the schedule that fits best, or None: of the architecture, with no feature that `target` lacks,
    best of its operating system, then with the most features."""
    best, best_score = None, -1
    for text, function in SCHEDULES:
        wanted = hl.Target(text)
        if (wanted.arch, wanted.bits) != (target.arch, target.bits):
            continue
        features = [f for f in hl.TargetFeature.__members__.values() if f != hl.TargetFeature.FeatureEnd]
        asked = [feature for feature in features if wanted.has_feature(feature)]
        score = (len(features) if wanted.os == target.os else 0) + len(asked)
        if score > best_score and all(target.has_feature(feature) for feature in asked):
            best, best_score = function, score
    return best


def try_apply_schedule(pipeline, target, strict=False):
    """Apply the schedule that fits `target` best. False, and nothing is done, where none does."""
    function = choose_schedule(target)
    if function is not None:
        function(pipeline, target, strict)
    return function is not None


def apply_schedule(pipeline, target, strict=False):
    """Apply the schedule that fits `target` best.

    Raises RuntimeError where none does, or where the pipeline is not the one it was made for; with `strict` also where
    a definition has changed.
    """
    if not try_apply_schedule(pipeline, target, strict):
        listed = ", ".join(text for text, _ in SCHEDULES)
        raise RuntimeError(
            f"There is no schedule of sharpen for {target.to_string()}; there are some for {listed}. Tune it for that "
            "target, or call try_apply_schedule and schedule it yourself where that returns False."
        )
