"""A client that does what the page does."""

from __future__ import annotations

import json
import time

HOST = "127.0.0.1:8765"
TOKEN = "a-token-for-tests"


class Page:
    """What the page does: requests with the cookie and the origin, JSON in and out."""

    def __init__(self, client, workspace):
        self.client, self.workspace = client, workspace
        self.id = ""

    def get(self, path, **query):
        return self.client.get(f"/api/projects/{self.id}{path}", params=query)

    def post(self, path, **body):
        return self.client.post(f"/api/projects/{self.id}{path}", json=body)

    def open_sample(self, name):
        self.id = self.client.post("/api/projects", json={"sample": name}).json()["id"]
        return self.state()

    def create(self, title="study"):
        self.id = self.client.post("/api/projects", json={"title": title}).json()["id"]
        return self.id

    def upload(self, name, content):
        return self.client.put(
            f"/api/projects/{self.id}/files", params={"name": name}, content=content
        )

    def state(self):
        answer = self.get("")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def edit(self, **edit):
        return self.post("/edits", revision=self.state()["revision"], edits=[edit])

    def change(self, **settings):
        return self.post("/settings", revision=self.state()["revision"], settings=settings)

    def run(self, kind, **body):
        """Run a job to its end; return its events."""
        answer = self.post("/jobs", kind=kind, **body)
        assert answer.status_code == 200, answer.text
        job = answer.json()["job"]
        text = self.client.get(f"/api/jobs/{job}/events").text
        return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]

    @property
    def project(self):
        return self.workspace.get(self.id)


def wait_until(condition, seconds=20.0):
    """Wait for something to be true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("It did not happen in time.")
