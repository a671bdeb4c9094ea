"""The entries are given: functions from Observations to a result."""

__all__: list[str] = []
