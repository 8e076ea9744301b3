"""Manifests and addresses with scripts are shown as text; manifests that are too large are refused."""

import pytest

from tests.browser.test_playground import TOO_MANY, VERDICT, editor
from tests.browser.user import User
from webhook.texts import visible

SCRIPT = "<script>window.hacked=1;alert(1)</script>"
TEXTS = (
    SCRIPT,
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    '" autofocus onfocus="window.hacked=1',
    "javascript:window.hacked=1",
    f"</textarea>{SCRIPT}",
    f"</title></pre>{SCRIPT}",
    "{{7*7}}${7*7}",
    "safe\u202egnp.exe\u2066",
)
FILL = """
const editor = document.getElementById("manifest");
editor.value = arguments[0];
editor.dispatchEvent(new Event("input", { bubbles: true }));
"""
SENT_AS_A_PAGE = (
    "document.getElementById('manifest').value = arguments[0]; document.querySelector('form[data-live]').submit()"
)
# Elements and attributes that a manifest could inject; the page itself has none of them in a result.
BROUGHT = """
const found = [...document.querySelectorAll("#result *")].filter((each) =>
  ["SCRIPT", "IMG", "IFRAME", "OBJECT", "STYLE"].includes(each.tagName) ||
  each.getAttributeNames().some((name) => name.startsWith("on") || name === "autofocus" || name === "style") ||
  /^javascript:/i.test(each.getAttribute("href") ?? ""));
return [window.hacked ?? null, document.querySelectorAll("script").length, found.map((each) => each.outerHTML)];
"""


def hostile(text: str) -> str:
    """A pod with a text in each field, and with mistakes for which the webhook quotes the text."""
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {quoted}
  namespace: {quoted}
  annotations: {{volcano.sh/vgpu-mode: {quoted}, {quoted}: {quoted}}}
spec:
  nodeSelector: {{{quoted}: {quoted}}}
  containers:
  - name: {quoted}
    image: {quoted}
    env: [{{name: CUDA_DISABLE_CONTROL, value: {quoted}}}]
    resources: {{limits: {{volcano.sh/vgpu-number: 9, volcano.sh/vgpu-cores: {quoted}, {quoted}: {quoted}}}}}
  - name: second
    resources: {{limits: {{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 3000}}}}
"""


@pytest.mark.parametrize("send", [FILL, SENT_AS_A_PAGE], ids=["by the script of the page", "as a form"])
def test_hostile_text_is_text(user: User, send: str):
    """A pod with each text, all at once."""
    user.open("/")
    scripts = user.js(BROUGHT)[1]
    manifest = "---\n".join(map(hostile, TEXTS))
    user.js(send, manifest)
    user.until(lambda: len(user.all(VERDICT)) == len(TEXTS))
    assert all("Refused" in verdict for verdict in user.texts(VERDICT))
    for part in ("#result .about", "#result .listing"):
        shown = user.texts(part)
        assert [text for text, of_it in zip(TEXTS, shown, strict=True) if visible(text) not in of_it] == []
    assert user.js(BROUGHT) == [None, scripts, []]
    assert "\u202e" not in user.text("#result")
    assert editor(user) == manifest


def test_hostile_text_in_an_address_is_text(user: User):
    user.allow_error_statuses(400, 404)
    for path in ("/?example=", "/rules/", "/rules?namespace=", "/fleet?name=", "/decisions?user=", "/decisions?since="):
        user.open(path + "%3Cimg%20src=x%20onerror=window.hacked=1%3E%22%20autofocus%20onfocus=%22window.hacked=1")
        assert user.js("return window.hacked ?? null") is None
        assert user.all("main img") == []


def test_too_large_manifests_are_refused_and_the_page_still_works(user: User):
    user.allow_error_statuses(413, 422)
    user.open("/")
    lines = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}' if n else 'x'] * 9)}]" for n in range(30)]
    large = "# " + "x" * (4 << 20)
    refusals = {large: "less than 3 MiB", "\n".join(lines): "Cannot be reviewed", "[" * 100_000: "nested"}
    for manifest, refusal in refusals.items():
        user.js(FILL, manifest)
        user.sees(refusal)
        user.js(FILL, TOO_MANY)
        user.sees("Refused", VERDICT)
