"""The OpenAPI 3.1 document describes every operation of the API and no other."""

import json
import re
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from urllib.parse import urlencode

import pytest
from jsonschema import Draft202012Validator

import webhook
from tests.cases import each_case
from tests.console.conftest import Fixed, followed, sample_parts, sample_sources
from tests.console.pages import Page
from webhook.audit.follower import LogFollower
from webhook.console.app import create_app, pages, sections
from webhook.console.pages import PREFIX, Section, to_json
from webhook.console.state import ConsoleState
from webhook.output.json import ResponseModel
from webhook.settings.sources import SAMPLES

QUESTIONS = [question.replace("-", "_") for question in sections()]
OF_QUESTIONS = [import_module(f"tests.questions.{question}.requests") for question in QUESTIONS]
REQUESTS = {name: requests for each in OF_QUESTIONS for name, requests in each.REQUESTS.items()}
INVALID = [case for each in OF_QUESTIONS for case in getattr(each, "INVALID", [])]
CASES = [
    (each, method, parameters)
    for each in pages()
    for method in each.methods
    for parameters in REQUESTS.get(each.name, [])
]
PAGES = {"start", *[each.name for each in pages()]}
TEMPLATES = [*Path(webhook.__file__).parent.rglob("*.html")]
LINKED = {name for file in TEMPLATES for name in re.findall(r"'pages\.(\w+)'", file.read_text())}
GONE = LINKED - PAGES
GETS = [each for each in pages() if "GET" in each.methods]
POSTS = [each for each in pages() if "POST" in each.methods]


@pytest.fixture(scope="module")
def client():
    follower = LogFollower(str(SAMPLES / "audit.jsonl"))
    follower.look()
    settings = Fixed(sample_parts())
    files = {"certificate": SAMPLES / "fleet.yaml", "given": {"doctor_from": SAMPLES / "cluster"}}  # the first is none
    state = ConsoleState(settings, follower, followed(replace(sample_sources(settings), **files)))
    yield create_app(state).test_client()
    follower.stop()


@pytest.fixture(scope="module")
def document(client):
    return client.get(f"{PREFIX}/openapi.json").json


def operations_of(document):
    return [(path, method, found) for path, item in document["paths"].items() for method, found in item.items()]


def send(client, each, parameters, method=None, prefix=PREFIX):
    path = each.path
    left = dict(parameters)
    for name in re.findall(r"<(?:\w+:)?(\w+)>", path):
        path = re.sub(rf"<(?:\w+:)?{name}>", str(left.pop(name)), path)
    if (method or each.methods[0]) == "POST":
        return client.post(prefix + path, json=left)
    return client.get(f"{prefix}{path}?{urlencode(left, doseq=True)}")


def validator(document, schema):
    return Draft202012Validator({**schema, "components": document["components"]})


def test_there_are_requests_for_each_operation():
    assert set(REQUESTS) == {each.name for each in pages()}, "they are in requests.py beside the tests of the question"


def test_the_document_is_valid_openapi(document):
    assert document["openapi"].startswith("3.1.")
    assert document["info"].keys() >= {"title", "version"}
    assert document["servers"] == [{"url": PREFIX}]
    for path, method, found in operations_of(document):
        assert path.startswith("/")
        assert method in ("get", "post")
        assert found["summary"]
        assert found["responses"].keys() == {"200", "default"}
        for response in found["responses"].values():
            assert response["description"]
            assert response["content"]["application/json"]["schema"]
        assert ("requestBody" in found) == (method == "post")
        named = set(re.findall(r"{(\w+)}", path))
        parameters = found.get("parameters", [])
        assert {each["name"] for each in parameters if each["in"] == "path"} == named
        assert len({each["name"] for each in parameters}) == len(parameters)
        for each in parameters:
            assert each["in"] in ("path", "query")
            assert each["required"] is True or each["in"] == "query"
            assert each["description"], f"{path}: {each['name']} has no description"
            Draft202012Validator.check_schema(each["schema"])


def test_operation_ids_are_unique_camel_case(document):
    ids = [found["operationId"] for _, _, found in operations_of(document)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z][A-Za-z]*", each) for each in ids)


def test_every_schema_is_valid_and_used_and_every_reference_has_one(document):
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)))
    assert references == {f"#/components/schemas/{name}" for name in schemas}


def test_the_document_has_every_route_and_no_other(client, document):
    routes = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule.removeprefix(PREFIX)), method.lower())
        for rule in client.application.url_map.iter_rules()
        if rule.rule.startswith(PREFIX)
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, method, _ in operations_of(document)}
    assert routes == described | {("/openapi.json", "get")}


@each_case(("each", "method", "parameters"), CASES, ids=[f"{each.name}-{at}" for at, (each, *_) in enumerate(CASES)])
def test_responses_match_their_schema(client, document, each, method, parameters):
    found = send(client, each, parameters, method)
    assert found.status_code == 200, found.text
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", each.path)
    operation = document["paths"][path][method.lower()]
    validator(document, operation["responses"]["200"]["content"]["application/json"]["schema"]).validate(found.json)


@each_case(("each", "parameters"), [(each, sent) for each, _, sent in CASES if each.template and each in GETS])
def test_a_page_leads_to_its_json_and_to_pages_that_exist(client, each, parameters):
    page = Page(send(client, each, parameters, "GET", prefix="").text)
    targets = [element["href"] for element in page.all("a") if "href" in element]
    targets += [element.get("action", "") for element in page.all("form")]
    assert [each for each in targets if each.startswith(f"{PREFIX}/")]
    assert "#" not in targets or GONE


def test_a_link_names_a_page():
    """One to a question that was removed is `#`; a name that is nearly that of a page is a mistake."""
    assert {name: get_close_matches(name, PAGES, cutoff=0.7) for name in GONE} == {name: [] for name in GONE}


def test_no_two_models_share_a_name(document):
    """Two models of one name would get the path of their modules as a prefix, with `__`."""
    assert [name for name in document["components"]["schemas"] if "__" in name] == []


def test_each_parameter_is_used(document):
    for each in pages():
        fields = {field.alias or name for name, field in each.parameters.model_fields.items()}
        used = {key for parameters in REQUESTS[each.name] for key in parameters}
        if "GET" in each.methods:
            assert used == fields, each.name
        else:
            assert used <= fields, each.name


@pytest.mark.parametrize("each", pages(), ids=[each.name for each in pages()])
def test_an_unknown_parameter_is_refused(client, document, each):
    parameters = {**REQUESTS[each.name][0], "nonsense": "1"}
    found = send(client, each, parameters)
    assert found.status_code == 400
    assert "nonsense: no such key" in found.json["message"]
    validator(document, {"$ref": "#/components/schemas/Problem"}).validate(found.json)


@pytest.mark.parametrize("each", GETS, ids=lambda each: each.name)
def test_a_repeated_parameter_is_refused(client, each):
    path = re.sub(r"<int:\w+>", "1", each.path)
    path = re.sub(r"<\w+>", "cores-range", path)
    single = [
        field.alias or name
        for name, field in each.parameters.model_fields.items()
        if not str(field.annotation).startswith("tuple")
    ]
    for name in single:
        found = client.get(f"{PREFIX}{path}?{name}=1&{name}=2")
        assert found.status_code == 400, name
        assert name in found.json["message"]


@each_case("each", [each for each in GETS if each.path.endswith(">")], ids=lambda each: each.name)
def test_path_parameters_come_from_the_path_only(client, each):
    (parameter,) = re.findall(r"<(?:\w+:)?(\w+)>", each.path)
    found = client.get(f"{PREFIX}{re.sub('<.*>', '1', each.path)}?{parameter}=other")
    assert found.status_code == 400
    assert "the path names it already" in found.json["message"]


@each_case(("path", "start"), INVALID)
def test_an_invalid_parameter_is_named(client, path, start):
    found = client.get(PREFIX + path)
    assert found.status_code == 400
    assert found.json["message"].startswith(start)


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"null", "application/json", 400),
        (b'{"manifest": 1}', "application/json", 400),
        (b'{"manifest": NaN}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"a":' * 100_000, "application/json", 400),
        (b"\xff\xfe{}", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "application/x-www-form-urlencoded", 415),
        (b"{}", "multipart/form-data", 415),
        (b"{}", "", 415),
    ],
)
def test_an_invalid_body_is_refused(client, content, content_type, status):
    """No operation accepts a content type that a form of another site can send without a preflight request."""
    for each in POSTS:
        found = client.post(PREFIX + each.path, data=content, content_type=content_type)
        if each.name == "review" or content != b"{}":
            assert found.status_code == status, each.name
            assert found.json["message"]


def test_any_text_and_any_number_can_be_encoded():
    class Hostile(ResponseModel):
        text: str
        number: int

    found = json.loads(to_json(Hostile(text="\ud800", number=10**30).model_dump(mode="json")))
    assert found == {"text": "\ud800", "number": 10**30}


def test_long_texts_and_lists_are_cut_unless_the_response_is_whole():
    class Long(ResponseModel):
        texts: list[dict[str, str]]

    response = Long(texts=[{"k" * 3000: "x" * 3000}] * 1001).model_dump(mode="json")
    found = json.loads(to_json(response))["texts"]
    assert found == [{"k" * 1999 + "…": "x" * 1999 + "…"}] * 1000
    assert json.loads(to_json(response, ["texts"])) == response
    whole = {
        "playground": ("documents",),
        "review": ("documents",),
        "decision": ("decision",),
        "replay": ("before", "after", "gained", "lost"),
        "rule": ("text", "example"),
        "policy": ("text",),
    }
    assert {each.name: each.whole for each in pages() if each.whole} == {
        name: parts for name, parts in whole.items() if name in REQUESTS
    }


def test_a_page_that_returns_no_object_is_refused_when_it_is_registered():
    def listing(_state: ConsoleState) -> list[int]:
        return []

    with pytest.raises(TypeError, match="listing must return a ResponseModel"):
        Section().page("/listing")(listing)
