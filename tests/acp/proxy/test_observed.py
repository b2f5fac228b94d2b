"""What the command keeps of its turns: counters that are scraped while it runs, and a journal."""

import urllib.request
from collections import defaultdict

import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit
from orchestrator.journal import Journal
from tests.acp.proxy.test_processes import LONG_S, editor

PROMPTS = ("say hello", "overload", "die", "say goodbye")
FREE = "127.0.0.1:0"


def played(client):
    """A healthy turn, one that fails for good, one that loses its agent, and a healthy one."""
    client.begin()
    for number, text in enumerate(PROMPTS, 2):
        client.prompt(number, text)


def scraped(url):
    """The samples that are not 0, by name and by the values of their labels."""
    text = urllib.request.urlopen(url, timeout=LONG_S).read().decode()
    samples = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.value:
                name = sample.name.removeprefix("orchestrator_")
                samples[name][tuple(sample.labels.values())] = sample.value
    return samples


def address(tmp_path):
    lines = (tmp_path / "stderr").read_text().splitlines()
    return next(line.split()[-1] for line in lines if line.startswith("metrics at "))


def test_the_counters_of_failing_turns_can_be_scraped_while_the_proxy_runs(tmp_path):
    with editor(tmp_path, "--metrics", FREE) as client:
        client.begin()
        assert scraped(address(tmp_path))["turns_total"] == {}
        for number, text in enumerate(PROMPTS, 2):
            client.prompt(number, text)
        samples = scraped(address(tmp_path))
    assert samples["turns_total"] == {
        ("landed_clean",): 2,
        ("failed_after_retry",): 1,
        ("landed_after_recovery",): 1,
    }
    assert samples["attempts_total"] == {("landed",): 3, ("failed",): 5}
    assert samples["failures_total"] == {("overloaded", "other"): 4, ("agent_died", "other"): 1}
    assert samples["retries_scheduled_total"] == {("transient",): 3, ("death",): 1}
    assert samples["retries_sent_total"] == samples["retries_scheduled_total"]
    assert samples["retries_dropped_total"] == {}
    assert samples["turns_in_progress"] == samples["turns_pending"] == {}


def test_a_journal_of_the_proxy_replays_byte_for_byte(tmp_path, capsys):
    path = tmp_path / "journal.jsonl"
    with editor(tmp_path, "--journal", str(path)) as client:
        played(client)
        client.process.stdin.close()
        assert client.process.wait(LONG_S) == 0
    turns = list(Journal(path).turns())
    assert [(turn.whole, turn.ended) for turn in turns] == [(True, True)] * len(PROMPTS)
    assert run(["replay", str(path)]) == Exit.OK
    told = "".join(capsys.readouterr())
    assert "4 turns, " in told
    assert "the same effects, byte for byte" in told


@pytest.mark.parametrize(
    ("option", "value"), [("--metrics", "127.0.0.1:99999"), ("--journal", "/dev/null/journal")]
)
def test_what_can_not_be_kept_is_refused_before_anything_starts(tmp_path, option, value):
    with editor(tmp_path, option, value) as client:
        assert client.process.wait(LONG_S) != Exit.OK
        assert client.process.stdout.read() == b""
    assert option in (tmp_path / "stderr").read_text()
