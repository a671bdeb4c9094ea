"""The databases that tests of studies run on: SQLite files, and a PostgreSQL server that they start themselves."""

from __future__ import annotations

import itertools
import os

import pytest

_numbers = itertools.count()
DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]  # a server starts slowly


class Desk:
    """Makes and opens studies in one database, each name used once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.prefix = f"t{os.getpid()}-{next(_numbers)}-"

    def create(self, name, **options):
        from entrywise.study import Study

        return Study.create(self.url, self.prefix + name, **options)

    def open(self, name):
        import study_plans
        from entrywise.study import Store, Study

        return Study.open(Store(self.url), self.prefix + name, plans=study_plans.ALLOWED)


@pytest.fixture
def lab(tmp_path):
    """A file of SQLite."""
    return str(tmp_path / "lab.db")


def fill(study, matrix, **extra):
    """Answer what a study asks by a matrix, and return what it asked."""
    asked = study.ask(**extra)
    study.tell([(q.id, matrix[q.index]) for q in asked])
    return asked


def small_board(where, name="s", **other):
    """Return a study that buys cells of three rows and five columns, or of others."""
    from entrywise.study import Study

    usual = {"plan": "most-informative", "params": {"rank": 1, "reserve": 0.0}, "seed": 1}
    lines = {"budget": 12, "rows": ["a", "b", "c"], "cols": list("uvwxy")}
    return Study.create(where, name, **usual | lines | other)


def needs_postgres():
    """Skip the test where no PostgreSQL server is installed, unless ENTRYWISE_REQUIRE_POSTGRES=1."""
    from entrywise.checks import postgres

    if postgres.binaries() is None:
        if os.environ.get("ENTRYWISE_REQUIRE_POSTGRES") == "1":
            pytest.fail("ENTRYWISE_REQUIRE_POSTGRES is set, but no PostgreSQL server is installed")
        pytest.skip("no PostgreSQL server is installed (on Debian: apt-get install postgresql)")


@pytest.fixture(scope="session")
def postgres_url():
    """The URL of a PostgreSQL server."""
    from entrywise.checks import postgres

    needs_postgres()
    with postgres.server() as url:
        yield url


@pytest.fixture
def own_server():
    """A PostgreSQL server that nobody else uses."""
    from entrywise.checks import postgres

    needs_postgres()
    with postgres.running() as found:
        yield found


@pytest.fixture(params=DATABASES)
def database_url(request, tmp_path):
    """A file of SQLite, then the URL of a PostgreSQL server."""
    return (
        str(tmp_path / "lab.db")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_url")
    )


@pytest.fixture
def desk(database_url):
    """Makes and opens studies, on either database."""
    return Desk(database_url)
