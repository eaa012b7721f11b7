"""By which argument a call tells at which size it is."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.specification.deciding_argument import DecidingArgument, deciding_argument
from halide_autotune.devices.timing.measure_settings import KernelInputs


def inputs(sizes: dict[str, str], *also: str, scalars: dict[str, str] | None = None) -> KernelInputs:
    return KernelInputs(sizes=sizes, scalars=scalars or {}, also_sizes=also)


def test_it_is_an_output_if_one_tells_the_sizes_apart() -> None:
    asked = inputs({"input": "640x480@-2x-2", "output": "600x440"}, "input=1280x960 output=1240x920@1x0")
    sizes = ["input=640x480@-2x-2 output=600x440", "input=1280x960 output=1240x920@1x0"]
    assert deciding_argument(asked) == DecidingArgument(
        "output", dict(zip(sizes, ["600x440", "1240x920"], strict=True))
    )


def test_it_is_an_input_where_all_outputs_are_alike() -> None:
    asked = inputs({"image": "640x480", "counts": "256"}, "image=1280x960 counts=256")
    found = deciding_argument(asked)
    assert found is not None and (found.name, list(found.extents.values())) == ("image", ["640x480", "1280x960"])


@pytest.mark.parametrize(
    "asked",
    [
        inputs({"input": "640x480"}),
        inputs({"input": "640x480"}, "gain=2", scalars={"gain": "1"}),
        inputs({"input": "640x480@0x0"}, "input=640x480@5x5"),
        inputs({}, "input=640x480"),
    ],
    ids=["one size", "a value", "a place", "unknown"],
)
def test_without_different_extents_there_is_none(asked: KernelInputs) -> None:
    assert deciding_argument(asked) is None
