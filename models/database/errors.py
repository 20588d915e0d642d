"""The ways in which a database fails that its users must tell apart."""

from __future__ import annotations

from peewee import OperationalError

from core.errors import BidkeeperError


class DatabaseAway(BidkeeperError):
    """The database cannot be opened; the message says why, without its password."""


class Unfit(DatabaseAway):
    """The database, or the way to it, does not do what we need: somebody has to mend it."""


class NotRead(DatabaseAway):
    """The pages of the database could not be read, so that nothing is known of damage; the message says why."""


class Damaged(OperationalError):
    """The database is damaged (models/database/damage.py), so nothing new is reserved in it."""


class CommitUnknown(OperationalError):
    """The connection was lost between a commit and its answer: it may have been carried out."""
