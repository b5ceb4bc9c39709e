"""The `/api/*` paths of published clients, where signatures are optional."""

from suite import section
from wire import messages_of, pending_from, random_hex, token_of


@section("safe-mode", 20)
def safe_mode(t, api):
    """The /api/* surface that every published client speaks (v0.1, signing optional)."""

    def reg(tag):
        h = "%s_%s" % (tag, random_hex(4))
        r = api.post("/api/presence", {"action": "register", "username": h, "workingOn": "driver"})
        return h, token_of(r), r

    a, ta, r = reg("sma")
    b, tb, _ = reg("smb")
    t.check(
        "core",
        "POST /api/presence register returns success and token",
        r.status in (200, 201) and r.obj.get("success") is True and bool(ta),
        r,
    )
    g = api.request("GET", "/api/presence")
    t.check(
        "core",
        "GET /api/presence has success and an active array",
        g.ok and g.obj.get("success") is True and isinstance(g.obj.get("active"), list),
        g,
    )
    t.check(
        "prof",
        "and the users array the PyPI client reads",
        isinstance(g.obj.get("users"), list) and any(u.get("username") == a for u in g.obj["users"]),
        list(g.obj),
    )
    t.check(
        "core",
        "registered agent is listed with username and status",
        any((u.get("username") or u.get("handle")) == a and u.get("status") for u in g.obj.get("active", [])),
    )
    t.check("core", "counts.active is a number", isinstance((g.obj.get("counts") or {}).get("active"), int), g.obj.get("counts"))
    t.check("core", "CORS header present", bool(g.headers.get("Access-Control-Allow-Origin")))
    t.status("core", "heartbeat", api.post("/api/presence", {"action": "heartbeat", "username": a, "status": "busy"}, ta), 200)
    t.status("core", "empty presence body is a client error", api.post("/api/presence", {}), 400, 401, 422)
    t.status("core", "short handle refused", api.post("/api/presence", {"action": "register", "username": "AB"}), 400, 422)
    t.status("core", "message without token is 401", api.post("/api/messages", {"from": a, "to": b, "text": "x"}), 401, 403)
    r = api.post("/api/messages", {"from": a, "to": b, "type": "text", "text": "hi"}, ta)
    t.status("core", "first contact is 403", r, 403)
    g = api.request("GET", "/api/consent?user=" + b, token=tb)
    t.check("core", "GET /api/consent?user= lists it as pending", a in pending_from(g), g)
    t.accept("core", "accept in openapi form", api.post("/api/consent", {"action": "accept", "from": b, "handle": a}, tb))
    r = api.post("/api/messages", {"from": a, "to": b, "type": "code_review", "text": "hallo Wörld"}, ta)
    t.accept("core", "unsigned text message accepted with a token", r)
    g = api.request("GET", "/api/messages?user=" + b, token=tb)
    m = next((x for x in messages_of(g) if x.get("text") == "hallo Wörld"), None)
    t.check("core", "GET /api/messages?user= returns it under messages[].text", m is not None, g)
    t.check(
        "core",
        "with from, to, type and numeric timestamp",
        m
        and m.get("from") == a
        and m.get("to") == b
        and m.get("type") == "code_review"
        and isinstance(m.get("timestamp"), (int, float)),
        m,
    )
    g = api.request("GET", "/api/messages?user=%s&with=%s" % (b, a), token=tb)
    t.check("core", "GET ?user=&with= returns the thread", any(x.get("text") == "hallo Wörld" for x in messages_of(g)), g)
    g = api.request("GET", "/api/messages?user=%s" % b, token=ta)
    t.check(
        "core",
        "a token gives no access to another user's inbox",
        not any(x.get("text") == "hallo Wörld" for x in messages_of(g)),
        g,
    )
    g = api.request("GET", "/api/health")
    t.check("core", "GET /api/health has status and version", g.ok and g.obj.get("status") and g.obj.get("version"), g)
    k = t.agent("smk")
    r = api.post("/api/presence", {"action": "register", "username": k.handle})
    t.check(
        "prof",
        "a handle registered with a key cannot be taken over through Safe Mode",
        not token_of(r) and r.status in (401, 403, 409),
        r,
    )
