"""A server with an empty workspace, and a client that knows its token."""

from __future__ import annotations

import pytest
from app_support import HOST, TOKEN, Page
from starlette.testclient import TestClient

from defgpa.app.project import Workspace
from defgpa.app.security import Access
from defgpa.app.server import build_app


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "projects")


@pytest.fixture
def app(workspace):
    return build_app(workspace, Access(TOKEN, (HOST,)))


@pytest.fixture
def page(app, workspace):
    with TestClient(
        app,
        base_url=f"http://{HOST}",
        headers={"Origin": f"http://{HOST}"},
        cookies={"defgpa": TOKEN},
        raise_server_exceptions=False,
    ) as client:
        yield Page(client, workspace)
