"""The service as a client sees it, over ASGI without a socket."""

import gzip
from base64 import urlsafe_b64encode
from urllib.parse import quote

import httpx
import pytest
from jsonschema import Draft202012Validator
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from orchestrator.failure.kinds import Action, Category
from orchestrator.incident.record import Record, Severity
from orchestrator.metrics import MetricsObserver
from orchestrator.service.app import LOOPBACK_HOSTS, create_app
from orchestrator.service.incidents import Incidents

pytestmark = pytest.mark.anyio


def record(incident_id, revision=1, **changes):
    fields = {
        "category": Category.SERVICE,
        "severity": Severity.WARNING,
        "title": "The model is overloaded. Trying again.",
        **changes,
    }
    return Record(incident_id, revision, **fields)


def kept(*ids, active=()):
    incidents = Incidents()
    for incident_id in ids:
        incidents.apply(record(incident_id))
    incidents.active = lambda: [incidents.get(name).record for name in active]
    return incidents


def client_of(app, **options):
    transport = httpx.ASGITransport(app, **options)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9464")


@pytest.fixture
async def client():
    incidents = kept("a:error", "b:error", "c:error", active=("b:error",))
    app = create_app(MetricsObserver(), incidents=incidents, hosts=LOOPBACK_HOSTS)
    async with client_of(app) as opened:
        yield opened


def problem(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == "about:blank"
    return body


async def test_the_process_says_that_it_is_alive(client):
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_it_is_ready_when_nothing_speaks_against_it(client):
    assert (await client.get("/readyz")).json() == {"status": "ready"}


async def test_not_ready_is_a_503_with_each_reason():
    reasons = ("The sink log was switched off.", "No settings were loaded.")
    async with client_of(create_app(MetricsObserver(), not_ready=lambda: reasons)) as client:
        body = problem(await client.get("/readyz"))
    assert (body["status"], body["code"], body["reasons"]) == (503, "not_ready", list(reasons))


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", plain_text),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8", plain_text),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
            openmetrics,
        ),
    ],
)
async def test_the_series_come_in_the_format_that_was_asked_for(
    client, accept, content_type, parse
):
    answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"] == content_type
    names = {family.name for family in parse(answer.text)}
    assert "orchestrator_turns_pending" in names


async def test_a_scrape_is_packed_only_for_a_client_that_can_unpack_it(client):
    packed = await client.get("/metrics", headers={"accept-encoding": "gzip"})
    plain = await client.get("/metrics", headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text
    assert len(gzip.compress(plain.content)) < len(plain.content) / 5


@pytest.mark.parametrize("asked", ["gzip;q=0", "gzip; q=0.000, br", "x-gzip", "identity", "br"])
async def test_a_scrape_is_not_packed_for_a_client_that_refuses_it(client, asked):
    answer = await client.get("/metrics", headers={"accept-encoding": asked})
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    "asked",
    [
        "application/openmetrics-text; version=abc",
        "application/openmetrics-text; version=1.x",
        "text/plain; version=one",
        ";;,=",
    ],
)
async def test_a_format_that_nobody_knows_still_gets_the_series(client, asked):
    answer = await client.get("/metrics", headers={"accept": asked})
    assert answer.status_code == 200
    assert "orchestrator_turns_total" in answer.text


async def test_incidents_are_listed_in_the_order_they_first_appeared(client):
    body = (await client.get("/v1/incidents")).json()
    assert [row["id"] for row in body["incidents"]] == ["a:error", "b:error", "c:error"]
    assert [row["active"] for row in body["incidents"]] == [False, True, False]
    assert body["next_cursor"] is None


@pytest.mark.parametrize(
    ("active", "ids"), [("true", ["b:error"]), ("false", ["a:error", "c:error"])]
)
async def test_active_selects_by_what_the_ledgers_say(client, active, ids):
    body = (await client.get("/v1/incidents", params={"active": active})).json()
    assert [row["id"] for row in body["incidents"]] == ids


async def test_a_cursor_leads_through_all_pages_and_keeps_its_place_when_more_arrive():
    incidents = kept(*(f"{n}:error" for n in range(5)))
    async with client_of(create_app(MetricsObserver(), incidents=incidents)) as client:
        first = (await client.get("/v1/incidents", params={"limit": 2})).json()
        incidents.apply(record("5:error"))
        incidents.apply(record("0:error", 2))
        seen, cursor = [row["id"] for row in first["incidents"]], first["next_cursor"]
        while cursor:
            page = (await client.get("/v1/incidents", params={"limit": 2, "cursor": cursor})).json()
            seen += [row["id"] for row in page["incidents"]]
            cursor = page["next_cursor"]
    assert seen == [f"{n}:error" for n in range(6)]


async def test_a_page_that_ends_with_the_last_incident_has_no_cursor(client):
    body = (await client.get("/v1/incidents", params={"limit": 3})).json()
    assert (len(body["incidents"]), body["next_cursor"]) == (3, None)


ENDLESS = urlsafe_b64encode(b"after:" + b"9" * 5_000).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor", ["zz", "YWZ0ZXI6", "YWZ0ZXI6LTE", "\u00e9", "YmVmb3JlOjE", ENDLESS]
)
async def test_a_cursor_that_was_not_given_out_is_refused(client, cursor):
    body = problem(await client.get("/v1/incidents", params={"cursor": cursor}))
    assert (body["status"], body["code"], body["field"]) == (400, "bad_cursor", "cursor")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("limit", "0", "a whole number from 1 to 500 is allowed"),
        ("limit", "501", "a whole number from 1 to 500 is allowed"),
        ("limit", "many", "a whole number from 1 to 500 is allowed"),
        ("active", "maybe", "true or false is allowed"),
    ],
)
async def test_a_parameter_out_of_range_is_named_with_what_is_allowed(client, name, value, allowed):
    body = problem(await client.get("/v1/incidents", params={name: value}))
    assert (body["status"], body["code"], body["field"]) == (400, "bad_parameter", name)
    assert body["detail"].endswith(allowed)


@pytest.mark.parametrize(
    "path", ["/metrics", "/healthz", "/readyz", "/v1/incidents", "/openapi.json", "/nowhere"]
)
async def test_head_answers_as_get_does_without_the_body(client, path):
    asked, head = await client.get(path), await client.head(path)
    assert head.status_code == asked.status_code
    assert head.headers["content-type"] == asked.headers["content-type"]
    assert head.headers["content-length"] == asked.headers["content-length"]
    assert (head.content, bool(asked.content)) == (b"", True)


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/v1/incidents", "/v1/incidents/x"])
async def test_what_a_path_takes_is_told_to_who_asks_and_to_who_asks_for_more(client, path):
    options, refused = await client.options(path), await client.post(path)
    assert options.status_code == 204
    assert problem(refused)["code"] == "method_not_allowed"
    assert options.headers["allow"] == refused.headers["allow"] == "GET, HEAD, OPTIONS"


async def test_one_incident_shows_how_it_was_told():
    incidents = kept("a:error", active=("a:error",))
    incidents.apply(
        record("a:error", 2, severity=Severity.ERROR, title="No.", actions=(Action.RETRY,))
    )
    async with client_of(create_app(MetricsObserver(), incidents=incidents)) as client:
        body = (await client.get("/v1/incidents/a:error")).json()
    told = [(r["revision"], r["severity"], r["actions"], r["active"]) for r in body["revisions"]]
    assert body["active"] is True
    assert told == [(1, "warning", [], False), (2, "error", ["retry"], True)]


@pytest.mark.parametrize("name", ["chat/7:error", "two words:error", "was?:error", "50%2F:error"])
async def test_an_incident_is_found_whatever_its_host_calls_a_turn(name):
    async with client_of(create_app(MetricsObserver(), incidents=kept(name))) as opened:
        listed = (await opened.get("/v1/incidents")).json()["incidents"][0]["id"]
        answer = await opened.get(f"/v1/incidents/{quote(listed, safe='')}")
        assert (answer.status_code, answer.json()["id"]) == (200, name)


async def test_an_unknown_incident_is_a_problem_with_its_own_code(client):
    body = problem(await client.get("/v1/incidents/nobody:error"))
    assert (body["status"], body["code"]) == (404, "incident_not_found")


async def test_an_unknown_path_is_a_problem_too(client):
    body = problem(await client.get("/nowhere"))
    assert (body["status"], body["code"]) == (404, "not_found")


async def test_a_method_that_a_path_does_not_take_is_a_problem_that_names_those_it_does(client):
    answer = await client.post("/healthz")
    assert problem(answer)["code"] == "method_not_allowed"
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", ""]
)
async def test_a_page_elsewhere_can_not_reach_a_service_on_loopback_by_another_name(client, host):
    body = problem(await client.get("/v1/incidents", headers={"host": host}))
    assert (body["status"], body["code"]) == (421, "host_not_allowed")


@pytest.mark.parametrize(
    "host", ["localhost:9464", "LOCALHOST", "[::1]:9464", "[::1]", "127.0.0.1"]
)
async def test_every_name_of_loopback_is_answered(client, host):
    assert (await client.get("/healthz", headers={"host": host})).status_code == 200


async def test_a_failure_inside_tells_the_client_nothing_and_the_log_everything(caplog):
    def broken():
        raise RuntimeError("secret-of-the-house")

    async with client_of(
        create_app(MetricsObserver(), not_ready=broken), raise_app_exceptions=False
    ) as client:
        answer = await client.get("/readyz")
    assert problem(answer)["code"] == "internal"
    assert "secret-of-the-house" not in answer.text
    assert "secret-of-the-house" in caplog.text


async def test_mounting_it_leaves_the_logging_of_its_host_alone():
    import logging

    before = list(logging.getLogger().handlers)
    create_app(MetricsObserver())
    assert logging.getLogger().handlers == before


async def test_it_answers_below_the_path_where_it_is_mounted():
    inner = create_app(MetricsObserver())

    async def outer(scope, receive, send):
        await inner({**scope, "root_path": "/retries"}, receive, send)

    async with client_of(outer) as client:
        assert (await client.get("/retries/healthz")).json() == {"status": "ok"}
        assert (await client.get("/retries/v1/incidents")).json()["incidents"] == []


async def test_no_answer_may_be_stored_or_guessed_at(client):
    for path in ("/healthz", "/v1/incidents", "/metrics"):
        headers = (await client.get(path)).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


async def test_the_description_is_openapi_31_and_every_answer_keeps_to_it(client):
    described = (await client.get("/openapi.json")).json()
    assert described["openapi"] == "3.1.0"
    registry = Registry().with_resource(
        "urn:described", Resource.from_contents(described, default_specification=DRAFT202012)
    )
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    asked = {
        "/healthz": "/healthz",
        "/readyz": "/readyz",
        "/v1/incidents": "/v1/incidents",
        "/v1/incidents/{incident_id}": "/v1/incidents/a:error",
    }
    for template, path in asked.items():
        answer = await client.get(path)
        pointer = template.replace("/", "~1")
        where = f"urn:described#/paths/{pointer}/get/responses/200/content/application~1json/schema"
        Draft202012Validator({"$ref": where}, registry=registry).validate(answer.json())
    assert set(asked) | {"/metrics"} == set(described["paths"])


async def test_every_operation_describes_its_problems(client):
    described = (await client.get("/openapi.json")).json()
    answers = {
        path: set(operations["get"]["responses"]) for path, operations in described["paths"].items()
    }
    assert "503" in answers["/readyz"]
    assert "400" in answers["/v1/incidents"]
    assert "404" in answers["/v1/incidents/{incident_id}"]
    for codes in answers.values():
        assert "421" in codes
