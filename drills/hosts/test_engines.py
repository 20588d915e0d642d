"""The same blows to machines whose managers supervisord or Ray keeps running, by the files that are shipped.

Machines are networks of their own, so it needs root. `make test-ray ARGS=drills/hosts/test_engines.py`; DRILLS says how
often each is done. Without Ray: `make test-postgresql MARKS=faults ARGS="drills/hosts/test_engines.py -s"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from drills.engines.rays import need_ray
from drills.hosts import networks
from drills.hosts.drills import settled
from drills.hosts.engines import Supervisord
from drills.hosts.far_site import FarSite
from drills.hosts.rays import Ray
from drills.hosts.test_drills import repeated
from drills.hosts.test_partitions import DRILLS
from drills.hosts.traders import Traders
from drills.hosts.trial import Trial
from tests import postgresql

pytestmark = [pytest.mark.faults, postgresql.only]


@pytest.fixture(scope="module", params=[Supervisord, Ray], ids=["supervisord", "ray"])
def traders(request: pytest.FixtureRequest) -> Iterator[Traders]:
    if reason := networks.why_not():
        pytest.skip(reason)
    if request.param is Ray:
        need_ray()
    site = FarSite(engine=request.param())
    try:
        site.up()
        made = Traders(site, users=6, tasks_each=2)
        made.start()
        settled(made)
        yield made
    finally:
        site.destroy()


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.__name__)
def test_nobody_bids_twice_and_all_come_back(traders: Traders, drill: Callable[[Traders], Trial]) -> None:
    repeated(traders, drill)
