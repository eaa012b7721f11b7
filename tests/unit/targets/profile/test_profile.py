"""The values of a profile."""

from __future__ import annotations

import dataclasses
import json

import pytest

from halide_autotune.targets.profile.loader import BUILT_IN, load_profile
from halide_autotune.targets.profile.profile import AutoschedulerChoice


def test_to_dict_is_json_equal_for_equal_profiles_and_says_no_place() -> None:
    profile = load_profile("arm64")
    moved = dataclasses.replace(profile, source="/elsewhere/arm64.toml")
    assert profile.source == BUILT_IN
    assert json.dumps(profile.to_dict()) == json.dumps(moved.to_dict())
    assert json.loads(json.dumps(profile.to_dict())) == profile.to_dict()


def test_to_dict_has_every_field_but_the_source() -> None:
    profile = load_profile("arm64")
    names = {field.name for field in dataclasses.fields(profile)} - {"source"}
    assert set(profile.to_dict()) == names
    assert profile.machine == type(profile.machine)(**profile.to_dict()["machine"])


def test_parameters_are_in_a_fixed_order() -> None:
    profile = load_profile("arm64")
    one = AutoschedulerChoice("Adams2019", {"beam_size": "4", "random_dropout": "50"})
    other = AutoschedulerChoice("Adams2019", {"random_dropout": "50", "beam_size": "4"})
    texts = [json.dumps(dataclasses.replace(profile, autoscheduler=a).to_dict()) for a in (one, other)]
    assert texts[0] == texts[1]


def test_profiles_are_frozen_and_can_be_keys() -> None:
    profile = load_profile("arm64")
    assert {profile: 1}[load_profile("arm64")] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.name = "other"  # type: ignore[misc]  # that it cannot be set is the test
