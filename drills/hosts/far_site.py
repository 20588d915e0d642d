"""An installation on machines with networks of their own, and a database on two more."""

from __future__ import annotations

from drills.hosts.engines import Engine
from drills.hosts.far_database import FarDatabase
from drills.hosts.site import Site


class FarSite(Site):
    """Every machine can be cut off; the test itself is at the hub, and looks into the database past the networks."""

    def __init__(self, traders: int = 3, slots: int = 3, engine: Engine | None = None, **settings: str) -> None:
        self.database = FarDatabase()
        super().__init__(traders, slots, self.database.bridge, self.database.url, engine, **settings)

    @property
    def database_url(self) -> str:
        return self.database.url

    def destroy(self) -> None:
        super().destroy()
        self.database.remove()
