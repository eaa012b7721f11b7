"""How carefully a schedule is timed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from halide_autotune.devices.device import Clock
from halide_autotune.targets.values.checks import any_text, list_of, whole_number
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.texts import (
    parse_input_files,
    parse_scalars,
    parse_size_set,
    parse_size_sets,
    parse_sizes,
    size_set_text,
)

# Emulated calls are slow and their clock is coarse: fewer calls, over a longer time.
_EMULATED_TIME_FACTOR = 2.0
_EMULATED_MIN_REPETITIONS = 3
# The simulation takes several times as long as the emulation.
_SIMULATED_RUN_LIMIT_S = 180.0

_PANEL = "What kernels are called with"
# The runner reads it into 64 bits.
_HIGHEST_SEED = 2**63 - 1


def _size_set(value: object) -> str:
    return size_set_text(parse_size_set(any_text(value)))


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from the reference's.

    Attributes:
        integer: largest difference of integers.
        float_relative: largest relative difference of floats.
        float_absolute_share: largest absolute difference of floats, as a share of the reference's largest value.
        mismatch_share: share of an output's elements that may be outside all that.
        far_scale: an element is far off when it differs by more than this times the reference's largest value.
        far_share: share of an output's elements that may be far off.
        least_common: share of an output, as the reference has it and as the kernel does, that both must compute; they
            are compared there.
    """

    integer: int = 0
    float_relative: float = 1e-3
    float_absolute_share: float = 1e-4
    mismatch_share: float = 0.0
    far_scale: float = 0.0
    far_share: float = 0.0
    least_common: float = 1.0


@dataclass(frozen=True)
class KernelInputs:
    """The arguments that a kernel is called with.

    Attributes:
        seed: of the random inputs.
        sizes: argument → extents such as '1920x1080', in place of the estimates; with the least coordinates
            '1920x1080@-2x3'.
        scalars: argument → value, in place of the estimates.
        files: argument → `.npy` file, picture, runner input file, or a raw file as `RawFile.of` reads it, in place of
            random data.
        exact_outputs: do not enlarge outputs for a schedule that wants them larger.
        also_sizes: further sizes that kernels are called with as well, each as `parse_size_set` reads it: what differs
            from all that is above.
    """

    seed: Annotated[
        int,
        whole_number(0, _HIGHEST_SEED),
        Option(
            "--input-seed",
            metavar="NUMBER",
            help="Seed of the random data.",
            panel=_PANEL,
            name="input_seed",
            is_fixed=True,
        ),
    ] = 0
    sizes: Annotated[
        Mapping[str, str],
        Option(
            "--size",
            metavar="ARG=1920x1080",
            help="Size of an input or output, in place of its estimate; repeat for more.",
            panel=_PANEL,
            parse=parse_sizes,
            is_fixed=True,
        ),
    ] = field(default_factory=dict)
    scalars: Annotated[
        Mapping[str, str],
        Option(
            "--scalar",
            metavar="NAME=VALUE",
            help="Value of a scalar argument, in place of its estimate; repeat for more.",
            panel=_PANEL,
            parse=parse_scalars,
            is_fixed=True,
        ),
    ] = field(default_factory=dict)
    files: Annotated[
        Mapping[str, Path],
        Option(
            "--input",
            metavar="NAME=FILE.npy",
            help="An input's data, in place of random data: a .npy file, whose last axis is Halide's first dimension,"
            " a picture (.png, .jpg, .tiff, .bmp), or a .raw file with its extents: photo.raw:1920x1080x3.",
            panel=_PANEL,
            name="input_files",
            parse=parse_input_files,
            is_fixed=True,
        ),
    ] = field(default_factory=dict)
    exact_outputs: bool = False
    also_sizes: Annotated[
        tuple[str, ...],
        list_of(_size_set),
        Option(
            "--also-size",
            metavar="SIZES",
            help='A further size to tune for, such as "input=640x480"; repeat for more. What counts is the geometric'
            " mean over the sizes.",
            panel="What is tuned",
            parse=parse_size_sets,
            is_fixed=True,
        ),
    ] = ()


@dataclass(frozen=True)
class MeasureSettings:
    """How long and how precisely a kernel is timed.

    Attributes:
        precision: repeating stops when the standard error of the median falls below this share of it.
        warm_up_s: duration of calls that do not count.
        min_time_s: least time for the calls that count, unless a kernel is given up.
        max_time_s: most time for the calls that count.
        run_limit_s: the process is killed after this.
        give_up_over_s: a kernel whose first calls take longer is timed only once; None never gives up.
        beside: the kernel of the same executable that it is timed in alternation with, until their ratio is precise, or
            certainly over `lost_over`; None times it alone. On a clock without noise it has no effect.
        alone_without_it: where that kernel itself fails on the device, this one is timed alone.
    """

    precision: float = 0.01
    warm_up_s: float = 0.02
    min_time_s: float = 0.0
    min_repetitions: int = 5
    max_repetitions: int = 2000
    max_time_s: float = 0.3
    run_limit_s: float = 60.0
    give_up_over_s: float | None = None
    beside: str | None = None
    lost_over: float = 1.0
    alone_without_it: bool = False

    @classmethod
    def by_clock(cls, clock: Clock, precision: float = precision, max_time_s: float = max_time_s) -> MeasureSettings:
        """How kernels are timed by a clock; a simulated one is as precise as it is, whatever is asked."""
        if clock is Clock.SIMULATED:
            return cls(run_limit_s=_SIMULATED_RUN_LIMIT_S)
        settings = cls(precision=precision, max_time_s=max_time_s)
        if clock is not Clock.EMULATED:
            return settings
        max_time_s *= _EMULATED_TIME_FACTOR
        return replace(settings, max_time_s=max_time_s, min_repetitions=_EMULATED_MIN_REPETITIONS)
