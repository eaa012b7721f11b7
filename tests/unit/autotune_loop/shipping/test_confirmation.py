"""A play-off before a schedule ships, held for real: against a slower header, and against a faster one."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.confirmation import confirm_winner
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.autotune_loop.store.published import NoDefault
from halide_autotune.sdk.project.preparation import Workbench
from halide_autotune.sdk.select.trial_place import open_trial_place
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.autoschedulers import li2018, profile_autoscheduler
from tests.tuned_run_folder import read_run_schedules, schedule_of, write_tuned_run
from tests.unit.autotune_loop.shipping.conftest import GENERATORS


@pytest.mark.slow
def test_what_wins_ships_with_its_new_times_and_what_does_not_stays(
    sources: GeneratorSources, settings: Settings, tmp_path: Path
) -> None:
    generator = GENERATORS / "total.py"
    profile = load_profile("x86-64", settings.profile_folder)
    program = open_generator(parse_generator(str(generator)), sources.halide, sources.compiler, sources.environment)
    with contextlib.closing(program):
        folder = tmp_path / "run"
        write_tuned_run(folder, generator, program, profile, sources.halide)
        in_use = tmp_path / "in_use.schedule.h"
        in_use.write_text(schedule_of(profile_autoscheduler(sources.halide, profile, 2, {}), program, profile))
        quick = tmp_path / "quick.schedule.h"
        quick.write_text(schedule_of(li2018(sources.halide, 2), program, profile))
        (published,) = read_run_schedules(folder)
        # A run of long ago, whose own search for a default has failed.
        untold = replace(published.facts.published, default=None, no_default=NoDefault("its search failed (crashed)"))
        of_run = replace(published.facts, published=untold, tuned_unix_s=0.0, default_is_greedy=True)
        run = replace(published, header_text=quick.read_text(), facts=of_run)
        workbench = Workbench(sources.halide, ContentCache(settings.cache_folder), sources.compiler)
        place = open_trial_place(run, DeviceOptions(), workbench, settings, lambda step: None)
        assert place.device.threads == 2, "as many as the schedule was made for"

        facts = confirm_winner(run, program, in_use, place, None, lambda step: None).facts
        won = facts.published
        assert won.confirmed and won.reason == "faster" and facts.clock == "wall"
        assert won.tuned is not None and won.tuned.range_ms is not None and won.default is not None
        assert won.tuned.range_ms[0] <= won.tuned.median_ms <= won.tuned.range_ms[1]
        # By the turns in pairs: what one of them takes at a moment of its own says nothing on a busy machine.
        assert won.speed_up is not None and won.speed_up.low is not None and won.speed_up.low > 1
        assert won.tuned != run.facts.published.tuned
        assert won.no_default is None and not facts.default_is_greedy and facts.tuned_unix_s > 0.0
        assert "times as fast as the incumbent (95 % interval" in won.speed_up_text

        with pytest.raises(GeneratorError, match=r"best\.total\.schedule\.h is not shipped\. .*incumbent"):
            slower = replace(run, header_text=in_use.read_text())
            confirm_winner(slower, program, quick, place, None, lambda step: None)
