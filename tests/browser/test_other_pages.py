"""The pages of the fleet, of waiting pods, and of the health."""

from selenium.webdriver import Keys

from tests.browser.user import User


def test_a_search_in_the_fleet_leaves_the_nodes_that_match(user: User):
    user.open("/fleet")
    whole = user.text("#result")
    assert "gpu-a" in whole
    assert "gpu-b" in whole
    user.write("input[name=search]", "gpu-b")
    user.until(lambda: "gpu-a" not in user.text("#result"))
    assert "gpu-b" in user.text("#result .family table")
    user.write("input[name=search]", "nothing-like-it")
    user.sees("No node matches")
    user.follow("Clear the filters")
    assert user.text("#result .family") in whole


def test_the_fleet_shows_who_holds_what_by_mouse_and_by_keyboard(user: User):
    user.open("/usage")
    titles = user.js("return [...document.querySelectorAll('.node .held [title]')].map((each) => each.title)")
    assert any(title.startswith("team-a/train-0, container worker, 40000 MiB") for title in titles)
    user.js("document.querySelector('#list').scrollIntoView()")
    node = user.driver.find_element("xpath", "//details[.//strong[text()='gpu-b']]")
    user.js("arguments[0].querySelector('summary').focus()", node)
    user.press(Keys.ENTER)
    assert "team-b/train-1" in node.text
    identity = node.get_attribute("id")
    user.js("document.getElementById('result').dataset.version = 'another'")  # as if the pods on the nodes had changed
    user.until(lambda: user.find("#result").get_attribute("data-version") != "another")
    assert user.find(f"#{identity}").get_attribute("open")
    assert user.js("return document.activeElement.closest('details')?.id") == identity
    user.click(".more summary")
    user.write("input[name=namespace]", "team-c")
    user.until(lambda: {each.split()[-1] for each in user.texts(".node strong")} == {"npu-a", "share-a"})
    user.click(".heads a:nth-child(3)")
    user.until(lambda: user.texts(".node strong")[0].endswith("share-a"))
    assert "sort=fullest" in user.path
    assert user.find("input[name=namespace]").is_displayed()  # it is in use
    user.follow("Empty nodes")
    assert user.all(".family")


def test_a_table_is_sorted_by_its_heads(user: User):
    user.open("/fleet")
    table = ".family:first-of-type [data-sortable]:not(.types)"
    memory = f"{table} th:nth-child(5) button"
    cells = f"{table} td:nth-child(5)"
    user.find(memory).send_keys(Keys.ENTER)
    found = [int(text.split()[0].replace(",", "")) for text in user.texts(cells)]
    assert len(found) == 4
    assert found == sorted(found)
    assert user.find(f"{table} th[aria-sort]").get_attribute("aria-sort") == "ascending"
    user.click(memory)
    assert [int(text.split()[0].replace(",", "")) for text in user.texts(cells)] == found[::-1]
    assert user.find(f"{table} th[aria-sort]").get_attribute("aria-sort") == "descending"
    user.write("input[name=search]", "gpu")
    user.until(lambda: not user.all("#family-ascend"))
    assert user.all(memory)  # also in the fresh result


def test_health_shows_the_results_of_the_doctor_and_refreshes(user: User):
    user.open("/health?wait=20")
    user.until(lambda: user.all(".lines dt") and not user.all("[data-looking]"))
    assert "certificate" in user.text(".parts").lower()
    summaries = user.all("details.group summary")
    closed = [each for each in summaries if not each.find_element("xpath", "..").get_attribute("open")]
    closed[0].click()
    assert all(text.strip() for text in user.texts("details.group[open] dd"))
    before = user.js("return document.querySelector('#result time')?.dateTime")
    user.driver.find_element("xpath", "//button[text()='Check again']").click()
    user.until(lambda: "refresh=true" in user.path and user.all(".lines dt"))
    assert before
    user.until(lambda: user.js("return document.querySelector('#result time')?.dateTime") >= before)


def test_a_pod_that_waits_is_chosen_by_keyboard_and_drawn(user: User):
    user.open("/why")
    user.sees("once team-b/train-1 has ended it fits on gpu-b", ".waiting td:last-child")
    user.find(".waiting a").send_keys(Keys.ENTER)
    user.sees("Does not fit now", "#result .verdict h2")
    user.sees("once team-b/train-1 has ended it fits on gpu-b")
    assert len(user.all("#result .drawing")) == 4
    assert user.js("return document.querySelector('#result .shape .mono').textContent") == "gpu-b"
