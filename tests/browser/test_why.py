"""The page about a waiting pod: chosen by keyboard, drawn, and on a phone."""

from selenium.webdriver import Keys
from selenium.webdriver.support.select import Select

from tests.browser.user import User

POD = "select[name=pod]"


def test_a_pod_is_chosen_by_keyboard_and_drawn(user: User):
    user.open("/why")
    Select(user.find(POD)).select_by_visible_text("team-c/finetune-0")
    user.find(POD).send_keys(Keys.TAB)
    user.press(Keys.ENTER)
    user.sees("Does not fit now", "#result .verdict h2")
    user.sees("once team-b/train-1 has ended it fits on gpu-b")
    drawn = user.driver.find_elements("css selector", "#result svg.drawing, #result .drawing svg")
    assert len(drawn) == 4
    assert user.driver.execute_script("return document.querySelector('#result .shape .mono').textContent") == "gpu-b"


def test_a_manifest_is_pasted(user: User):
    user.open("/why")
    user.click(".paste summary")
    limits = "{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 9000}"
    container = f"{{name: c, resources: {{limits: {limits}}}}}"
    user.write(
        "#manifest", f"{{apiVersion: v1, kind: Pod, metadata: {{name: mine}}, spec: {{containers: [{container}]}}}}"
    )
    user.click(".paste button")
    user.sees("Fits now", "#result .verdict h2")


def test_a_phone_shows_it_without_scrolling_sideways(user: User):
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    user.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        user.open("/why?pod=team-c/finetune-0")
        assert user.driver.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        user.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
