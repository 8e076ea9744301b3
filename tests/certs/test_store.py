"""Certificate files: they are replaced atomically, have the right mode, and are complete after any interruption."""

import errno
import os
from pathlib import Path

import pytest

from certs import pki
from certs.pki import Pair

OLD, NEW = Pair(b"old certificate", b"old key"), Pair(b"new certificate", b"new key")


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def modes(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in directory.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027])
def test_only_the_owner_can_read_the_key(tmp_path: Path, umask: int):
    (tmp_path / "tls.key").write_bytes(b"old")
    (tmp_path / "tls.key").chmod(0o666)
    before = os.umask(umask)
    try:
        pki.write(tmp_path, NEW, b"ca")
    finally:
        os.umask(before)
    assert modes(tmp_path) == {"tls.crt": 0o644 & ~umask, "tls.key": 0o600, "ca.crt": 0o644 & ~umask}
    assert contents(tmp_path) == {"tls.crt": NEW.certificate, "tls.key": NEW.key, "ca.crt": b"ca"}


def test_an_open_reader_keeps_the_old_content(tmp_path: Path):
    directory = tmp_path / "made" / "as needed"
    pki.write(directory, OLD, b"ca")
    with (directory / "tls.crt").open("rb") as reader:
        pki.write(directory, NEW, b"ca")
        assert reader.read() == OLD.certificate


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
def test_an_interrupted_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str):
    pki.write(tmp_path, OLD, b"ca")
    full = OSError(errno.ENOSPC, "No space left on device")

    def fail(*_: object) -> None:
        raise full

    with monkeypatch.context() as patch:
        if step == "rename":
            patch.setattr(Path, "replace", fail)
        else:
            patch.setattr(os, "fdopen" if step == "write" else "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            pki.replace(tmp_path / "tls.key", NEW.key, 0o600)
    assert (tmp_path / "tls.key").read_bytes() == OLD.key
    pki.replace(tmp_path / "tls.key", NEW.key, 0o600)
    assert contents(tmp_path) == {"tls.crt": OLD.certificate, "tls.key": NEW.key, "ca.crt": b"ca"}, (
        "no temporary file is left"
    )


def test_an_existing_symlink_is_not_followed(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".tls.key.new").symlink_to(victim)
    pki.replace(tmp_path / "tls.key", NEW.key, 0o600)
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "tls.key").is_symlink()
