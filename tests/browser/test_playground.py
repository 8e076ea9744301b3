"""The playground reviews the manifest after each change; without JavaScript, the button does."""

from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.browser.user import User
from webhook.settings.sources import SAMPLES

EDITOR = "#manifest"
VERDICT = "#result .verdict h2"
REFUSED = (SAMPLES / "pod-refused.yaml").read_text()
NINE = "{name: c, resources: {limits: {volcano.sh/vgpu-number: 9}}}"
TOO_MANY = f"{{apiVersion: v1, kind: Pod, metadata: {{name: nine}}, spec: {{containers: [{NINE}]}}}}"
TYPED = """
const editor = document.getElementById("manifest");
editor.value = "";
for (const letter of arguments[0]) {
  editor.value += letter;
  editor.dispatchEvent(new Event("input", { bubbles: true }));
}
"""
REVIEW = "//button[text()='Review']"


def editor(user: User) -> str:
    return user.find(EDITOR).get_property("value")


def review(user: User) -> None:
    user.driver.find_element(By.XPATH, REVIEW).click()


@pytest.fixture
def playground(user: User) -> User:
    """A user on the playground, which begins with a pod that is repaired."""
    user.open("/")
    assert "Repaired" in user.text(VERDICT)
    user.requests()
    return user


def test_a_typed_manifest_is_reviewed_without_a_click(playground: User):
    playground.allow_error_statuses(422)
    playground.click(EDITOR)
    playground.chord(Keys.CONTROL, "a")
    playground.press(TOO_MANY)
    playground.sees("Refused", VERDICT)
    playground.sees("card-count")
    assert "nine" in playground.text("#result .about")
    playground.press(Keys.BACKSPACE)
    playground.sees("Cannot be reviewed")
    playground.press("}")
    playground.sees("card-count")


def test_keys_without_a_pause_between_them_are_one_review(playground: User):
    playground.js(TYPED, TOO_MANY)
    playground.sees("Refused", VERDICT)
    assert [method for method, _ in playground.requests() if method == "POST"] == ["POST"]


def test_control_enter_reviews_at_once(playground: User):
    playground.click(EDITOR)
    playground.chord(Keys.CONTROL, Keys.ENTER)
    playground.until(lambda: ("POST", f"{playground.address}/review") in playground.requests())
    playground.sees("Repaired", VERDICT)


def test_an_example_fills_the_editor_unless_the_user_typed(playground: User):
    chooser = Select(playground.find("select[name=example]"))
    assert chooser.first_selected_option.text == "a pod that is repaired"
    chooser.select_by_visible_text("a pod that is refused")
    playground.sees("Refused", VERDICT)
    assert editor(playground).strip() == REFUSED.strip()
    playground.click(EDITOR)
    playground.chord(Keys.CONTROL, Keys.END)  # where a comment changes nothing
    playground.press("# mine")
    playground.until(lambda: chooser.first_selected_option.text == "your own manifest")
    chooser.select_by_visible_text("a pod that is repaired")
    assert "# mine" in editor(playground)
    playground.click("form[data-examples] button")
    playground.sees("Repaired", VERDICT)
    assert "# mine" not in editor(playground)


def test_tab_indents_and_leaves_after_escape(playground: User):
    playground.allow_error_statuses(422)
    playground.write(EDITOR, "a:")
    playground.press(Keys.ENTER, Keys.TAB, "b: 1")
    assert editor(playground) == "a:\n  b: 1"
    playground.press(Keys.ESCAPE, Keys.TAB)
    assert playground.focused.text == "Review"
    assert editor(playground) == "a:\n  b: 1"
    playground.chord(Keys.SHIFT, Keys.TAB)
    assert playground.focused.get_attribute("id") == "manifest"


def test_the_nodes_are_drawn_with_the_slices(playground: User):
    drawing = playground.find("#result .shape .drawing")
    assert (drawing.size["width"] > 100, drawing.size["height"] > 60) == (True, True)
    assert "jupyter" in drawing.get_attribute("aria-label")
    assert drawing.find_elements(By.CSS_SELECTOR, ".d-part")[0].size["height"] > 5
    playground.write(EDITOR, TOO_MANY)
    playground.sees("never", "#result .shape .placement.bad")


def test_findings_are_marked_at_the_lines_of_the_manifest(playground: User):
    playground.write(EDITOR, REFUSED)
    playground.sees("Refused", VERDICT)
    lines, numbers = REFUSED.splitlines(), playground.until(lambda: playground.texts("[data-gutter] span"))
    marked = {lines[int(number) - 1].strip() for number in numbers}
    assert {"volcano.sh/vgpu-mode: HAMi-core", "volcano.sh/vgpu-cores: 150"} <= marked
    assert playground.text("[data-gutter]").split()[-1] == str(len(REFUSED.split("\n")))
    playground.follow(f"line {lines.index('        volcano.sh/vgpu-cores: 150') + 1}")
    selected = "const e = document.activeElement; return e.value.slice(e.selectionStart, e.selectionEnd)"
    assert playground.js(selected).strip() == "volcano.sh/vgpu-cores: 150"


def test_a_link_carries_the_manifest_and_never_sends_it(playground: User):
    playground.click("details.options summary")
    playground.write("textarea[name=settings]", "rules.card-count=warn")
    playground.write(EDITOR, f"# Grüße\n{TOO_MANY}")
    playground.sees("with 1 warning", VERDICT)
    playground.click("[data-share]")
    link = playground.until(lambda: "#" in playground.driver.current_url and playground.driver.current_url)
    playground.open("/rules")
    playground.requests()
    playground.driver.get(link)
    playground.sees("with 1 warning", VERDICT)
    assert editor(playground) == f"# Grüße\n{TOO_MANY}"
    assert playground.find("textarea[name=settings]").is_displayed()
    assert all("review=" not in address.partition("#")[0] for _, address in playground.requests())
    playground.click(EDITOR)
    playground.chord(Keys.CONTROL, Keys.HOME)
    playground.press("#")
    playground.until(lambda: playground.path == "/")  # the link is removed, since it has another manifest
    playground.driver.get(link[:-20])
    playground.sees("damaged or cut off", "[data-shared]")


def test_a_mistake_in_a_setting_is_shown_while_the_user_types(playground: User):
    playground.allow_error_statuses(422)
    playground.click("details.options summary")
    playground.write("textarea[name=settings]", "rules.nothing=deny")
    playground.sees("no rule is called 'nothing'", "#mistake-settings")
    assert playground.find("textarea[name=settings]").get_attribute("aria-invalid") == "true"
    playground.write("textarea[name=settings]", "rules.card-count=deny")
    playground.until(lambda: playground.text("#mistake-settings") == "")
    assert playground.find("textarea[name=settings]").get_attribute("aria-invalid") == "false"


def test_a_file_is_put_into_the_editor(playground: User, tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(REFUSED)
    playground.click("details.options summary")
    playground.find("input[type=file]").send_keys(str(file))
    playground.sees("Refused", VERDICT)
    assert editor(playground) == REFUSED
    file.write_bytes(b"#" * (2 << 20))
    playground.find("input[type=file]").send_keys(str(file))
    message = "return document.querySelector('input[type=file]').validationMessage"
    assert "larger than" in playground.until(lambda: playground.js(message))
    assert editor(playground) == REFUSED


def test_without_javascript_the_button_does_the_same(user: User, tmp_path: Path):
    user.scripts(run=False)
    user.open("/")
    user.write(EDITOR, TOO_MANY)
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
