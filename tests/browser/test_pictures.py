"""The pictures in docs/images are those that `make screenshots` takes, and they are small."""

from tests.browser.screenshots import PICTURES, SHOWN

LARGEST = 150_000  # bytes


def test_the_pictures_are_those_that_the_target_takes():
    assert {file.name for file in PICTURES.glob("*.webp")} == {f"{name}.webp" for name in SHOWN}


def test_the_pictures_are_small():
    for file in PICTURES.glob("*.webp"):
        data = file.read_bytes()
        assert (data[:4], data[8:12]) == (b"RIFF", b"WEBP")
        assert 5_000 < len(data) < LARGEST, file
