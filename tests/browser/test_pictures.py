"""The pictures in the READMEs, and how they are made small."""

import re
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from tests.browser import png
from tests.browser.screenshots import PICTURES, SHOWN, WIDTH
from tests.browser.user import User

ROOT = Path(__file__).parents[2]
LARGEST = 150_000  # bytes
# Every 97th pixel of a picture, decoded by the browser.
PIXELS = """
const [data, finish] = arguments;
const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
createImageBitmap(new Blob([bytes], { type: "image/png" })).then((picture) => {
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const pixels = canvas.getImageData(0, 0, picture.width, picture.height).data;
  const found = [];
  for (let at = 0; at < pixels.length; at += 4 * 97) found.push([...pixels.subarray(at, at + 4)]);
  finish(found);
});
"""
NAMED = re.compile(r"[\w./-]+\.png")


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_a_picture_that_a_readme_names_is_there(readme: str):
    for name in NAMED.findall((ROOT / readme).read_text()):
        assert (ROOT / name).is_file(), name
        assert (ROOT / name).stem in SHOWN, name  # `make screenshots` renews it


def test_the_pictures_are_small_and_all_of_them_are_taken_by_the_target():
    assert {file.name for file in PICTURES.iterdir()} == {f"{name}.png" for name in SHOWN}
    for file in PICTURES.iterdir():
        data = file.read_bytes()
        width, height = png.size(data)
        assert width == WIDTH
        assert 500 < height < 1600
        assert len(data) < LARGEST, file


def test_a_picture_keeps_its_pixels_when_it_gets_smaller(user: User):
    """The browser itself tells what it sees in both."""
    user.size(700, 400)
    user.open("/rules")
    taken = user.cdp("Page.captureScreenshot", format="png")["data"]
    small = png.small(b64decode(taken))
    assert len(small) < len(b64decode(taken))
    seen = [user.driver.execute_async_script(PIXELS, each) for each in (taken, b64encode(small).decode())]
    assert len(seen[0]) > 1000
    worst = [max(abs(one[at] - other[at]) for at in range(4)) for one, other in zip(*seen, strict=True)]
    assert sum(worst) / len(worst) < 0.5
    assert sum(each > 16 for each in worst) < len(worst) / 100
