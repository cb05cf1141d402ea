"""Nobody but the browser that was given the token gets an answer, and no path leads out."""

from __future__ import annotations

import io
import socket
import zipfile

import pytest
from app_support import HOST, TOKEN
from starlette.testclient import TestClient

from defgpa.app.server import LOCAL, list_host_names, listen


@pytest.fixture
def stranger(app):
    with TestClient(app, base_url=f"http://{HOST}", follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/api/start", "/static/index.html", "/api/projects/x"])
def test_without_the_token_nothing_is_answered(stranger, path):
    assert stranger.get(path).status_code == 403
    assert stranger.get(path, params={"token": "wrong"}).status_code == 403
    stranger.cookies.set("defgpa", "wrong")
    assert stranger.get(path).status_code == 403


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_cannot_read(stranger):
    answer = stranger.get("/", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example:8765", "127.0.0.1:80", "127.0.0.1", ""])
def test_another_host_is_refused_even_with_the_token(page, host):
    assert page.client.get("/api/start", headers={"Host": host}).status_code == 421
    assert page.client.get("/", params={"token": TOKEN}, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", f"https://{HOST}", "null"])
def test_another_origin_is_refused(page, origin):
    headers = {"Origin": origin}
    assert page.client.get("/api/start", headers=headers).status_code == 403
    answer = page.client.post("/api/projects", json={"title": "x"}, headers=headers)
    assert answer.status_code == 403
    assert page.workspace.list() == []


def test_a_server_of_all_addresses_answers_to_the_name_of_the_machine(monkeypatch):
    assert list_host_names("127.0.0.1") == ["127.0.0.1", "localhost"]
    monkeypatch.setattr("socket.gethostname", lambda: "lab-7")
    monkeypatch.setattr("socket.gethostbyname_ex", lambda name: (name, [], ["192.0.2.7"]))
    assert list_host_names("0.0.0.0") == ["lab-7", "192.0.2.7", "127.0.0.1", "localhost"]


def test_a_machine_that_calls_its_name_itself_prints_the_address_that_others_can_call(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "lab-7")
    monkeypatch.setattr("socket.gethostbyname_ex", lambda name: (name, [], ["127.0.1.1"]))
    monkeypatch.setattr("defgpa.app.server.find_outward_address", lambda: ["192.0.2.9"])
    first, *others = list_host_names("0.0.0.0")
    assert first == "192.0.2.9"
    assert "lab-7" in others


def test_a_server_of_all_addresses_answers_to_each_of_them_and_to_no_other(app):
    for address in ("192.0.2.7", "[2001:db8::7]"):
        host = f"{address}:8765"
        headers = {"Origin": f"http://{host}"}
        with TestClient(app, f"http://{host}", headers=headers, follow_redirects=False) as client:
            assert client.get("/").status_code == 403
            assert client.post("/api/projects", json={"title": "x"}).status_code == 403
            assert client.get("/", params={"token": TOKEN}).status_code == 303
            assert client.get("/").status_code == 200
            assert client.post("/api/projects", json={"title": "x"}).status_code == 200
            other = {"Host": "192.0.2.8:8765"}
            assert client.get("/", headers=other).status_code == 421
            assert client.get("/", headers={"Host": "evil.example:8765"}).status_code == 421
            origin = {"Origin": "http://192.0.2.8:8765"}
            assert client.get("/", headers=origin).status_code == 403


def test_a_change_without_an_origin_is_refused(page):
    del page.client.headers["Origin"]
    assert page.client.get("/api/start").status_code == 200
    assert page.client.post("/api/projects", json={"title": "x"}).status_code == 403


def test_no_inline_script_is_allowed_and_none_is_needed(page):
    answer = page.client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text
    assert " onclick=" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../project.py",
        "/static/%2e%2e/project.py",
        "/static//etc/passwd",
        "/api/projects/..",
        "/api/projects/%2e%2e%2f",
    ],
)
def test_no_path_leads_out_of_the_pages_or_the_workspace(page, path):
    assert page.client.get(path).status_code == 404


@pytest.mark.parametrize("name", ["../edits.json", "..%2fedits.json", "/etc/passwd", "a/../../x"])
def test_no_result_is_read_from_outside_the_results(page, name):
    page.open_sample("wings")
    assert page.get(f"/results/{name}").status_code == 404


def test_a_link_among_the_results_is_not_followed(page):
    page.open_sample("wings")
    (page.project.folder / "results" / "link").symlink_to("/etc/passwd")
    assert page.get("/results/link").status_code == 404


def test_a_link_among_the_files_is_not_followed(page, tmp_path):
    (tmp_path / "secret.png").write_bytes(b"secret")
    page.open_sample("wings")
    name = page.state()["names"][0]
    assert page.get("/photograph", number=0).status_code == 404
    link = page.project.folder / "files" / f"{name}.png"
    link.symlink_to(tmp_path / "secret.png")
    page.upload("other.png", b"own")  # the files are read again
    assert page.get("/photograph", number=0).status_code == 404
    link.unlink()
    page.upload(f"{name}.png", b"own")
    assert page.get("/photograph", number=0).content == b"own"


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("../../etc/cron.d/x.tps", "x.tps"),
        ("C:\\Users\\me\\wing.tps", "wing.tps"),
        ("folder/.hidden.tps", "hidden.tps"),
        ("<img src=x onerror=alert(1)>.tps", "_img src=x onerror=alert(1)_.tps"),
        ("a\x00b\n.tps", "ab.tps"),
        ("x" * 500 + ".tps", "x" * 116 + ".tps"),
    ],
)
def test_an_uploaded_file_stays_in_its_folder_whatever_it_is_called(page, name, stored):
    page.create()
    answer = page.upload(name, b"LM=1\n0 0\n")
    assert answer.json() == {"stored": [stored]}
    files = page.project.folder / "files"
    assert [path.name for path in files.iterdir()] == [stored]


@pytest.mark.parametrize("name", ["", "..", "/", "./.", "\x00"])
def test_a_file_without_a_name_is_refused(page, name):
    page.create()
    assert page.upload(name, b"LM=1\n0 0\n").status_code == 400


def test_an_upload_declared_too_large_is_refused_before_it_is_read(page):
    page.create()
    answer = page.client.put(
        f"/api/projects/{page.id}/files",
        params={"name": "a.tps"},
        content=b"",
        headers={"Content-Length": str(10 * 10**9)},
    )
    assert answer.status_code == 413
    assert "at most" in answer.json()["error"]


def test_an_upload_that_is_larger_than_it_says_is_stopped(page, monkeypatch):
    monkeypatch.setattr("defgpa.app.routes.get_max_file_size", lambda: 1000)
    page.create()

    def blocks():
        for _ in range(50):
            yield b"x" * 100

    answer = page.client.put(
        f"/api/projects/{page.id}/files", params={"name": "a.tps"}, content=blocks()
    )
    assert answer.status_code == 413
    folder = page.project.folder
    assert list((folder / "files").iterdir()) == []
    assert {path.name for path in folder.iterdir()} == {
        *("files", "results", "edits.json", "settings.json")
    }


def test_an_archive_that_unpacks_to_too_much_is_refused(page, monkeypatch):
    monkeypatch.setenv("DEFGPA_MAX_BYTES", "100000")
    page.create()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.tps", b"0" * 10_000_000)
    answer = page.upload("bomb.zip", packed.getvalue())
    assert answer.status_code == 400
    assert "takes more than" in answer.json()["error"]
    assert list((page.project.folder / "files").iterdir()) == []


def test_an_archive_cannot_write_outside_its_folder(page):
    page.create()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../../evil.tps", b"LM=1\n0 0\n")
        archive.writestr("deep/inside/wing.tps", b"LM=1\n0 0\n")
    assert page.upload("two.zip", packed.getvalue()).json() == {"stored": ["evil.tps", "wing.tps"]}


def test_a_request_that_is_no_json_or_too_long_is_refused(page):
    page.create()
    address = f"/api/projects/{page.id}/edits"
    assert page.client.post(address, content=b"{").status_code == 400
    assert page.client.post(address, content=b"[]").status_code == 400
    assert page.client.post(address, content=b"[" * 100_000).status_code == 400
    assert page.client.post(address, content=b" " * (5 << 20)).status_code == 413


def test_a_workspace_is_for_its_user_alone(workspace):
    project = workspace.create("mine")
    assert workspace.folder.stat().st_mode & 0o077 == 0
    assert project.folder.stat().st_mode & 0o077 == 0


def test_scripts_of_an_older_version_are_not_used_again(page):
    answer = page.client.get("/static/main.js")
    assert answer.headers["cache-control"] == "no-cache"
    tag = answer.headers["etag"]
    assert page.client.get("/static/main.js", headers={"If-None-Match": tag}).status_code == 304
    assert page.client.get("/static/main.js", headers={"If-None-Match": '"old"'}).content
    assert page.client.get("/static/api.js").headers["etag"] != tag


def test_the_body_of_an_answer_does_not_wait_for_the_receipt_of_its_head():
    with (
        listen(LOCAL, 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
