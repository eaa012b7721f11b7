"""A scheduler's address: tls anywhere, tcp only on the loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.farm.address import FarmAddress, farm_address
from halide_autotune.targets.errors import FarmError, UsageError

FOLDER = Path("certificates")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tls://lab.example", "tls://lab.example:8786"),
        ("tls://lab.example:9000", "tls://lab.example:9000"),
        ("tls://[fe80::1]:9000/", "tls://[fe80::1]:9000"),
        ("tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000"),
        ("tcp://localhost", "tcp://localhost:8786"),
        ("tcp://[::1]", "tcp://[::1]:8786"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert farm_address(text, FOLDER).address == address


@pytest.mark.parametrize("text", ["tcp://192.168.1.5:8786", "tcp://lab", "tcp://0.0.0.0:8786", "tcp://:8786"])
def test_a_plain_address_of_another_machine_must_be_allowed(text: str) -> None:
    with pytest.raises(UsageError, match="has no protection"):
        farm_address(text, FOLDER)
    assert farm_address(text, FOLDER, allow_plain=True).certificates is None


@given(st.text(max_size=60))
def test_anything_else_is_refused_in_one_message(text: str) -> None:
    try:
        found = farm_address(text, FOLDER, allow_plain=True)
    except UsageError as error:
        assert "\n" not in error.message
    else:
        assert found.address.startswith(("tls://", "tcp://"))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FarmError, match=r"ca\.pem"):
        FarmAddress("tls://lab:8786", tmp_path).security()
