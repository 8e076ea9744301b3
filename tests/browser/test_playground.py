"""The playground: a change shows its answer by itself; without JavaScript, by the button."""

from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.browser.console import SAMPLES
from tests.browser.user import User

EDITOR = "#manifest"
VERDICT = "#result .verdict h2"
REFUSED = (SAMPLES / "pod-refused.yaml").read_text()
NINE = "{name: c, resources: {limits: {volcano.sh/vgpu-number: 9}}}"
TOO_MANY = f"{{apiVersion: v1, kind: Pod, metadata: {{name: nine}}, spec: {{containers: [{NINE}]}}}}"
REVIEW = "//button[text()='Review']"


def editor(user: User) -> str:
    return user.find(EDITOR).get_property("value")


def review(user: User) -> None:
    user.driver.find_element(By.XPATH, REVIEW).click()


@pytest.fixture
def somebody(user: User) -> User:
    """In the playground, which begins with a pod that is repaired."""
    user.open("/")
    assert "Repaired" in user.text(VERDICT)
    user.requests()
    return user


def test_what_one_types_is_answered_without_a_click(somebody: User):
    somebody.write(EDITOR, TOO_MANY)
    somebody.sees("Refused", VERDICT)
    somebody.sees("card-count")
    assert "nine" in somebody.text("#result .about")
    posts = [request for request in somebody.requests() if request[0] == "POST"]
    assert 1 <= len(posts) <= 5  # one after a pause, not one a key
    somebody.press(Keys.BACKSPACE)
    somebody.sees("Cannot be reviewed")
    somebody.press("}")
    somebody.sees("card-count")
    somebody.forgive(422)


def test_control_enter_reviews_at_once(somebody: User):
    somebody.click(EDITOR)
    somebody.chord(Keys.CONTROL, Keys.ENTER)
    somebody.until(lambda: ("POST", f"{somebody.address}/") in somebody.requests())
    somebody.sees("Repaired", VERDICT)


def test_an_example_fills_the_editor_unless_something_was_typed(somebody: User):
    chooser = Select(somebody.find("select[name=example]"))
    chooser.select_by_visible_text("a pod that is refused")
    somebody.sees("Refused", VERDICT)
    assert editor(somebody).strip() == REFUSED.strip()
    somebody.click(EDITOR)
    somebody.press("# mine")
    chooser.select_by_visible_text("a pod that is repaired")
    assert "# mine" in editor(somebody)
    somebody.click("form[data-examples] button")
    somebody.sees("Repaired", VERDICT)
    assert "# mine" not in editor(somebody)


def test_the_list_names_no_example_once_something_is_typed(somebody: User):
    chooser = Select(somebody.find("select[name=example]"))
    assert chooser.first_selected_option.text == "a pod that is repaired"
    somebody.click("#manifest")
    somebody.press("#")
    somebody.until(lambda: chooser.first_selected_option.text == "your own manifest")


def test_tab_indents_and_leaves_after_escape(somebody: User):
    somebody.write(EDITOR, "a:")
    somebody.press(Keys.ENTER, Keys.TAB, "b: 1")
    assert editor(somebody) == "a:\n  b: 1"
    somebody.press(Keys.ESCAPE, Keys.TAB)
    assert somebody.focused.text == "Review"
    assert editor(somebody) == "a:\n  b: 1"
    somebody.chord(Keys.SHIFT, Keys.TAB)
    assert somebody.focused.get_attribute("id") == "manifest"


def test_the_nodes_are_drawn_with_the_slices(somebody: User):
    drawing = somebody.find("#result .shape svg.drawing")
    assert drawing.size["width"] > 100
    assert drawing.size["height"] > 60
    assert "jupyter" in drawing.find_element(By.CSS_SELECTOR, "desc").get_attribute("textContent")
    slices = drawing.find_elements(By.CSS_SELECTOR, "[class*=d-p] rect")
    assert slices[0].size["height"] > 5
    somebody.paste(EDITOR, TOO_MANY)
    somebody.sees("never", "#result .shape .placement.bad")


def test_findings_are_marked_at_the_lines_of_the_author(somebody: User):
    somebody.paste(EDITOR, REFUSED)
    somebody.sees("Refused", VERDICT)
    lines = REFUSED.splitlines()
    marked = {lines[int(number) - 1].strip() for number in somebody.until(lambda: somebody.texts("[data-gutter] span"))}
    assert {"volcano.sh/vgpu-mode: HAMi-core", "volcano.sh/vgpu-cores: 150"} <= marked
    assert somebody.text("[data-gutter]").split()[-1] == str(len(REFUSED.split("\n")))
    somebody.follow(f"line {lines.index('        volcano.sh/vgpu-cores: 150') + 1}")
    selected = "const e = document.activeElement; return e.value.slice(e.selectionStart, e.selectionEnd)"
    assert somebody.js(selected).strip() == "volcano.sh/vgpu-cores: 150"


def test_a_link_carries_the_manifest_and_never_sends_it(somebody: User):
    somebody.click("details.options summary")
    somebody.write("textarea[name=settings]", "rules.card-count=warn")
    somebody.paste(EDITOR, f"# Grüße\n{TOO_MANY}")
    somebody.sees("with 1 warning", VERDICT)
    somebody.click("[data-share]")
    link = somebody.until(lambda: "#" in somebody.driver.current_url and somebody.driver.current_url)
    somebody.open("/rules")
    somebody.requests()
    somebody.driver.get(link)
    somebody.sees("with 1 warning", VERDICT)
    assert editor(somebody) == f"# Grüße\n{TOO_MANY}"
    assert somebody.find("textarea[name=settings]").is_displayed()
    assert all("review=" not in address.partition("#")[0] for _, address in somebody.requests())
    somebody.click(EDITOR)
    somebody.press("#")
    somebody.until(lambda: somebody.path == "/")  # the address no longer holds what is shown
    somebody.driver.get(link[:-20])
    somebody.sees("damaged or cut off", "[data-shared]")


def test_a_mistake_in_a_setting_is_shown_beside_it_while_one_types(somebody: User):
    somebody.click("details.options summary")
    somebody.write("textarea[name=settings]", "rules.nothing=deny")
    somebody.sees("no rule is called 'nothing'", "#mistake-settings")
    assert somebody.find("textarea[name=settings]").get_attribute("aria-invalid") == "true"
    somebody.write("textarea[name=settings]", "rules.card-count=deny")
    somebody.until(lambda: somebody.text("#mistake-settings") == "")
    assert somebody.find("textarea[name=settings]").get_attribute("aria-invalid") == "false"
    somebody.forgive(422)


def test_a_setting_is_tried_out(somebody: User):
    somebody.paste(EDITOR, TOO_MANY)
    somebody.sees("Refused", VERDICT)
    somebody.click("details.options summary")
    somebody.write("textarea[name=settings]", "rules.card-count=warn")
    somebody.sees("with 1 warning", VERDICT)


def test_a_file_is_put_into_the_editor(somebody: User, tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(REFUSED)
    somebody.click("details.options summary")
    somebody.find("input[type=file]").send_keys(str(file))
    somebody.sees("Refused", VERDICT)
    assert editor(somebody) == REFUSED
    file.write_bytes(b"#" * (2 << 20))
    somebody.find("input[type=file]").send_keys(str(file))
    message = "return document.querySelector('input[type=file]').validationMessage"
    assert "larger than" in somebody.until(lambda: somebody.js(message))
    assert editor(somebody) == REFUSED


def test_without_javascript_the_button_does_the_same(user: User, tmp_path: Path):
    user.scripts(run=False)
    user.open("/")
    user.paste(EDITOR, TOO_MANY)
    assert "Repaired" in user.text(VERDICT)
    review(user)
    user.sees("Refused", VERDICT)
    assert editor(user) == TOO_MANY
    Select(user.find("select[name=example]")).select_by_visible_text("a pod that is repaired")
    user.click("form[data-examples] button")
    user.sees("Repaired", VERDICT)
    file = tmp_path / "mine.yaml"
    file.write_text(REFUSED)
    user.click("details.options summary")
    user.find("input[type=file]").send_keys(str(file))
    review(user)
    user.sees("Refused", VERDICT)
    assert editor(user).strip() == REFUSED.strip()
