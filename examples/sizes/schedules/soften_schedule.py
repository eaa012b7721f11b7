"""Schedules of soften for x86-64-linux-avx-avx2-f16c-fma-sse41. MACHINE GENERATED -- DO NOT EDIT."""

import halide as hl

try:
    from . import soften_x86_64_schedule, soften_x86_64_at_96x64_schedule
except ImportError:
    import soften_x86_64_schedule, soften_x86_64_at_96x64_schedule

SCHEDULES = (
    ("x86-64-linux-avx-avx2-f16c-fma-sse41", soften_x86_64_schedule.apply_schedule, {"96x64": soften_x86_64_at_96x64_schedule.apply_schedule}),
)


def choose_schedule(target, size=""):
    """The function of the schedule that fits best, or None: of the architecture, with no feature that `target` lacks,
    best of its operating system, then with the most features. With a `size` such as "640x480" it is the target's
    schedule for that size, where it has one."""
    sizes = sorted({one for _, _, of_sizes in SCHEDULES for one in of_sizes})
    if size and size not in sizes:
        there = f"; there are some for {', '.join(sizes)}" if sizes else ", nor for any other single one"
        raise RuntimeError(f"There is no schedule of soften for the size {size}{there}.")
    best, best_score = None, -1
    for text, function, of_sizes in SCHEDULES:
        wanted = hl.Target(text)
        if (wanted.arch, wanted.bits) != (target.arch, target.bits):
            continue
        features = [f for f in hl.TargetFeature.__members__.values() if f != hl.TargetFeature.FeatureEnd]
        asked = [feature for feature in features if wanted.has_feature(feature)]
        score = (len(features) if wanted.os == target.os else 0) + len(asked)
        if score > best_score and all(target.has_feature(feature) for feature in asked):
            best, best_score = of_sizes.get(size, function), score
    return best


def try_apply_schedule(pipeline, target, strict=False, size=""):
    """Apply the schedule that fits `target` best. False, and nothing is done, where none does."""
    function = choose_schedule(target, size)
    if function is not None:
        function(pipeline, target, strict)
    return function is not None


def apply_schedule(pipeline, target, strict=False, size=""):
    """Apply the schedule that fits `target` best; with a `size` such as "640x480" its schedule for that, if it has one.

    Raises RuntimeError where none does, or where the pipeline is not the one it was made for; with `strict` also where
    a definition has changed.
    """
    if not try_apply_schedule(pipeline, target, strict, size):
        listed = ", ".join(text for text, _, _ in SCHEDULES)
        raise RuntimeError(
            f"There is no schedule of soften for {target.to_string()}; there are some for {listed}. Tune it for that "
            "target, or call try_apply_schedule and schedule it yourself where that returns False."
        )
