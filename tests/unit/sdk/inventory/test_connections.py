"""What connections are made with."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

from halide_autotune.sdk.inventory.connections import connection_settings, health_folder, home_folder
from halide_autotune.sdk.settings import Settings

SETTINGS = Settings(Path("/cache"), Path("/config"), Path("/profiles"), {"HOME": "/home/ann"})


def test_the_users_files() -> None:
    found = connection_settings(SETTINGS, (("pi", "hunter2"),))
    assert found.ssh_config_file == Path("/home/ann/.ssh/config")
    assert found.known_hosts_file == Path("/home/ann/.ssh/known_hosts")
    assert [file.name for file in found.identity_files] == ["id_ed25519", "id_ecdsa", "id_rsa"]
    assert found.adb_key_file == Path("/config/adb/adbkey")
    assert found.token_folder == Path("/config/leases")
    assert health_folder(SETTINGS) == Path("/config/health")
    assert found.lease_owner == f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
    assert "hunter2" not in repr(found)


def test_openssh_reads_the_configuration_where_it_is_installed(tmp_path: Path) -> None:
    settings = Settings(Path("/cache"), Path("/config"), Path("/profiles"), {"HOME": "/h", "PATH": str(tmp_path)})
    assert connection_settings(settings).ssh_program is None
    ssh = tmp_path / "ssh"
    ssh.touch(0o755)
    assert connection_settings(settings).ssh_program == ssh
    assert connection_settings(settings).environment == settings.environment


def test_without_a_variable_the_system_knows_the_home_folder() -> None:
    settings = Settings(Path("/cache"), Path("/config"), Path("/profiles"), {})
    assert home_folder(settings) == Path(pwd.getpwuid(os.getuid()).pw_dir)
