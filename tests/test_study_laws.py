"""SQLite and PostgreSQL obey the laws of stores."""

from __future__ import annotations

import pytest

from entrywise.checks import stores


@pytest.mark.parametrize("law", stores.LAWS, ids=lambda law: law.__name__)
def test_store(law, desk):
    law(desk)
