"""Shared fixtures: hypothesis profiles, data sets that may be absent, files left unread."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from databases import database_url, desk, lab, own_server, postgres_url  # noqa: F401  fixtures of every test of studies

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# made anew by every call, all commands take longer to make than most of them to run
typer.main.get_command = functools.cache(typer.main.get_command)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=25)


def pytest_configure(config: pytest.Config) -> None:
    """Draw fewer examples in daily work."""
    settings.load_profile("quick" if config.option.markexpr == "not slow" else "ci")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread in which every test is slow, where slow ones are not wanted: their imports take seconds."""
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text() or None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped, with the reason, where it is absent."""
    folder = os.environ.get("ENTRYWISE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("ENTRYWISE_DATA names no folder of real data")
    return Path(folder)
