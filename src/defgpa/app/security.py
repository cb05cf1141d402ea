"""Access to the server: one browser on this machine that has the token.

A page of another site cannot read or change anything: its requests have another ``Origin``, a name
it rebinds to this machine is another ``Host``, and it does not know the token, which is handed over
once in the address and kept in a cookie that no script can read.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# a report is a page of ours with scripts inside: it runs, in an origin that may ask us nothing
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SAFE_METHODS = ("GET", "HEAD")


def make_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """What a request must show.

    Attributes
    ----------
    token : str
        The secret of this run of the server.
    hosts : tuple of str
        The values of ``Host`` that are answered, with their port.
    cookie : str
        The name of the cookie; browsers share cookies between ports, so it has the port in it.
    """

    token: str
    hosts: tuple[str, ...]
    cookie: str = field(default="defgpa")

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the sentence of a refusal, or None for a request to answer."""
        headers, hosts = Headers(scope=scope), self.list_hosts(scope)
        if headers.get("host", "") not in hosts:
            return 421, "This server answers to its own address only."
        origin = headers.get("origin")
        origins = [f"http://{host}" for host in hosts]
        if origin is not None and origin not in origins:
            return 403, "Requests of other pages are refused."
        if origin is None and scope["method"] not in _SAFE_METHODS:
            return 403, "A request that changes something must say which page it comes from."
        if not self._has_cookie(headers):
            return 403, "Open the address that 'defgpa app' printed: it has the token."
        return None

    def list_hosts(self, scope: Scope) -> list[str]:
        """List the values of ``Host`` that are answered to, also the address that was called.

        A number, unlike a name, cannot be made by a stranger to point here.
        """
        address, port = scope.get("server") or ("", None)
        number = f"[{address}]" if ":" in address else address
        return [*self.hosts, f"{number}:{port}"]

    def is_token(self, word: str) -> bool:
        """Return whether a word is the token, in constant time."""
        return secrets.compare_digest(word.encode(), self.token.encode())

    def _has_cookie(self, headers: Headers) -> bool:
        cookies = SimpleCookie(headers.get("cookie", ""))
        return self.cookie in cookies and self.is_token(cookies[self.cookie].value)


class Guard:
    """Middleware that answers only requests that `Access` allows, with strict headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, or trade the token in the address for a cookie."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        headers = Headers(scope=scope)
        is_known_host = headers.get("host", "") in self.access.list_hosts(scope)
        if token and scope["path"] == "/" and is_known_host and self.access.is_token(token):
            response = RedirectResponse("/", status_code=303, headers=_HEADERS)
            response.set_cookie(
                self.access.cookie, self.access.token, httponly=True, samesite="strict", path="/"
            )
            await response(scope, receive, send)
            return
        refusal = self.access.refusal(scope)
        if refusal is not None:
            status, sentence = refusal
            await PlainTextResponse(sentence, status, headers=_HEADERS)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answered.setdefault(name, value)
                answered.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            await send(message)

        await self.app(scope, receive, send_with_headers)
