"""What a training is asked: sizes are read, and what it is trained on stays."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.targets.errors import UsageError


def test_a_size_is_a_width_and_a_height() -> None:
    assert TrainingOptions.of(size="640x480").programs.size_px == (640, 480)
    assert TrainingOptions().programs.size_px is None


@pytest.mark.parametrize("size", ["640", "0x480", "640x", "640X480", "-1x5", "9999999x10"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(UsageError, match=r"--size must be a width and a height of 10 to 99999, such as 640x480"):
        TrainingOptions.of(size=size)


def test_a_training_goes_on_with_other_devices_and_not_with_other_programs() -> None:
    begun = TrainingOptions.of(target="arm64", programs=4, seed=3)
    assert begun.continued({}, "f") == begun
    assert begun.continued({"target": "arm64", "programs": 4, "device": ["pi5"]}, "f").devices.device == ("pi5",)
    for keyword, value in {"programs": 8, "seed": 4, "size": "64x48", "target": "arm32", "batch_size": 32}.items():
        with pytest.raises(UsageError, match=r"The training in f was begun with .*Leave --"):
            begun.continued({keyword: value}, "f")


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match="There is no option 'program'; the nearest is 'programs'"):
        TrainingOptions.of(program=4)
