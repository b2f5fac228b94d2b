"""The generated tables."""

from orchestrator.settings.model import Ladders, Settings
from orchestrator.turn import EVENTS, TRANSITIONS, Family, State
from orchestrator.turn.render import family_table, transition_table


def rows(table):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]


def test_the_transition_table_has_a_row_per_event_and_a_cell_per_state():
    header, _, *body = rows(transition_table())
    assert header == ["event", "idle", "ready", "attempting", "waiting", "recovering", "any end"]
    assert [row[0] for row in body] == [f"`{event.__name__}`" for event in EVENTS]
    for row, event in zip(body, EVENTS, strict=True):
        legal = [(State(name), event) in TRANSITIONS for name in header[1:-1]]
        assert [bool(cell) for cell in row[1:-1]] == legal


def test_the_family_table_has_a_row_per_family_in_order():
    _, _, *body = rows(family_table())
    assert [row[0] for row in body] == [f"`{family}`" for family in Family]


def test_the_family_table_tells_the_numbers_of_the_settings():
    told = family_table(Settings(ladders=Ladders(connection_window_s=60.0, transient_retries=7)))
    assert "curve / 60 s" in told
    assert "curve ≤ 7" in told


def test_a_row_reads_as_its_family_does():
    _, _, *body = rows(family_table())
    connection = next(row for row in body if row[0] == "`connection`")
    assert connection == [
        "`connection`",
        "transient, network",
        "fresh",
        "short hint, interactive, may retry",
        "curve / 300 s",
        "curve 2 s, cap 30 s",
        "",
        "by clean",
        "no",
        "",
        "one standing warning",
    ]
