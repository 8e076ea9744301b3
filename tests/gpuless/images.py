"""The images of the cluster, made without a registry."""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.deploy.files import DEPLOY, ROOT

BASES = {"BASE": "base.tar", "BUILD_BASE": "build-base.tar"}  # arguments of deploy/Dockerfile
WEBHOOK, TAG = "docker.io/library/vgpu-webhook", "local"
BUSYBOX = "docker.io/library/busybox:latest"
PAUSE = "registry.k8s.io/pause:3.9"
CERTIFICATES = Path("/etc/ssl/certs")  # behind a proxy, pip has to trust what this machine trusts
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


def webhook_image(assets: Path, directory: Path) -> bytes:
    """The webhook's image as an archive for `ctr images import`, built by deploy/Dockerfile on the bases of `assets`."""
    archive, name = directory / "webhook.tar", f"{WEBHOOK}:{TAG}"
    bases = [f"--build-arg={key}=oci-archive:{assets / file}" for key, file in BASES.items()]
    trust = [f"--volume={CERTIFICATES}:{CERTIFICATES}:ro", f"--env=PIP_CERT={CERTIFICATES / 'ca-certificates.crt'}"]
    buildah = ["buildah", f"--root={directory / 'storage'}", f"--runroot={directory / 'run'}"]
    build = [
        "build",
        "--isolation=chroot",
        f"--file={DEPLOY / 'Dockerfile'}",
        f"--tag={name}",
        *bases,
        *trust,
        str(ROOT),
    ]
    for command in (build, ["push", name, f"docker-archive:{archive}:{name}"]):
        done = subprocess.run([*buildah, *command], capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, f"buildah {command[0]}: {(done.stdout + done.stderr)[-2000:]}"
    return archive.read_bytes()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))
