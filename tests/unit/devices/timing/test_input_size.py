"""What kernels are called with at each of several sizes, and what people call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.devices.timing.input_size import sizes_of
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.texts import parse_size_sets


def test_one_size_has_no_name() -> None:
    inputs = KernelInputs(seed=3, sizes={"input": "64x48"})
    (size,) = sizes_of(inputs)
    assert (size.label, size.inputs) == ("", inputs)


def test_a_size_is_called_by_what_differs() -> None:
    inputs = KernelInputs(
        seed=3,
        sizes={"input": "64x48", "output": "64x48", "taps": "9"},
        scalars={"gain": "2"},
        also_sizes=("input=32x24 output=32x24 taps=9 gain=2", "input=32x24 output=32x24 gain=3"),
    )
    main, first, second = sizes_of(inputs)
    assert main.label == "input=64x48 output=64x48 gain=2"
    assert first.label == "input=32x24 output=32x24 gain=2"
    assert second.label == "input=32x24 output=32x24 gain=3"
    assert dict(second.inputs.sizes) == {"input": "32x24", "output": "32x24", "taps": "9"}
    assert dict(second.inputs.scalars) == {"gain": "3"}
    assert {size.inputs.seed for size in (main, first, second)} == {3}
    assert not any(size.inputs.also_sizes for size in (main, first, second))


def test_a_schedule_must_fit_a_further_size() -> None:
    main, small = sizes_of(KernelInputs(sizes={"input": "64x48"}, also_sizes=("input=32x24",)))
    assert main.exact == main.inputs and not main.inputs.exact_outputs
    assert small.exact.exact_outputs and not small.inputs.exact_outputs


def test_an_input_of_another_size_is_not_read_from_its_file() -> None:
    files = {"input": Path("photo.raw"), "taps": Path("taps.raw")}
    _, size = sizes_of(KernelInputs(files=files, also_sizes=("input=32x24",)))
    assert dict(size.inputs.files) == {"taps": Path("taps.raw")} and dict(size.inputs.sizes) == {"input": "32x24"}


def test_sizes_that_nobody_tells_are_those_of_the_estimates() -> None:
    assert [size.label for size in sizes_of(KernelInputs(also_sizes=("input=32x24",)))] == [
        "the estimates",
        "input=32x24",
    ]


def test_several_arguments_are_one_size() -> None:
    assert parse_size_sets(["input=640x480   mask=640x480@-2x3", "gain=1.5"]) == [
        "input=640x480 mask=640x480@-2x3",
        "gain=1.5",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--also-size '' is not of the form NAME=VALUE."),
        ("640x480", "--also-size '640x480' is not of the form NAME=VALUE."),
        ("input=640x480 input=1x1", "--also-size names input twice."),
        ("input=640,480", "--also-size input=640,480: '640,480' is not a size or a value."),
    ],
)
def test_what_is_no_size_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size_sets([text])
    assert caught.value.message == message
