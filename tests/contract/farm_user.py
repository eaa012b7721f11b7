"""For tests: a user of a farm who opens a device and says so, until it is killed.

python -m tests.contract.farm_user ADDRESS CERTIFICATES DEVICE FOLDER
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.execute.farm_executor import FarmExecutor
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import OpenDevice
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.use import DeviceWish, FarmUse
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from tests.run_specs import make_context, make_spec

EXAMPLE = Path(__file__).parents[2] / "examples" / "separable_filter.py"


def context_for(folder: Path, devices: tuple[Device, ...] = ()) -> RunContext:
    """A run of an example with small sizes, below `folder`; and of a second task that cannot be built."""
    reference = GeneratorReference(EXAMPLE, GeneratorKind.PYTHON, "separable_filter")
    small = TuningTask(reference, "separable_filter", {"width": "192", "height": "96"})
    spec = make_spec(small, replace(small, parameters={"nonsense": "1"}), profile="x86-64", parallelism=1)
    return make_context(spec, devices, folder, plan_cores(frozenset(os.sched_getaffinity(0)), 0), dict(os.environ))


def main() -> None:
    """Hold the device until the end."""
    address, certificates, device, folder = sys.argv[1:]
    use = FarmUse(FarmAddress(address, Path(certificates)), DeviceWish("x86-64", (), Clock.EMULATED))
    with contextlib.closing(FarmExecutor(context_for(Path(folder)), 1, use)) as executor:
        executor.submit(OpenDevice(device)).result()
        print("open", flush=True)
        time.sleep(3600)


if __name__ == "__main__":
    main()
