"""What a console answers: the JSON of an operation, and the elements of a page."""

from html.parser import HTMLParser
from typing import Any

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(HTMLParser):
    """A parsed page, whose elements must be nested correctly: each with its `tag`, the `text` in it, and its attributes.

    `shown` is the text outside of editors; `values` has tag, name and value of each attribute, `kinds` each tag with them.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[dict[str, str]] = []
        self.text = self.shown = ""
        self.values: list[tuple[str, str, str]] = []
        self.kinds: set[tuple[str, tuple[str, ...]]] = set()
        self.comments: list[str] = []
        self._open: list[dict[str, str]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(self._added(tag, attrs))
        if tag in VOID:
            self._open.pop()

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self._added(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if not any(element["tag"] == "textarea" for element in self._open):
            self.shown += data
        for element in self._open:
            element["text"] += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str, classes: str = "") -> list[dict[str, str]]:
        """The elements of a kind that have these classes."""
        wanted = set(classes.split())
        return [each for each in self.elements if each["tag"] == tag and wanted <= set(each.get("class", "").split())]

    def one(self, tag: str, classes: str = "") -> dict[str, str]:
        (found,) = self.all(tag, classes)
        return found

    def links(self, start: str) -> list[str]:
        return [each["href"] for each in self.all("a") if each.get("href", "").startswith(start)]

    @property
    def shape(self) -> set[tuple[str, str]]:
        return {(tag, name) for tag, names in self.kinds for name in ("", *names)}

    def _added(self, tag: str, attrs: Any) -> dict[str, str]:
        attributes = {name: value or "" for name, value in attrs}
        self.values += [(tag, name, value) for name, value in attributes.items()]
        self.kinds.add((tag, tuple(sorted(attributes))))
        self.elements.append({**attributes, "tag": tag, "text": ""})
        return self.elements[-1]


def get_json(client: Any, path: str, status: int = 200, **query: Any) -> Any:
    response = client.get(f"/api/v1{path}", query_string=query or None)
    assert response.status_code == status, response.text
    return response.json
