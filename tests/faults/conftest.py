import pytest


@pytest.fixture
def store(request, tmp_path):
    """Of the kind that the test asks for: a new SQLite file or a new PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    return request.getfixturevalue("database")
