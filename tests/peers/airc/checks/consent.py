"""Consent between agents, and presence."""

import json
import time

from suite import section
from wire import find, pending_from, presence_entry, presence_list, random_hex, unix_seconds


@section("consent", 24)
def consent(t, api):
    a, b, c = t.agent("coa"), t.agent("cob"), t.agent("coc")
    r = a.send_text(b, "first contact")
    t.status("core", "first message to a stranger is 403", r, 403)
    t.check("core", "the 403 says consent is pending", r.obj.get("pendingConsent") is True or "consent" in r.error, r)
    t.check("core", "the message is not delivered", find(b.inbox(limit=200), r.envelope["id"]) is None)
    p = pending_from(api.get("consent", b.token))
    t.check("core", "first contact leaves a pending request for the recipient", a.handle in p, p)
    t.status("core", "GET /consent needs authentication", api.get("consent"), 401)
    t.check("core", "pending requests are private to the recipient", a.handle not in pending_from(api.get("consent", c.token)))

    r = c.consent("request", b, message="I would like to talk about the spec")
    t.accept("core", "POST /consent type=request", r)
    p = pending_from(api.get("consent", b.token))
    t.check("core", "request is listed for the recipient", c.handle in p, p)
    t.check(
        "core", "request carries the introduction text", "talk about the spec" in json.dumps(p.get(c.handle, {})), p.get(c.handle)
    )
    t.status("core", "still 403 while pending", c.send_text(b, "x"), 403)
    c.consent("accept", b)
    t.status("core", "requester cannot accept on the recipient's behalf", c.send_text(b, "x"), 403)
    t.accept("core", "recipient accepts", b.consent("accept", c))
    r = c.send_text(b, "now")
    t.accept("core", "messages flow after accept", r)
    t.check("core", "and are delivered", b.received(r.envelope["id"]) is not None)
    t.accept("core", "acceptance is mutual (recipient may answer)", b.send_text(c, "re"))
    t.check("core", "accepted request is no longer pending", c.handle not in pending_from(api.get("consent", b.token)))

    t.accept("core", "block", b.consent("block", a))
    t.status("core", "blocked sender's message is 403", a.send_text(b, "spam"), 403)
    t.status("core", "blocked sender cannot request again", a.consent("request", b), 403)
    t.check("core", "blocked sender is not pending", a.handle not in pending_from(api.get("consent", b.token)))
    b.consent("block", c)
    t.status("core", "block after accept stops messages", c.send_text(b, "x"), 403)

    t.status("core", "message to an unknown handle is 404", a.send_text("unknown_" + random_hex(4), "x"), 404)
    t.accept("prof", "message to oneself needs no consent", a.send_text(a, "note"))
    t.status(
        "core",
        "unknown consent action is refused",
        api.post("consent", {"type": "marry", "from": a.handle, "to": b.handle}, a.token),
        400,
        422,
    )


@section("consent-forms", 4)
def consent_forms(t, api):
    """One endpoint, several published body shapes; the bearer token is the actor."""
    me = t.agent("cfm")
    forms = (
        ("openapi {action,from:me,handle:peer}", lambda x: {"action": "accept", "from": me.handle, "handle": x}),
        ("whitepaper {handle,action}", lambda x: {"handle": x, "action": "accept"}),
    )
    for name, f in forms:
        x = t.agent("cfx")
        r = api.post("consent", {"action": "request", "handle": me.handle}, x.token)
        r2 = api.post("consent", f(x.handle), me.token)
        t.check("prof", "%s accepted" % name, r.ok and r2.ok, (r, r2))
        t.accept("prof", "%s has effect" % name, x.send_text(me, "hi"))


@section("presence", 21)
def presence(t, api):
    a, b = t.contacts("pra", "prb")
    s = t.agent("prs")
    see = lambda reader, agent: presence_entry(api.get("presence", reader.token if reader else None), agent.handle)

    t.accept("core", "heartbeat with privacy public", a.presence("public", context="reviewing auth.ts"))
    e = see(s, a)
    t.check("core", "public presence visible to an authenticated stranger", e is not None)
    t.check("core", "entry carries status", (e or {}).get("status") in ("available", "online", "active"), e)
    ls, ex = (
        unix_seconds((e or {}).get("last_seen") or (e or {}).get("lastHeartbeat")),
        unix_seconds((e or {}).get("expires_at") or (e or {}).get("expiresAt")),
    )
    t.check("core", "entry carries last_seen and expires_at", ls is not None and ex is not None, e)
    t.check(
        "core",
        "expiry is 30..300 s after the heartbeat (or <= 15 s in a test set-up)",
        ls and ex and (30 <= ex - ls <= 300 or ex - ls <= 15),
        (ls, ex),
    )
    g = api.get("presence", s.token, privacy="public")
    t.check("core", "?privacy=public lists it", presence_entry(g, a.handle) is not None, g.status)
    a.presence("public", status="busy")
    t.check("core", "status change is visible", (see(s, a) or {}).get("status") == "busy", see(s, a))

    t.accept("core", "switch to contacts", a.presence("contacts"))
    t.check("core", "contacts tier: visible to a contact", see(b, a) is not None)
    t.check("core", "contacts tier: hidden from a stranger", see(s, a) is None)
    t.check("core", "contacts tier: hidden from anonymous readers", see(None, a) is None)
    t.check(
        "core",
        "contacts tier: single lookup does not leak",
        a.handle not in json.dumps(presence_list(api.get("presence", s.token, user=a.handle)))
        and not (lambda o: isinstance(o.get("presence") or o.get("user"), dict))(api.get("presence", s.token, user=a.handle).obj),
    )
    t.accept("core", "switch to invisible", a.presence("invisible"))
    t.check("core", "invisible: hidden from a contact", see(b, a) is None)
    t.check("core", "invisible: hidden from a stranger", see(s, a) is None)
    t.status("core", "unknown privacy value refused", a.presence("friends-of-friends"), 400, 422)
    t.check("core", "refused value did not change the tier", see(b, a) is None and see(s, a) is None)
    b.presence("public")
    t.status(
        "core",
        "cannot heartbeat for another handle",
        api.post("presence", {"handle": b.handle, "status": "away", "privacy": "invisible"}, a.token),
        400,
        403,
    )
    t.check("core", "and the victim's presence is unchanged", (see(s, b) or {}).get("status") != "away" and see(s, b) is not None)
    t.check("prof", "an agent that never sent a heartbeat is not listed", see(b, s) is None)
    ttl = (ex - ls) if ls and ex else 999
    if ttl <= 15 or t.slow:
        b.presence("public")
        time.sleep(ttl + 2)
        t.check("core", "presence expires without heartbeat", see(s, b) is None)
    else:
        t.skip("presence expires without heartbeat", "TTL %ds; use --slow" % ttl)
