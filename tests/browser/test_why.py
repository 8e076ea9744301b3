"""The page about waiting pods: listed, one chosen by keyboard and drawn, or pasted."""

from selenium.webdriver import Keys

from tests.browser.user import User

POD = ".waiting a"


def test_a_pod_is_chosen_by_keyboard_and_drawn(user: User):
    user.open("/why")
    user.sees("once team-b/train-1 has ended it fits on gpu-b", ".waiting td:last-child")
    user.find(POD).send_keys(Keys.ENTER)
    user.sees("Does not fit now", "#result .verdict h2")
    user.sees("once team-b/train-1 has ended it fits on gpu-b")
    drawn = user.driver.find_elements("css selector", "#result .drawing")
    assert len(drawn) == 4
    assert user.driver.execute_script("return document.querySelector('#result .shape .mono').textContent") == "gpu-b"
