"""The report: one file, no request, everything escaped, everything in it."""

import re
from html.parser import HTMLParser

import pytest
from attrs import evolve

from orchestrator.settings.model import Choices, Settings
from orchestrator.simulate.compare import compared
from orchestrator.simulate.ours import machines
from orchestrator.simulate.policies import policy
from orchestrator.simulate.reading import load
from orchestrator.simulate.report import report
from orchestrator.simulate.runs import Contender, run
from orchestrator.simulate.side_by_side import side_by_side
from orchestrator.simulate.style import STYLE

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Balanced(HTMLParser):
    """Checks that every element is closed, and collects what a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.seen = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [v for k, v in attrs if k in {"src", "href", "data", "action"} and v]

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def made(scenario, settings=None):
    settings = settings or Settings()
    contender = Contender("settings", machines(settings))
    return report(settings, [run(scenario, contender, (1, 2), sampled=True)])


@pytest.fixture(scope="module")
def page():
    return made(load("impatient"), Settings(choices=Choices(ride_out=True)))


def test_a_browser_fetches_nothing_and_runs_nothing(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not {"script", "link", "img", "iframe", "object"} & set(parser.seen)
    assert all(link.startswith("#") for link in parser.fetched)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|@font-face", page)


def test_the_reader_chooses_light_or_dark(page):
    assert 'name="color-scheme" content="light dark"' in page
    assert "@media (prefers-color-scheme: dark)" in page
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)", 1)
    named = lambda text: set(re.findall(r"(--[a-z-]+): #", text))  # noqa: E731
    assert named(light) == named(dark.split("* {", 1)[0])


def test_every_colour_that_is_used_is_named():
    used = set(re.findall(r"var\((--[a-z-]+)\)", STYLE))
    assert used <= set(re.findall(r"(--[a-z-]+):", STYLE))


def test_it_shows_the_load_the_recovery_the_turns_and_the_table(page):
    assert page.count("<figure>") == 3
    assert page.count('role="img" aria-label="') == 3
    assert 'class="outage"' in page
    for word in ("landed, retried", "stopped", "gave way", "p95 "):
        assert word in page, word
    assert page.count("<tr") > 12


def test_it_says_which_settings_were_played(page):
    assert "<code>choices.ride_out = true</code> <span>default false</span>" in page
    assert "ride_out_window_s = &quot;30m&quot;" in page


def test_foreign_words_are_escaped():
    scenario = evolve(
        load("blip"), name="<b>x</b>", title='"><script>alert(1)</script>', rate_per_s=1
    )
    page = made(scenario)
    assert "<script" not in page
    assert "<b>x</b>" not in page
    Balanced().feed(page)


def test_a_run_in_which_nothing_happens_is_a_report_too():
    page = made(evolve(load("blip"), phases=(), outage=None, rate_per_s=0.2))
    assert "turns landed at once" in page
    assert page.count("<figure>") == 1


def test_numbers_in_pictures_are_numbers(page, both):
    for written in (page, both):
        assert not re.search(r'="[^"]*(nan|inf)[^"]*"', written.lower().replace("information", ""))


# Side by side -------------------------------------------------------------------------------------


def beside(*scenarios):
    mine = {"defaults": Settings(), "<mine>": Settings(choices=Choices(ride_out=True))}
    contenders = [Contender(name, machines(settings)) for name, settings in mine.items()]
    contenders.append(Contender("none", policy("none")))
    comparisons = [
        compared([run(scenario, contender, (1, 2)) for contender in contenders])
        for scenario in scenarios
    ]
    return side_by_side(comparisons, mine)


@pytest.fixture(scope="module")
def both():
    return beside(load("blip"), evolve(load("impatient"), rate_per_s=1))


def test_a_comparison_fetches_nothing_and_runs_nothing(both):
    parser = Balanced()
    parser.feed(both)
    assert parser.open == []
    assert not {"script", "link", "img", "iframe", "object"} & set(parser.seen)
    assert all(link.startswith("#") for link in parser.fetched)
    assert "<mine>" not in both


def test_a_comparison_tells_who_was_played(both):
    assert "<b>defaults</b><span>the built-in settings" in both
    assert "<b>&lt;mine&gt;</b><span>the defaults but for <code>choices.ride_out = true" in both
    assert "<b>none</b><span>no retry at all</span>" in both
    assert both.count("<summary>") == 2


def test_each_contender_has_a_line_in_each_picture(both):
    assert both.count("<figure>") == 6
    for place in range(3):
        assert both.count(f'<path class="who hue{place} stroke0') == 6
        assert f".hue{place} {{" in STYLE


def test_a_table_marks_what_differs_and_which_way(both):
    row = re.search(r'<th scope="row"[^>]*>landed</th>(.*?)</tr>', both)[1]
    first, _, last = re.findall(r"<td(.*?)</td>", row)
    assert first.startswith(">")
    assert last.startswith(' class="worse"><b>')
    assert last.endswith("</b> ▼")
    load_ = re.search(r'<th scope="row"[^>]*>load in the outage</th>(.*?)</tr>', both)[1]
    assert re.findall(r"<td(.*?)</td>", load_)[2].startswith(' class="better"><b>1.00x')


def test_a_comparison_in_which_nothing_happens_is_a_report_too():
    page = beside(evolve(load("blip"), phases=(), outage=None, rate_per_s=0.2))
    assert "All land about as many turns (100.0 %)." in page
    assert page.count("<figure>") == 2
