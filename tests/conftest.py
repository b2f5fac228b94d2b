"""Every async test runs on asyncio and on trio, and Hypothesis tries the same examples each time.

Whether a change lands must not turn on luck, nor on how busy a machine is: `make test` draws the
same examples at every run.  `make hunt` draws new ones.
"""

import signal

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("hunt", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("same")

# A shell starts what runs in its background with these ignored, and so would be every process that
# a test starts, and the test wait for ever for it to end.
for each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, signal.SIG_DFL)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param
