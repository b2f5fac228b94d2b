"""What the user reads: the provider's own sentence, without what helps nobody."""

from __future__ import annotations

import pytest

from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import Kind
from orchestrator.failure.places import why
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.sentences import readable, sentences, shortened
from orchestrator.failure.verdict import Context, Phase
from orchestrator.failure.wording import MAX_TITLE


def kiro(data, message="Internal error"):
    return classify(RawFailure.acp_error(-32603, message, data), speaker="kiro")


def test_the_providers_sentence_is_the_title_and_a_request_id_stands_in_it_once():
    verdict = kiro(
        "Encountered an error in the response stream: You have reached your monthly usage limit "
        "(request_id: abcd-12)"
    )
    assert verdict.title == "You have reached your monthly usage limit (request id: abcd-12)"
    assert verdict.raw_detail == ""


def test_a_title_of_ours_leaves_the_frame_for_the_log():
    verdict = kiro("HTTP 503")
    assert verdict.title == "The model provider reported an internal error. Try again."
    assert verdict.raw_detail == '{"code":-32603,"message":"Internal error","data":"HTTP 503"}'


def test_a_reset_time_is_kept_verbatim():
    text = "You've hit your session limit · resets 12:50am (America/Los_Angeles)"
    assert classify(RawFailure.text_chunk(text)).title == text


def test_a_throttle_names_bedrock_only_for_kiro():
    assert "Bedrock" in kiro("ThrottlingException").title
    other = classify(RawFailure.acp_error(-32603, "Internal error", "ThrottlingException"))
    assert other.title.startswith("The model provider")


def test_a_long_text_gives_its_first_sentence_whole_and_all_of_it_in_details():
    said = "The prompt is too long for this model. " + "It has a great many words. " * 20
    verdict = classify(RawFailure.http(400, None, {"error": {"message": said}}))
    assert verdict.title == "The prompt is too long for this model."
    assert verdict.details == said.strip()


def test_a_text_without_an_end_of_sentence_is_cut_at_a_word():
    cut = shortened("word " * 100, MAX_TITLE)
    assert len(cut) <= MAX_TITLE
    assert cut.endswith("word…")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "API Error: 429 Slow down, please: too many requests were sent",
            "Slow down, please: too many requests were sent",
        ),
        (
            "litellm.RateLimitError: OpenAIException - Too many requests were sent today",
            "Too many requests were sent today",
        ),
        (
            "Error code: 400 - {'error': {'message': 'The request has no messages at all'}}",
            "The request has no messages at all",
        ),
        (
            'Some(Object {"error": Object {"message": String("The model is far too busy now")}})',
            "The model is far too busy now",
        ),
        ("✕ [API Error: The model is far too busy now]", "The model is far too busy now"),
        (
            "The model is far too busy now\n    at generate (/srv/app/cli.js:11:65501)\n    at x",
            "The model is far too busy now",
        ),
        (
            "The model is far too busy now · Retrying in 4 seconds… (attempt 4/10)",
            "The model is far too busy now",
        ),
        (
            "The model is far too busy now. Please run /login to sign in.",
            "The model is far too busy now.",
        ),
        (
            "The file /home/someone/private/notes.txt is far too large",
            "The file notes.txt is far too large",
        ),
        (
            "Cannot open C:\\Users\\someone\\notes.txt for reading it",
            "Cannot open notes.txt for reading it",
        ),
        (
            "The page https://api.example.com/v1/x gives the reason",
            "The page api.example.com gives the reason",
        ),
    ],
)
def test_envelopes_traces_counters_and_places_go(text, title):
    assert classify(RawFailure.exception_text(text)).title == title or readable(text) == title


def test_a_secret_never_reaches_a_title_or_the_log_line():
    key = "sk-ant-api03-" + "Ab1" * 20
    for raw in (
        RawFailure.acp_error(-32603, f"bad key {key} was sent to us", {"details": f"x {key}"}),
        RawFailure.http(
            401, {"authorization": f"Bearer {key}"}, {"error": {"message": f"no: {key}"}}
        ),
        RawFailure.exit(1, stderr=f"fatal: cannot use {key}"),
    ):
        verdict = classify(raw)
        assert key not in repr(verdict)


def test_a_network_title_leads_with_the_cause_and_names_the_host():
    dns = classify(RawFailure.exception_text("getaddrinfo ENOTFOUND api.example.com"))
    assert dns.title.startswith("The host name api.example.com could not be resolved.")
    refused = classify(RawFailure.exception_text("connect ECONNREFUSED 127.0.0.1:8080"))
    assert refused.title.startswith("Connection refused by 127.0.0.1:8080.")
    nobody = classify(RawFailure.exception_text("socket hang up"))
    assert nobody.title == "The connection to the model provider was lost. Try again."


def test_a_missing_command_is_named_without_its_folder():
    verdict = classify(RawFailure.exit(127, stderr="sh: /opt/bin/claude-agent-acp: not found"))
    assert verdict.title.startswith("The command claude-agent-acp was not found.")


def test_stderrs_transport_line_goes_before_its_boilerplate():
    stderr = (
        "ssh: Could not resolve hostname git.example.com: Name or service not known\n"
        "fatal: Could not read from remote repository.\n\n"
        "Please make sure you have the correct access rights\nand the repository exists."
    )
    assert why(stderr).startswith("ssh: Could not resolve hostname")
    raw = RawFailure.exit(128, stderr=stderr)
    verdict = classify(raw, context=Context(phase=Phase.START))
    assert verdict.kind is Kind.AGENT_START_FAILED
    assert "Could not resolve hostname git.example.com" in verdict.title


def test_the_reason_widens_the_message_and_never_changes_the_verdict():
    plain = classify(RawFailure.exit(1))
    told = classify(RawFailure.exit(1, stderr="Error: connect ECONNRESET"))
    assert told.kind is plain.kind is Kind.AGENT_DIED
    assert "ECONNRESET" in told.title


def test_npms_own_cause_line_is_shown():
    stderr = (
        "npm error code E404\nnpm error 404 Not Found - GET https://r.example.com/x\n"
        "npm error A complete log of this run can be found in: /x"
    )
    verdict = classify(RawFailure.exit(1, stderr=stderr))
    assert "404 Not Found" in verdict.title


def test_an_abbreviation_and_a_number_do_not_end_a_sentence():
    assert sentences("Check it (e.g. quota). Wait 1.5 seconds. Then go.") == [
        "Check it (e.g. quota).",
        "Wait 1.5 seconds.",
        "Then go.",
    ]


def test_a_web_page_is_never_quoted():
    page = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>x</body></html>"
    assert classify(RawFailure.http(502, None, page)).title.startswith(
        "The model provider reported"
    )


def test_a_refusal_carries_its_explanation():
    verdict = classify(RawFailure.exception_text("Output blocked by content filtering policy"))
    assert verdict.refusal is not None
    assert verdict.refusal.explanation == "Output blocked by content filtering policy"
    assert verdict.refusal.category == ""


def test_an_envelopes_message_is_its_title_whatever_its_type():
    raw = RawFailure.from_envelope({"type": "provider.transport", "message": "Error: try Tuesday"})
    assert classify(raw).title == "Error: try Tuesday"


def test_a_warning_record_keeps_its_title():
    record = {
        "category": "limit",
        "severity": "warning",
        "title": "Retrying Claude, attempt 1 of 2.",
    }
    assert classify(RawFailure.from_record(record)).title == "Retrying Claude, attempt 1 of 2."


@pytest.mark.parametrize("number", [1, 2, 9, 15])
def test_a_signal_from_outside_is_not_explained_by_what_was_logged_before(number):
    log = "2026-11-30 INFO listening on port 3000\nERROR could not load a theme"
    verdict = classify(RawFailure.exit(-number, stderr=log))
    assert "port" not in verdict.title
    assert "theme" not in verdict.title
    assert "listening" in verdict.raw_detail, "the log still has it"


def test_a_crash_still_says_why():
    verdict = classify(RawFailure.exit(-6, stderr="FATAL ERROR: invalid table size"))
    assert "invalid table size" in verdict.title


@pytest.mark.parametrize("code", [0, 1])
def test_an_agent_that_ends_while_it_starts_and_says_nothing_is_told_by_its_exit_code(code):
    verdict = classify(RawFailure.exit(code), context=Context(phase=Phase.START))
    assert verdict.title == (
        f"The agent ended with exit code {code} before it answered."
        " Check its command and how it is set up."
    )
