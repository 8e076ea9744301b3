"""Debian's Chromium, headless, which can reach this machine only."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

REQUIRED = "VGPU_WEBHOOK_BROWSER"  # with the value `required`, tests without a browser fail
REBOUND = "rebound.test"  # a foreign name that resolves to this machine
WIDTH, HEIGHT = 1240, 900
PAGE_SECONDS = 120

SWITCHES = """--headless=new --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync
    --disable-component-update --disable-dev-shm-usage --disable-breakpad --hide-scrollbars --no-proxy-server"""
ARGUMENTS = [
    *SWITCHES.split(),
    f"--window-size={WIDTH},{HEIGHT}",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


def missing() -> str:
    """Which programs are missing, and how to install them; empty if all are installed."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if not lacking:
        return ""
    return f"no {' and no '.join(lacking)} here: apt-get install chromium chromium-driver"


@contextmanager
def chromium(home: Path) -> Iterator[Chrome]:
    """Start Chromium with its files in an empty directory; it ends with the context."""
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in (*ARGUMENTS, f"--user-data-dir={home / 'profile'}"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium as root has no sandbox
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    mine = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache")}
    with patch.dict(os.environ, NO_PROXY="localhost,127.0.0.1", no_proxy="localhost,127.0.0.1"):
        driver = Chrome(options, Service(str(shutil.which("chromedriver")), env=os.environ | mine))
    try:
        driver.set_page_load_timeout(PAGE_SECONDS)
        driver.set_script_timeout(PAGE_SECONDS)
        yield driver
    finally:
        driver.quit()
