"""Changing settings under a running program."""

import pytest

from orchestrator.settings.load import SettingsError
from orchestrator.settings.model import Settings
from orchestrator.settings.reload import Reloader


def test_a_reload_swaps_the_whole_value_and_says_what_changed(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("[turn]\nmax_sends = 5")
    times = iter([100.0, 200.0])
    reloader = Reloader(file, environ={}, wall_clock=lambda: next(times))
    held = reloader.current
    file.write_text("[turn]\nmax_sends = 6\nstop_budget_s = '1s'")
    done = reloader.reload()
    assert done.ok
    assert done.changed == ("turn.max_sends", "turn.stop_budget_s")
    assert str(done) == "settings changed: turn.max_sends, turn.stop_budget_s"
    assert reloader.current is done.settings
    assert (held.turn.max_sends, reloader.current.turn.max_sends) == (5, 6)
    assert (reloader.last_ok, reloader.last_success_at) == (True, 200.0)


def test_a_bad_file_changes_nothing_and_says_so(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("[turn]\nmax_sends = 5")
    reloader = Reloader(file, environ={}, wall_clock=lambda: 100.0)
    held = reloader.current
    for text in ("[turn]\nmax_sends = 0\nzz = 1", "[turn", "[ladders.curve]\ncap_s = 0"):
        file.write_text(text)
        failed = reloader.reload()
        assert not failed.ok
        assert failed.settings is reloader.current is held
        assert reloader.last_ok is False
        assert reloader.last_success_at == 100.0
    file.write_text("[turn]\nmax_sends = 0\nzz = 1")
    assert str(reloader.reload()) == (
        f"settings kept as they were, because of file {file}: turn.max_sends: 0 is not allowed; "
        "a whole number from 1 to 1000 is (and 1 more)"
    )
    file.unlink()
    assert "there is no such file" in str(reloader.reload())
    file.write_text("[turn]\nmax_sends = 5")
    assert str(reloader.reload()) == "nothing changed"
    assert reloader.last_ok is True


def test_a_bad_start_uses_the_defaults_until_a_good_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("zz = 1")
    reloader = Reloader(file, environ={})
    assert reloader.current == Settings()
    assert (reloader.last_ok, reloader.last_success_at) == (False, None)
    file.write_text("[turn]\nmax_sends = 5")
    assert reloader.reload().changed == ("turn.max_sends",)


def test_a_strict_start_raises(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("zz = 1")
    with pytest.raises(SettingsError, match="zz: no such setting"):
        Reloader(file, environ={}, strict=True)
