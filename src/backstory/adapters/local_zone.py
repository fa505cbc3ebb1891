"""The person's own time zone, with its clock changes, as this machine keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo


class LocalZone(tzinfo):
    """The zone of the process (``TZ``, or the machine's), also for dates in another half of the year."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """Ahead of UTC at that moment; nothing at the edges of the calendar, where no offset can be computed."""
        try:
            naive = datetime.now() if moment is None else moment.replace(tzinfo=None)
            return naive.astimezone().utcoffset() or timedelta(0)
        except (OverflowError, OSError, ValueError):
            return timedelta(0)

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Unknown: only the whole offset is."""
        return None

    def tzname(self, moment: datetime | None) -> str:
        """What the zone is called here."""
        return "local"

    def fromutc(self, moment: datetime) -> datetime:
        """The local reading of a moment whose fields are in UTC."""
        try:
            return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)
        except (OverflowError, OSError, ValueError):
            return moment
