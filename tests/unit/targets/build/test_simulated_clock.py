"""The clock itself, in real programs under real emulators. The times are simulated: equal on every machine."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from halide_autotune.targets.build.simulated_clock_plugin import build_simulated_clock, simulated_clock_arguments
from halide_autotune.targets.profile.profile import MachineParameters
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.unit.targets.conftest import ARM, Architecture, Runner, Workshop
from tests.unit.targets.runner_kernels import compile_kernel

MACHINE = MachineParameters(4, 32768, 1048576, 33554432, vector_bits=128)
SOURCE = Path(__file__).parent / "clock_probe.c"
X86_EMULATED = Architecture(
    "x86-64-emulated", "x86-64-linux-sse41", "x86_64-linux-gnu.2.28", ("qemu-x86_64", "-cpu", "max,-erms,-fsrm")
)
RISCV = Architecture("riscv64", "riscv-64-linux", "riscv64-linux-musl", ("qemu-riscv64",))


@dataclass(frozen=True)
class Probe:
    """Runs clock_probe under an emulator with the simulated clock."""

    command: tuple[str, ...]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The environment lies on the guest's stack, so it is part of what has to be equal.
        command = [*self.command, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env={})

    def times_ns(self, *arguments: str) -> list[int]:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return [int(line) for line in done.stdout.splitlines()]

    def marked(self) -> Probe:
        """The same with a clock that stands until the program starts it."""
        return Probe(tuple(f"{word},marked=on" if "l1_bytes" in word else word for word in self.command))


@pytest.fixture(scope="session")
def plugin(workshop: Workshop) -> Path:
    return build_simulated_clock({"PATH": os.defpath}, workshop.cache)


@pytest.fixture(scope="session")
def probe_of(
    workshop: Workshop, plugin: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Architecture, MachineParameters], Probe]:
    compiled: dict[str, Path] = {}

    def get(guest: Architecture, machine: MachineParameters) -> Probe:
        emulator = shutil.which(guest.emulator[0])
        if emulator is None:
            pytest.skip(f"{guest.emulator[0]} is not installed")
        if guest.name not in compiled:
            folder = tmp_path_factory.mktemp(guest.name)
            toolchain: ZigToolchain = workshop.toolchain(guest)
            toolchain.compile_c(SOURCE, folder / "probe.o", [], ("-D_GNU_SOURCE",))
            toolchain.link([folder / "probe.o"], folder / "probe")
            compiled[guest.name] = folder / "probe"
        clock = simulated_clock_arguments(plugin, emulator, machine, 1)
        return Probe((emulator, *guest.emulator[1:], *clock, str(compiled[guest.name])))

    return get


# For RISC-V, zig builds a C library first.
@pytest.fixture(params=[X86_EMULATED, ARM, pytest.param(RISCV, marks=pytest.mark.slow)], ids=lambda guest: guest.name)
def probe(request: pytest.FixtureRequest, probe_of: Callable[[Architecture, MachineParameters], Probe]) -> Probe:
    return probe_of(request.param, MACHINE)


def test_equal_in_every_run(probe: Probe) -> None:
    assert probe.times_ns("walk", "4160", "20000") == probe.times_ns("walk", "4160", "20000")
    assert probe.times_ns("clock") == probe.times_ns("clock")


def test_never_goes_back(probe: Probe) -> None:
    readings_ns = probe.times_ns("clock")
    assert len(readings_ns) == 2000
    assert all(later > earlier for earlier, later in itertools.pairwise(readings_ns))


def test_more_work_takes_more_time(probe: Probe) -> None:
    (short_ns,) = probe.times_ns("walk", "64", "10000")
    (long_ns,) = probe.times_ns("walk", "64", "40000")
    assert long_ns == pytest.approx(4 * short_ns, rel=0.02)


def test_strides_are_dearer_than_lines_in_order(probe: Probe) -> None:
    (within_lines_ns,) = probe.times_ns("walk", "1", "20000")
    (in_order_ns,) = probe.times_ns("walk", "64", "20000")
    (strided_ns,) = probe.times_ns("walk", "4160", "20000")
    assert within_lines_ns < in_order_ns
    assert 2 * in_order_ns < strided_ns


def test_short_strides_of_one_instruction_are_foreseen(probe: Probe) -> None:
    (short_ns,) = probe.times_ns("walk", "320", "20000")
    (long_ns,) = probe.times_ns("walk", "4160", "20000")
    assert 2 * short_ns < long_ns


def test_pages_cost_at_their_first_touch(probe: Probe) -> None:
    first_ns, second_ns, given_back_ns, mapped_again_ns = probe.times_ns("fresh")
    # 512 pages of 2600 cycles at 2 GHz.
    for touched_ns in (first_ns, given_back_ns, mapped_again_ns):
        assert touched_ns - second_ns == pytest.approx(512 * 1300, rel=0.05)


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_loads_across_two_fresh_stores_wait(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    one_store_ns, two_stores_ns = probe_of(guest, MACHINE).times_ns("forward")
    # 10000 loads that wait for 12 cycles at 2 GHz.
    assert two_stores_ns - one_store_ns == pytest.approx(10000 * 6, rel=0.1)


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_loads_from_two_lines_take_twice_as_long(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    in_one_ns, in_two_ns = probe_of(guest, MACHINE).times_ns("split")
    # 80000 loads, two in a cycle at 2 GHz, and half as many.
    assert in_one_ns == pytest.approx(80000 * 0.25, rel=0.2)
    assert in_two_ns == pytest.approx(80000 * 0.5, rel=0.2)


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_lines_that_do_not_need_each_other_come_together(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    one_by_one_ns, together_ns = probe_of(guest, MACHINE).times_ns("misses")
    # 40000 lines of 2.5 MiB, from the last level: 40 cycles at 2 GHz, and 5 for a load.
    assert one_by_one_ns > 40000 * 22
    assert 3 * together_ns < one_by_one_ns


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_lines_of_memory_take_longer_than_those_of_any_cache(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    cached_ns, _ = probe_of(guest, MACHINE).times_ns("misses")
    small = MachineParameters(1, 4096, 65536, 262144, vector_bits=128)
    far_ns, _ = probe_of(guest, small).times_ns("misses")
    # 40000 lines that need each other: 180 cycles at 2 GHz instead of 40.
    assert far_ns > 40000 * 90 > 3 * cached_ns


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_divisions_that_need_each_other_take_long(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    added_ns, divided_ns, floats_added_ns, floats_divided_ns = probe_of(guest, MACHINE).times_ns("divisions")
    # 10000 of 14 and of 12 cycles at 2 GHz.
    assert divided_ns >= 10000 * 7 > 4 * added_ns
    assert floats_divided_ns >= 10000 * 6 > 3 * floats_added_ns


def test_a_gather_is_dearer_than_a_vector(probe_of: Callable[[Architecture, MachineParameters], Probe]) -> None:
    loaded_ns, gathered_ns = probe_of(X86_EMULATED, MACHINE).times_ns("gathers")
    # Two units that each take 8 cycles at 2 GHz for one.
    assert gathered_ns >= 10000 * 2 > 2 * loaded_ns


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_additions_that_need_each_other_take_their_turns(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    one_chain_ns, eight_chains_ns, through_memory_ns = probe_of(guest, MACHINE).times_ns("chains")
    # 80000 additions of 3 cycles at 2 GHz, and 5 more cycles each way through memory.
    assert one_chain_ns == pytest.approx(80000 * 1.5, rel=0.02)
    assert through_memory_ns >= 80000 * 4
    assert 4 * eight_chains_ns < one_chain_ns


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_branches_by_chance_are_dearer_than_a_pattern(
    guest: Architecture, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    pattern_ns, by_chance_ns = probe_of(guest, MACHINE).times_ns("branches")
    # Every other one of 10000 guesses is wrong, and costs some 13 cycles at 2 GHz.
    assert 0.7 * 32500 < by_chance_ns - pattern_ns < 1.5 * 32500


def test_sleeping_takes_no_simulated_time(probe: Probe) -> None:
    (slept_ns,) = probe.times_ns("sleep")
    assert 0 < slept_ns < 20_000_000


def test_a_marked_clock_stands_until_it_is_wanted(probe: Probe) -> None:
    marked = probe.marked()
    before_ns, after_ns = marked.times_ns("mark")
    always_ns, _ = probe.times_ns("mark")
    assert before_ns == 0 and after_ns == pytest.approx(always_ns, rel=0.02)
    assert marked.times_ns("mark") == [before_ns, after_ns]


def test_caches_can_be_warmed_up_while_a_marked_clock_stands(probe: Probe) -> None:
    marked = probe.marked()
    cold_ns, _ = marked.times_ns("cold")
    warm_ns, again_ns = marked.times_ns("warm")
    assert warm_ns < cold_ns / 4 and warm_ns == pytest.approx(again_ns, rel=0.02)
    assert marked.times_ns("warm") == [warm_ns, again_ns]


def test_second_thread_is_refused(probe: Probe) -> None:
    done = probe.run("thread")
    assert done.returncode == 1
    assert "joined" not in done.stdout
    assert "serves programs of one thread, and this one starts a second" in done.stderr


def test_larger_caches_are_faster(probe_of: Callable[[Architecture, MachineParameters], Probe]) -> None:
    small = probe_of(X86_EMULATED, MachineParameters(1, 4096, 65536, 262144, vector_bits=128))
    large = probe_of(X86_EMULATED, MachineParameters(1, 32768, 1048576, 16777216, vector_bits=128))
    assert large.times_ns("walk", "4160", "20000") < small.times_ns("walk", "4160", "20000")


def test_without_caches_instructions_are_counted_alone(
    plugin: Path, probe_of: Callable[[Architecture, MachineParameters], Probe]
) -> None:
    *emulator, _, program = probe_of(X86_EMULATED, MACHINE).command
    counting = Probe((*emulator, f"file={plugin}", program))
    (within_lines_ns,), (strided_ns,) = (
        counting.times_ns("walk", "1", "20000"),
        counting.times_ns("walk", "4160", "20000"),
    )
    assert 0 < within_lines_ns == pytest.approx(strided_ns, rel=0.02)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("l1_bytes=32768,l2_bytes=32768", "larger than the one before"),
        ("l1_bytes=32768", "larger than the one before"),
        ("l1_bytes=-1", "it does not take l1_bytes=-1"),
        ("colour=3", "it does not take colour=3"),
    ],
)
def test_wrong_values_are_refused(plugin: Path, values: str, message: str) -> None:
    done = subprocess.run(
        ["qemu-x86_64", "-plugin", f"file={plugin},{values}", "/bin/true"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_runner_reads_the_simulated_clock(
    guest: Architecture, marked: bool, workshop: Workshop, plugin: Path, tmp_path: Path
) -> None:
    executable = workshop.link([compile_kernel("blur_tiled", guest.halide_target, tmp_path)], guest, tmp_path / "batch")
    clock = simulated_clock_arguments(plugin, guest.emulator[0], MACHINE, 4, marked=marked)
    runner = Runner(executable, (*guest.emulator, *clock))
    options = (
        "--kernel",
        "blur_tiled",
        "--time",
        "--warm-up-s",
        "0",
        "--min-repetition-s",
        "0",
        "--max-repetitions",
        "5",
    )
    times_s = {
        cores: [runner(*options, "--simulated-cores", str(cores)).one("timed")["repetitions_s"] for _ in range(2)]
        for cores in (1, 4)
    }
    # The clock is read in whole nanoseconds. One that is not marked counts what the runner does before, too (it reads
    # files and writes numbers), which is not always as long: a repetition begins late in a nanosecond, or early.
    for first, second in times_s.values():
        assert first == (second if marked else pytest.approx(second, abs=1.01e-9))
    assert min(times_s[4][0]) > 1.05 * max(times_s[1][0]), "the start of the parallel loop, which is a short one"


@pytest.mark.parametrize("guest", [X86_EMULATED, ARM], ids=lambda guest: guest.name)
def test_the_runner_wants_a_marked_clock_for_its_repetitions_only(
    guest: Architecture, workshop: Workshop, plugin: Path, tmp_path: Path
) -> None:
    executable = workshop.link([compile_kernel("blur_tiled", guest.halide_target, tmp_path)], guest, tmp_path / "batch")
    repetitions_s = []
    for marked, repetitions in ((False, 2), (True, 1)):
        clock = simulated_clock_arguments(plugin, guest.emulator[0], MACHINE, 4, marked=marked)
        runner = Runner(executable, (*guest.emulator, *clock))
        reference = str(tmp_path / f"reference-{marked}.raw")
        options = ("--kernel", "blur_tiled", "--simulated-cores", "4")
        runner(*options, "--write-reference", reference)
        count = ("--min-repetitions", str(repetitions), "--max-repetitions", str(repetitions))
        repeated = ("--time", "--warm-up-s", "0", "--min-repetition-s", "0", *count)
        repetitions_s.append(runner(*options, "--reference", reference, *repeated).one("timed")["repetitions_s"])
    # The call whose output is checked has warmed up the caches, though the clock stood; but not for what calls it.
    # That is a few lines of memory, and how many depends on where the stack lies: on the length of every path.
    (once_s,) = repetitions_s[1]
    assert once_s == pytest.approx(repetitions_s[0][1], rel=0.1)
