"""Authentication, and what each role may call."""

import http.client
from urllib.parse import urlparse

import httpx

from kit import ADMIN, AGENT, TIMEOUT, URL, USER, bearer, case, get, ok, post_message

PROTECTED = [
    ("GET", "/status"),
    ("GET", "/whoami"),
    ("POST", "/message"),
    ("POST", "/swarms"),
    ("GET", "/swarms/dump"),
    ("POST", "/swarms/load"),
    ("POST", "/interswarm/forward"),
    ("POST", "/interswarm/back"),
    ("POST", "/interswarm/message"),
]


def call(m, p, headers=None, **kw):
    return httpx.request(m, URL + p, headers=headers or {}, timeout=TIMEOUT, **({"json": {}} if m == "POST" and not kw else kw))


@case("auth", "MUST")
def no_header_is_401_everywhere():
    bad = {p: call(m, p).status_code for m, p in PROTECTED}
    assert all(v == 401 for v in bad.values()), bad


@case("auth", "MUST")
def unknown_token_is_401_everywhere():
    bad = {p: call(m, p, bearer("definitely-not-a-token")).status_code for m, p in PROTECTED}
    assert all(v == 401 for v in bad.values()), bad


@case("auth", "MUST")
def other_scheme_is_401():
    bad = {p: call(m, p, {"Authorization": "Basic dXNlcjpwYXNz"}).status_code for m, p in PROTECTED}
    assert all(v == 401 for v in bad.values()), bad


@case("auth", "MUST")
def empty_bearer_is_401():
    bad = {p: call(m, p, {"Authorization": "Bearer"}).status_code for m, p in PROTECTED}
    assert all(v == 401 for v in bad.values()), bad


@case("auth", "ROBUST")
def bearer_followed_by_spaces_is_401_not_500():
    bad = {}
    for m, p in PROTECTED:
        c = http.client.HTTPConnection(urlparse(URL).netloc, timeout=TIMEOUT)
        c.request(
            m, p, body="{}" if m == "POST" else None, headers={"Authorization": "Bearer   ", "Content-Type": "application/json"}
        )
        bad[p] = c.getresponse().status
        c.close()
    assert all(v == 401 for v in bad.values()), bad


@case("auth", "MUST")
def auth_is_checked_before_the_body():
    r = httpx.post(URL + "/message", content=b"{not json", timeout=TIMEOUT)
    assert r.status_code == 401, r.status_code


@case("auth", "MUST")
def agent_role_refused_on_user_endpoints():
    bad = {
        p: call(m, p, bearer(AGENT)).status_code
        for m, p in [("GET", "/status"), ("GET", "/whoami"), ("POST", "/message"), ("POST", "/interswarm/message")]
    }
    assert all(v in (401, 403) for v in bad.values()), bad


@case("auth", "MUST")
def user_role_refused_on_admin_endpoints():
    bad = {
        p: call(m, p, bearer(USER)).status_code
        for m, p in [("POST", "/swarms"), ("GET", "/swarms/dump"), ("POST", "/swarms/load")]
    }
    assert all(v in (401, 403) for v in bad.values()), bad


@case("auth", "MUST")
def user_and_admin_refused_on_agent_endpoints():
    bad = {
        (t, p): call("POST", p, bearer(t)).status_code for t in (USER, ADMIN) for p in ("/interswarm/forward", "/interswarm/back")
    }
    assert all(v in (401, 403) for v in bad.values()), bad


@case("auth", "MUST")
def agent_role_refused_on_admin_endpoints():
    bad = {
        p: call(m, p, bearer(AGENT)).status_code
        for m, p in [("POST", "/swarms"), ("GET", "/swarms/dump"), ("POST", "/swarms/load")]
    }
    assert all(v in (401, 403) for v in bad.values()), bad


@case("auth", "MUST")
def admin_inherits_user_access():
    ok(get("/status", ADMIN))
    assert ok(post_message("as admin", tok=ADMIN))["response"] == "as admin"


@case("auth", "ROBUST")
def token_never_echoed_in_errors():
    for m, p in PROTECTED:
        assert "sekret-zz9" not in call(m, p, bearer("sekret-zz9")).text
