"""A play-off before a schedule ships, held for real: against a slower header, and against a faster one."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from autotune_loop.schedule.parse import parse_schedule
from autotune_loop.schedule.print_header import print_header
from autotune_loop.shipping.confirmation import confirm_winner
from autotune_loop.shipping.generator_sources import GeneratorSources
from autotune_loop.shipping.run_schedule import read_run_schedules
from autotune_loop.specification.options import DeviceOptions
from sdk.project.preparation import Workbench
from sdk.select.trial_place import open_trial_place
from sdk.settings import Settings
from targets.errors import GeneratorError
from targets.generator.program import GeneratorProgram, open_generator
from targets.generator.reference import parse_generator
from targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from targets.process.content_cache import ContentCache
from targets.profile.loader import load_profile
from targets.profile.profile import TargetProfile
from targets.schedule.autoschedulers import li2018, profile_autoscheduler
from tests.tuned_run_folder import LIMITS, write_tuned_run
from tests.unit.autotune_loop.shipping.conftest import GENERATORS


def schedule_of(autoscheduler: AutoschedulerRequest, program: GeneratorProgram, profile: TargetProfile) -> str:
    with tempfile.TemporaryDirectory() as folder:
        request = GeneratorRequest(
            "total", "total", "total", Path(folder), ("schedule",), profile.halide_target, {}, autoscheduler
        )
        result = run_generator(program, request, LIMITS)
        assert isinstance(result, GeneratedFiles), result
        # Li2018's own header does not compile.
        return print_header(parse_schedule(result.files["schedule"].read_text()), "total")


@pytest.mark.slow
def test_what_wins_ships_with_its_new_times_and_what_does_not_stays(
    sources: GeneratorSources, settings: Settings, tmp_path: Path
) -> None:
    generator = GENERATORS / "total.py"
    profile = load_profile("x86-64", settings.profile_folder)
    program = open_generator(parse_generator(str(generator)), sources.halide, sources.compiler, sources.environment)
    with contextlib.closing(program):
        folder = write_tuned_run(tmp_path / "run", generator, program, profile, sources.halide)
        header = folder / "samples" / "best.total.schedule.h"
        in_use = tmp_path / "in_use.schedule.h"
        in_use.write_text(schedule_of(profile_autoscheduler(sources.halide, profile, 2, {}), program, profile))
        header.write_text(schedule_of(li2018(sources.halide, 2), program, profile))
        (run,) = read_run_schedules(folder)
        workbench = Workbench(sources.halide, ContentCache(settings.cache_folder), sources.compiler)
        place = open_trial_place(run, DeviceOptions(), workbench, settings, lambda step: None)
        assert place.device.threads == 2, "as many as the schedule was made for"

        times = confirm_winner(run, program, in_use, place, None, lambda step: None).times
        assert times.default is not None and times.confirmed and times.clock == "wall"
        assert times.tuned.low_ms <= times.tuned.median_ms <= times.tuned.high_ms < times.default.median_ms
        assert times.tuned != run.times.tuned
        assert times.verdict.startswith("faster: ") and "times as fast as the header that was in use" in times.verdict

        with pytest.raises(GeneratorError, match=r"best\.total\.schedule\.h is not shipped\. .*incumbent"):
            slower = replace(run, header_text=in_use.read_text())
            confirm_winner(slower, program, header, place, None, lambda step: None)
