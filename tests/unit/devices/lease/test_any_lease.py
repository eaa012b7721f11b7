"""Whatever a device or a kept file says of a lease is one that can be shown, or a failure, or none."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given

from halide_autotune.devices.agent.protocol import read_reply
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.lease.lease import show_leases
from halide_autotune.devices.lease.token import LeaseToken, keep_token, read_token
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.sdk.display.quantities import duration_text, iso_text
from tests.device_replies import LEASES, spoiled

PLACE = RemotePlace(SshAddress("board"))


class Answering:
    """An agent that gives one answer to everything."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def ask_for(self, kind: type[Any], command: str, fields: object) -> Any:
        return read_reply(kind, self._answer, "The reply of pi5")


@given(spoiled(LEASES))
def test_any_list_of_leases_can_be_shown_or_is_trouble(reply: object) -> None:
    try:
        leases = show_leases(cast(AgentSession, Answering(reply)), PLACE)
    except DeviceTrouble as trouble:
        assert trouble.message.isprintable()
        return
    for lease in leases:
        assert lease.owner.isprintable() and len(lease.owner) <= 300
        assert len(duration_text(lease.since_s)) < 20
        iso_text(1.7e9 + lease.expires_in_s)


@pytest.mark.parametrize("since_s", [1e300, float("nan"), -1e9, "long"])
def test_a_time_that_no_lease_has_is_trouble(since_s: object) -> None:
    leases = [{**LEASES["leases"][0], "since_s": since_s}]
    with pytest.raises(DeviceTrouble, match="since_s"):
        show_leases(cast(AgentSession, Answering({"leases": leases})), PLACE)


@given(change=spoiled({"token": "ab" * 16, "ends_unix_s": 1.7e9}))
def test_any_kept_token_is_one_or_none(tmp_path_factory: pytest.TempPathFactory, change: object) -> None:
    folder = tmp_path_factory.mktemp("tokens")
    keep_token(folder, PLACE, LeaseToken("cd" * 16, 1.0))
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    fields = json.loads(file.read_text())
    file.write_text(json.dumps(fields | change if isinstance(change, dict) else change))
    kept = read_token(folder, PLACE)
    assert kept is None or (len(kept.token) >= 32 and 0 <= kept.left_s <= 1e12)
