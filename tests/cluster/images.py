"""The images of the cluster, built without a registry."""

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

BUSYBOX = "docker.io/library/busybox:latest"
PAUSE = "registry.k8s.io/pause:3.9"
COMMANDS = ("cat", "echo", "env", "grep", "id", "ls", "mount", "sh", "sleep", "true", "wget")


def busybox_image() -> bytes:
    """A static busybox as an archive for `ctr images import`; by itself it sleeps, so it is the pause image, too."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        _add(tar, "bin/busybox", Path(shutil.which("busybox") or "busybox").read_bytes(), 0o755)
        for command in COMMANDS:
            link = tarfile.TarInfo(f"bin/{command}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "2147483647"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [BUSYBOX, PAUSE], "Layers": ["layer.tar"]}]
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w") as tar:
        _add(tar, "layer.tar", layer.getvalue())
        _add(tar, "config.json", json.dumps(config).encode())
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return image.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))
