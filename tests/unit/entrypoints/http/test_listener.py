"""Where a server may listen, and what it leaves behind."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from backstory.config.serving import ServeSettings
from backstory.entrypoints.http.listener import check_reach, listening
from backstory.errors import ConfigError

FREE = ServeSettings(port=0)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose path leaves room for a socket's name."""
    return tmp_path_factory.mktemp("s")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_of_this_machine_needs_no_certificate(host: str) -> None:
    with listening(replace(FREE, host=host)) as listener:
        name, port = listener.socket.getsockname()[:2]
        assert name in ("127.0.0.1", "::1")
        assert listener.url.endswith(f":{port}")
        with socket.create_connection((name, port), timeout=5):
            pass


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "[::]",
        "192.168.1.5",
        "10.0.0.1",
        "machine.example",
        "",
        "0",
        "::ffff:127.0.0.1",
        "127.1.example",
    ],
)
def test_what_other_machines_reach_is_refused_without_a_certificate(host: str) -> None:
    with pytest.raises(ConfigError, match=r"serve\.certificate"), listening(replace(FREE, host=host)):
        pass


def test_a_certificate_needs_its_key_and_both_must_be_there(folder: Path) -> None:
    file = folder / "chain.pem"
    file.touch()
    with pytest.raises(ConfigError, match=r"serve\.certificate_key is not set"):
        check_reach(replace(FREE, certificate=file))
    with pytest.raises(ConfigError, match=r"serve\.certificate is not set"):
        check_reach(replace(FREE, certificate_key=file))
    with pytest.raises(ConfigError, match="cannot be read"):
        check_reach(replace(FREE, certificate=file, certificate_key=folder / "no.pem"))
    check_reach(replace(FREE, host="0.0.0.0", certificate=file, certificate_key=file))


def test_what_is_no_certificate_or_no_address_is_said_before_it_listens(folder: Path) -> None:
    file = folder / "chain.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    for path in (file, folder):
        with (
            pytest.raises(ConfigError, match="no certificate chain"),
            listening(replace(FREE, certificate=path, certificate_key=path)),
        ):
            pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_with_a_certificate_every_address_may_be_listened_on_and_a_key_with_a_passphrase_is_refused(
    folder: Path,
) -> None:
    chain, key, locked = (folder / name for name in ("chain.pem", "key.pem", "locked.pem"))
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    for words in (f"{made} -keyout {key} -out {chain}", f"ec -aes128 -passout pass:heron -in {key} -out {locked}"):
        subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    tls = replace(FREE, host="0.0.0.0", certificate=chain, certificate_key=key)
    with listening(tls) as listener:
        assert listener.url.startswith("https://localhost:")  # a name that clients may use
    with pytest.raises(ConfigError, match="without a passphrase"), listening(replace(tls, certificate_key=locked)):
        pass
    for host in ("a..b", "x\0y"):
        with pytest.raises(ConfigError, match="no address"), listening(replace(tls, host=host)):
            pass


def test_a_port_that_is_taken_is_said() -> None:
    with listening(FREE) as listener:
        port = listener.socket.getsockname()[1]
        with pytest.raises(ConfigError, match=f"{port} is taken"), listening(replace(FREE, port=port)):
            pass


def test_a_socket_is_for_its_owner_alone_and_goes_at_the_end(folder: Path) -> None:
    path = folder / "new" / "sock"
    with listening(replace(FREE, socket=path)) as listener:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert (listener.path, listener.url) == (path, "http://localhost")
    assert not path.exists()


def test_a_socket_that_nobody_answers_is_replaced(folder: Path) -> None:
    path = folder / "sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with listening(replace(FREE, socket=path)), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_socket_that_somebody_answers_is_left_alone(folder: Path) -> None:
    path = folder / "sock"
    with listening(replace(FREE, socket=path)):
        inode = path.stat().st_ino
        with pytest.raises(ConfigError, match="another server"), listening(replace(FREE, socket=path)):
            pass
        assert path.stat().st_ino == inode


def test_what_is_no_socket_is_never_removed(folder: Path) -> None:
    file, link = folder / "file", folder / "link"
    file.write_text("precious")
    link.symlink_to(file)
    for path in (file, link, folder):
        with pytest.raises(ConfigError, match="no socket"), listening(replace(FREE, socket=path)):
            pass
    assert file.read_text() == "precious"
    assert link.is_symlink()


def test_a_socket_of_another_server_is_not_removed_at_the_end(folder: Path) -> None:
    path = folder / "sock"
    with listening(replace(FREE, socket=path)):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()


def test_a_path_too_long_for_a_socket_is_said(folder: Path) -> None:
    with pytest.raises(ConfigError, match="longer than"), listening(replace(FREE, socket=folder / ("x" * 120))):
        pass


def test_the_mask_for_new_files_is_as_before(folder: Path) -> None:
    before = os.umask(0o022)
    try:
        with listening(replace(FREE, socket=folder / "sock")):
            assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
