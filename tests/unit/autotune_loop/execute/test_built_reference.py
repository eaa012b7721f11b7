"""What a run says of the schedule that its outputs are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuiltReference
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.profile.profile import OWN_SCHEDULE


@pytest.mark.parametrize(
    ("autoscheduler", "title"),
    [("Mullapudi2016", "Mullapudi2016's schedule"), (OWN_SCHEDULE, "the generator's own schedule")],
)
def test_it_is_called_by_whose_it_is(autoscheduler: str, title: str) -> None:
    built = BuiltReference(autoscheduler, KernelObject("f", Path("f.o")), Path("f.schedule.h"), True, 0, 1.0)
    assert built.title == title
