"""What is told of weights to a person."""

from __future__ import annotations

from halide_autotune.devices.device import Clock
from halide_autotune.sdk.commands.weights.weights import lineage_facts
from halide_autotune.weights.lineage import Lineage, Training


def test_numbers_are_rounded_and_have_their_units() -> None:
    told = Lineage(
        profile="arm64",
        device="pi4",
        clock="wall",
        parallelism=4,
        network="Adams2019",
        halide_version="21.0.0",
        parent_sha256="0123456789abcdef" * 4,
        training=Training(
            pipelines=1,
            samples=12345,
            rounds=3,
            held_out_samples=1,
            pairwise_accuracy=0.81349,
            best_in_top_8=1.1835,
        ),
        created="2026-01-02",
        note="a first try",
    )
    assert lineage_facts(told) == {
        "network": "Adams2019 of Halide 21.0.0",
        "feature version": "3",
        "timed on": "arm64, device pi4, 4 cores, wall time",
        "trained on": "12,345 schedules of 1 pipeline, in 3 rounds",
        "started from": "weights 0123456789ab…",
        "scored on": "1 held-out schedule",
        "pairs in order": "81 %",
        "best in first 8": "118 % of the best time (100 % is perfect)",
        "created": "2026-01-02",
        "note": "a first try",
    }


def test_what_is_not_known_is_left_out() -> None:
    assert lineage_facts(Lineage()) == {"feature version": "3"}
    assert lineage_facts(Lineage(clock="simulated", training=Training(pipelines=2))) == {
        "feature version": "3",
        "timed on": Clock.SIMULATED.words,
        "trained on": "2 pipelines",
    }
