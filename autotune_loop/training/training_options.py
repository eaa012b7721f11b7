"""What `sdk weights train` can be asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from halide_autotune.autotune_loop.specification.options import DeviceOptions, FarmOptions
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.checks import whole_number
from halide_autotune.targets.values.options import (
    Option,
    differing_options,
    value_at,
    with_values,
    with_whole_paths,
    words_of,
)

_PROGRAMS = "The programs"
_SIZE = re.compile(r"([1-9][0-9]{1,4})x([1-9][0-9]{1,4})")


@dataclass(frozen=True)
class ProgramOptions:
    """The random programs of a training."""

    programs: Annotated[
        int,
        whole_number(1, 1000),
        Option("--programs", metavar="COUNT", help="Programs of an iteration.", panel=_PROGRAMS, is_fixed=True),
    ] = 8
    batch_size: Annotated[
        int,
        whole_number(8, 1000),
        Option(
            "--batch-size", "-s", metavar="COUNT", help="Schedules to time of each.", panel=_PROGRAMS, is_fixed=True
        ),
    ] = 24
    size: Annotated[
        str | None,
        Option(
            "--size",
            metavar="WIDTHxHEIGHT",
            help="Of their pictures. Default: 1024x768, and 256x192 where an emulator times them.",
            panel=_PROGRAMS,
            is_fixed=True,
        ),
    ] = None
    seed: Annotated[
        int,
        whole_number(0, 1_000_000),
        Option("--seed", metavar="NUMBER", help="Which programs are drawn.", panel=_PROGRAMS, is_fixed=True),
    ] = 0

    @property
    def size_px(self) -> tuple[int, int] | None:
        """Width and height, if they were given.

        Raises:
            UsageError: they are no size.
        """
        if self.size is None:
            return None
        found = _SIZE.fullmatch(self.size)
        if found is None:
            raise UsageError(f"--size must be a width and a height of 10 to 99999, such as 640x480, not {self.size!r}.")
        return int(found[1]), int(found[2])


@dataclass(frozen=True)
class TrainingOptions:
    """All options of a training."""

    programs: ProgramOptions = field(default_factory=ProgramOptions)
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    farm: FarmOptions = field(default_factory=FarmOptions)

    @classmethod
    def of(cls, **values: object) -> TrainingOptions:
        """Options with values by their keywords, such as `target` and `programs`.

        Raises:
            UsageError: there is no such option, or its value is wrong.
        """
        return cls().with_values(values)

    def with_values(self, values: Mapping[str, object]) -> TrainingOptions:
        """The same with other values, by their keywords.

        Raises:
            UsageError: there is no such option, or its value is wrong.
        """
        found = with_whole_paths(with_values(self, values))
        _ = found.programs.size_px
        return found

    def continued(self, values: Mapping[str, object], folder: object) -> TrainingOptions:
        """Those of a training that goes on, with what may be asked anew.

        Raises:
            UsageError: what it is trained on would be another.
        """
        new = self.with_values(values)
        for option in differing_options(self, new):
            if option.facts.is_fixed:
                was, now = (words_of(option, value_at(each, option)) for each in (self, new))
                raise UsageError(
                    f"The training in {folder} was begun with {was}, not {now}.",
                    next_step=f"Leave {option.label} out to go on with it, or name another folder with --run-dir.",
                )
        return new
