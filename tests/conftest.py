"""Every async test runs on asyncio and on trio, and Hypothesis tries the same examples each time.

Whether a change lands must not turn on luck, nor on how busy a machine is: `make test` draws the
same examples at every run.  `make hunt` draws new ones.
"""

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("hunt", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("same")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param
