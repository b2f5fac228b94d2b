"""What is kept of turns: a journal that can be replayed.

`JournalObserver` writes it, `Journal` reads it, `again` and `otherwise` run it once more.
"""

from orchestrator.journal.file import Fsync
from orchestrator.journal.observer import JournalObserver
from orchestrator.journal.reader import Journal, JournalError, RecordedTurn
from orchestrator.journal.replay import Difference, again
from orchestrator.journal.whatif import Story, otherwise, recorded_story

__all__ = [
    "Difference",
    "Fsync",
    "Journal",
    "JournalError",
    "JournalObserver",
    "RecordedTurn",
    "Story",
    "again",
    "otherwise",
    "recorded_story",
]
