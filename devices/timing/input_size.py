"""The sizes that a kernel is timed at: one, or several of which the geometric mean counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.values.texts import parse_size_set

ESTIMATES = "the estimates"


@dataclass(frozen=True)
class InputSize:
    """One size.

    Attributes:
        label: what differs from size to size, such as 'input=640x480'; empty for the only one.
        inputs: what a kernel is called with there.
        is_further: it is not the size that schedules are made for.
    """

    label: str
    inputs: KernelInputs
    is_further: bool = False

    @property
    def exact(self) -> KernelInputs:
        """The same for a kernel that is to fit: at a further size it may not compute more than that."""
        return replace(self.inputs, exact_outputs=True) if self.is_further else self.inputs


def sizes_of(inputs: KernelInputs) -> tuple[InputSize, ...]:
    """The main size first, then those of `also_sizes`."""
    main = replace(inputs, also_sizes=())
    if not inputs.also_sizes:
        return (InputSize("", main),)
    further = [parse_size_set(text) for text in inputs.also_sizes]
    known = {**inputs.sizes, **inputs.scalars}
    names = dict.fromkeys(name for one in further for name in one)
    differing = [name for name in names if any(one.get(name, known.get(name)) != known.get(name) for one in further)]
    every = [known, *({**known, **one} for one in further)]
    labels = [" ".join(f"{name}={one[name]}" for name in differing if name in one) for one in every]
    called_with = [main, *(at_size(main, one) for one in further)]
    return tuple(
        InputSize(label or ESTIMATES, each, is_further=each is not main)
        for label, each in zip(labels, called_with, strict=True)
    )


def at_size(main: KernelInputs, given: Mapping[str, str]) -> KernelInputs:
    """The main inputs with other sizes and values; an input of another size has random data."""
    return replace(
        main,
        sizes={**main.sizes, **{name: text for name, text in given.items() if name not in main.scalars}},
        scalars={**main.scalars, **{name: text for name, text in given.items() if name in main.scalars}},
        files={name: file for name, file in main.files.items() if name not in given},
    )
