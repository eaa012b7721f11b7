"""Target profiles as frozen records. `targets.profile.loader` makes them; nothing here reads a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from halide_autotune.targets.extension_point import ExtensionPoint
from halide_autotune.targets.profile.cuda_card import CudaCard
from halide_autotune.targets.values.checks import Unfit, list_of, matching, one_line, one_of, shown, whole_number
from halide_autotune.targets.values.records import Example, plain

BASELINE_WEIGHTS = "baseline"
# The NDK's names for the architectures of zig's triples.
ANDROID_TRIPLES: Mapping[str, str] = {
    "aarch64": "aarch64-linux-android",
    "arm": "armv7a-linux-androideabi",
    "x86_64": "x86_64-linux-android",
}


def _parameter_text(value: object) -> str:
    """An autoscheduler's parameter as Halide takes it: text, with true as 1 and false as 0."""
    if isinstance(value, float) and not value.is_integer():
        raise Unfit("a whole number", shown(value))
    if isinstance(value, int | float):
        return str(whole_number(-(10**18) + 1, 10**18 - 1)(int(value)))
    return one_line(value)


# Halide 21's names; each was tried on its plug-in. An unknown name, or a value that is not a number, aborts the search
# without a message.
_COMMON_PARAMETERS = ["beam_size", "random_dropout", "disable_subtiling"]
AUTOSCHEDULER_PARAMETERS: Mapping[str, Sequence[str]] = {
    "Adams2019": _COMMON_PARAMETERS + "disable_memoized_features disable_memoized_blocks memory_limit".split(),
    "Anderson2021": _COMMON_PARAMETERS
    + "randomize_tilings search_space_options freeze_inline_compute_root partial_schedule_path num_passes".split()
    + "stack_factor shared_memory_limit_kb shared_memory_sm_limit_kb active_block_limit active_warp_limit".split(),
    "Li2018": (),
    "Mullapudi2016": ("last_level_cache_size", "balance", "experimental_gpu_schedule"),
}
# Beside these names: the schedule that a generator brings.
OWN_SCHEDULE = "own"
_command = matching(
    r"[^-\x00-\x20\x7f][^\x00-\x20\x7f]*",
    "the name or path of one program (its arguments go into emulator.arguments)",
)
_absolute_folder = matching(r"/[^\x00-\x1f\x7f]*", "an absolute path")
_triple = matching(r"[a-z0-9_]+-[a-z0-9]+(-[a-z0-9]+(\.[0-9]+){0,3})?", "a zig target such as aarch64-linux-gnu.2.28")
_cpu = matching(r"[a-z0-9_.+][a-z0-9_.+-]*", "zig's name of a processor, such as hexagonv67")
_debian_package = matching(r"[a-z0-9][a-z0-9+.-]+", "the name of a Debian package")


@dataclass(frozen=True)
class MachineParameters:
    """The hardware that schedules are searched for.

    Attributes:
        parallelism: cores that a parallel loop may use, or a GPU's multiprocessors (the autoscheduler's `parallelism`).
        l1_data_cache_bytes: level 1 data cache of one core; None if unknown.
        l2_cache_bytes: level 2 cache of one core or cluster; None if unknown.
        last_level_cache_bytes: the last cache before memory; None if unknown.
        vector_bits: width of the widest vector register that Halide uses for the target.
        gpu: the card that kernels run on; None if they run on the processor.
    """

    parallelism: int
    l1_data_cache_bytes: int | None
    l2_cache_bytes: int | None
    last_level_cache_bytes: int | None
    vector_bits: int
    gpu: CudaCard | None = None


@dataclass(frozen=True)
class AutoschedulerChoice:
    """An autoscheduler by Halide's name, and its own parameters by name, as text.

    `parallelism`, the weights and the seed are not among them: the loop sets these for every candidate.
    """

    name: Annotated[str, one_of(AUTOSCHEDULER_PARAMETERS)]
    parameters: Mapping[str, Annotated[str, _parameter_text]] = field(default_factory=dict, hash=False)


# An entry point leads to a function that makes `CompilerCommands` of a `ToolchainChoice`.
TOOLCHAINS = ExtensionPoint(
    group="halide_autotune.toolchains",
    noun="toolchain",
    protocol="sdk.CompilerCommands",
    methods=(),
    built_in=("zig", "android"),
    remedy="choose another toolchain.kind in the profile",
)


@dataclass(frozen=True)
class ToolchainChoice:
    """The C toolchain of the target side.

    Attributes:
        kind: `zig`; `android`, which is the NDK's compiler if there is an NDK, else zig's; or that of a package.
        triple: zig's name of the target; for `android`, the one used without an NDK.
        android_api_level: the API level of the oldest Android that the NDK's programs run on; None for `zig`.
        cpu: zig's name of the processor that the C library and the runner are compiled for; None is the triple's.
    """

    kind: Annotated[str, TOOLCHAINS.check_name]
    triple: Annotated[str, _triple]
    android_api_level: Annotated[int | None, whole_number(21, 99)] = None
    cpu: Annotated[str | None, _cpu] = None


@dataclass(frozen=True)
class EmulatorChoice:
    """How to run a program of the target on this machine.

    Attributes:
        command: name on PATH, or a path, of the emulator.
        system_root: folder with the target's dynamic loader and libraries; None if none is needed.
        arguments: further arguments of the emulator, before the program.
        debian_packages: the Debian packages to install for it.
    """

    command: Annotated[str, _command, Example("a program such as qemu-aarch64")]
    system_root: Annotated[str | None, _absolute_folder] = None
    arguments: Annotated[tuple[str, ...], list_of(one_line)] = ()
    debian_packages: Annotated[tuple[str, ...], list_of(_debian_package)] = ()


@dataclass(frozen=True)
class TargetProfile:
    """A kind of hardware: what to compile for, with which tools, and where to run.

    Attributes:
        name: the profile's name (its file name without `.toml`).
        description: one line for people.
        halide_target: a Halide target string, validated.
        machine: the hardware that schedules are searched for.
        autoscheduler: the search and its parameters.
        toolchain: the C toolchain of the target side.
        device_kind: `local` (this machine) or `qemu` (emulated).
        emulator: how to emulate it; None if it is not emulated, never for `qemu`.
        start_weights: `baseline`, or the path of a `.weights` file.
        source: the path of the file it came from, or `built in`.
    """

    name: str
    description: str
    halide_target: str
    machine: MachineParameters
    autoscheduler: AutoschedulerChoice
    toolchain: ToolchainChoice
    device_kind: str
    emulator: EmulatorChoice | None
    start_weights: str
    source: str

    @property
    def is_hexagon(self) -> bool:
        """Whether programs run on a Hexagon DSP alone, and not on a processor that offloads to one."""
        return self.halide_target.startswith("hexagon-")

    @property
    def has_doubtful_vectors(self) -> bool:
        """Whether Halide 21's vector code for the target is wrong for some arithmetic: HVX, RISC-V's vectors.

        `benchmarks.vector_arithmetic` shows for which arithmetic.
        """
        return not {"hvx", "rvv"}.isdisjoint(self.halide_target.split("-"))

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON-ready values, equal for equal profiles and in a fixed order.

        `source` is left out: two equal profiles may come from different files.
        """
        fields: dict[str, Any] = plain(self)
        del fields["source"]
        fields["autoscheduler"]["parameters"] = dict(sorted(self.autoscheduler.parameters.items()))
        return fields


@dataclass(frozen=True)
class ProfileListing:
    """One line of a list of profiles: a profile, or the error that it cannot be loaded with; the other is None."""

    name: str
    source: str
    profile: TargetProfile | None
    error: str | None
