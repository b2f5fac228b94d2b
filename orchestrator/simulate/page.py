"""What every report is made of: one HTML file that needs nothing else.

No script, no font, no image, no request.  Light or dark is the reader's.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from orchestrator.settings.document import toml
from orchestrator.settings.model import Settings
from orchestrator.simulate.scenario import Scenario
from orchestrator.simulate.style import STYLE
from orchestrator.version import __version__

Key = tuple[str, str]
"""An entry of a legend: the CSS classes of its sign, and its words."""


def page(title: str, intro: str, body: str, footer: str) -> str:
    """A whole page; only `title` and `footer` are plain text."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{escape(title)}</h1>{intro}</header>\n{body}\n"
        f"<footer>orchestrator {__version__} {escape(footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def contents(scenarios: Sequence[Scenario]) -> str:
    """Links to the sections, where there are several."""
    if len(scenarios) < 2:  # noqa: PLR2004 - one needs no list
        return ""
    names = [escape(scenario.name) for scenario in scenarios]
    links = "".join(f'<a href="#{name}">{name}</a>' for name in names)
    return f'<nav aria-label="Scenarios">{links}</nav>'


def section(scenario: Scenario, lead: str, inner: str) -> str:
    """One scenario; `lead` is plain text and says it all in two sentences."""
    return (
        f'<section id="{escape(scenario.name)}">\n<h2>{escape(scenario.title or scenario.name)}'
        f'</h2>\n<p class="lead">{escape(lead)}</p>\n{inner}\n</section>'
    )


def figure(title: str, picture: str, words: str, legend: Sequence[Key] = ()) -> str:
    """A picture under its title; nothing where there is no picture."""
    if not picture:
        return ""
    keys = "".join(
        f'<span class="key"><i class="{kind}"></i>{escape(name)}</span>' for kind, name in legend
    )
    legend_ = f'<div class="legend">{keys}</div>' if keys else ""
    return (
        f"<figure>\n<figcaption><h3>{escape(title)}</h3><span>{escape(words)}</span>{legend_}"
        f"</figcaption>\n{picture}\n</figure>\n"
    )


def all_settings(title: str, settings: Settings) -> str:
    """Every setting, folded away."""
    return (
        f"<details><summary>{escape(title)}</summary><pre>{escape(toml(settings))}</pre></details>"
    )


def seeds_in_words(seeds: Sequence[int]) -> str:
    """The seeds that were played, which follow each other."""
    last = f" to {seeds[-1]}" if len(seeds) > 1 else ""
    return f"seed {seeds[0]}{last}"
