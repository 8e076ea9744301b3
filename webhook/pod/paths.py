"""Where the paths of volumes and mounts lead, read as the kubelet and the container runtime read them."""

from posixpath import normpath

MAX_SLASHES = 64


def clean(path: str) -> str | None:
    """Make a path absolute, then clean it through the links that every Linux system has.

    A `..` behind a link leaves the directory that the link leads to: /var/run/../etc is /etc.

    Returns:
        The path with a slash behind it; None if it is too long to be followed.
    """
    if path.count("/") > MAX_SLASHES:
        return None
    if "run" not in path and "root" not in path:  # no link is in it
        lexical = normpath("/./" + path)
        return lexical if lexical == "/" else lexical + "/"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part and part != ".":
            parts.append(part)
            if part == "run" and parts == ["var", "run"]:
                parts = ["run"]
            elif part == "root" and len(parts) > 2 and parts[0] == "proc":  # of a process: /proc/1/root
                parts = []
    return f"/{'/'.join(parts)}/" if parts else "/"
