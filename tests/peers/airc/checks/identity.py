"""Discovery, identities, registration and authentication."""

import json
import secrets
import time

from suite import section
from wire import (
    SPKI_PREFIX,
    Agent,
    b64,
    b64url,
    decode_key,
    find,
    id_of,
    identity_of,
    messages_of,
    payload_of,
    random_hex,
    sign,
    token_of,
    unix_seconds,
)


@section("discovery", 6)
def discovery(t, api):
    r = api.discover()
    wk = r.obj
    t.check("core", "GET /.well-known/airc is 200 JSON", r.status == 200 and isinstance(r.json, dict), r)
    t.check("core", "protocol is AIRC", wk.get("protocol") == "AIRC", wk.get("protocol"))
    v = str(wk.get("protocol_version", ""))
    t.check(
        "core", "protocol_version looks like a version", len(v.split(".")) in (2, 3) and all(x.isdigit() for x in v.split(".")), v
    )
    e = wk.get("endpoints") or {}
    t.check(
        "core",
        "endpoints names identity, presence, messages",
        all(isinstance(e.get(k), str) for k in ("identity", "presence", "messages")),
        e,
    )
    t.check("core", "endpoints names consent", isinstance(e.get("consent"), str), e)
    t.check(
        "core",
        "Content-Type is application/json",
        "application/json" in (r.headers.get("Content-Type") or ""),
        r.headers.get("Content-Type"),
    )


@section("discovery-more", 6)
def discovery_more(t, api):
    r = api.discover()
    sg = r.obj.get("signing") or {}
    t.check("core", "signing.algorithm is Ed25519", str(sg.get("algorithm", "")).lower() == "ed25519", sg)
    t.check("core", "signing.canonicalization names RFC 8785", "8785" in str(sg.get("canonicalization", "")), sg)
    t.check("core", "Cache-Control is set on the discovery document", bool(r.headers.get("Cache-Control")))
    o = api.request("OPTIONS", "messages", headers={"Origin": "http://x.test", "Access-Control-Request-Method": "POST"})
    t.status("prof", "CORS preflight answered", o, 200, 204)
    n = api.request("GET", "/no/such/path/" + random_hex(4))
    t.check("core", "unknown path is a JSON 404", n.status == 404 and n.json is not None, n)
    d = api.request("DELETE", "presence")
    t.status("core", "wrong method is not a server error", d, 401, 404, 405)


@section("identity", 20)
def identity(t, api):
    a = Agent(api, "alice_" + random_hex(4))
    r = a.register()
    t.status("core", "POST /identity creates", r, 200, 201)
    t.check("core", "registration returns a session token", bool(a.token), r)
    g = api.get("identity/" + a.handle)
    i = identity_of(g)
    t.status("core", "GET /identity/:handle is public", g, 200)
    t.check("core", "lookup returns the handle", i.get("handle") == a.handle, g)
    t.check(
        "core",
        "lookup returns the registered Ed25519 key",
        decode_key(i.get("public_key") or i.get("publicKey") or "") == a.public,
        i.get("public_key"),
    )
    t.check("core", "lookup does not reveal the session token", a.token and a.token not in g.text)
    t.status("core", "second registration of the handle is 409", Agent(api, a.handle).register(), 409)
    up = Agent(api, a.handle.upper())
    t.status("core", "handle is case-insensitive: spelling in upper case refused", up.register(), 400, 409, 422)
    t.status("core", "unknown handle lookup is 404", api.get("identity/unknown_" + random_hex(4)), 404)
    for bad in ("ab", "has spaces", "x" * 33, "semi;drop--", "", "dash-handle", "ünïcode"):
        t.status("core", "invalid handle %r refused" % bad[:12], Agent(api, bad).register(), 400, 422)
    b = Agent(api, "pop_" + random_hex(4))
    body = b.identity_body(proof="ed25519:" + b64(sign(secrets.token_bytes(32), b.handle.encode())))
    t.status("core", "proof made by another key is refused", api.post("identity", body), 400, 401, 422)
    t.status("core", "the refused handle was not reserved", b.register(), 200, 201)
    c = Agent(api, "key_" + random_hex(4))
    t.status("core", "malformed public_key refused", api.post("identity", c.identity_body(public_key="ed25519:AAAA")), 400, 422)
    d = Agent(api, "der_" + random_hex(4))
    r = api.post("identity", d.identity_body(public_key="ed25519:" + b64(SPKI_PREFIX + d.public)))
    d.token = token_of(r)
    got = decode_key(identity_of(api.get("identity/" + d.handle)).get("public_key") or "")
    t.check("prof", "SPKI-DER public_key (v0.2 draft form) accepted and understood", r.ok and got == d.public, r)


@section("registration-challenge", 4)
def registration_challenge(t, api):
    a = Agent(api, "chal_" + random_hex(4))
    r = api.post("/register/challenge", {"handle": a.handle})
    ch = r.obj.get("challenge")
    t.check("core", "POST /register/challenge returns a challenge", r.ok and isinstance(ch, str), r)
    t.check("core", "challenge carries >= 32 bytes of entropy", isinstance(ch, str) and len(ch) >= 43, ch)
    t.check(
        "core",
        "challenge has a future expiresAt",
        (unix_seconds(r.obj.get("expiresAt")) or 0) > time.time(),
        r.obj.get("expiresAt"),
    )
    sig = b64url(sign(a.seed, (ch or "").encode()))
    r = api.post(
        "/register",
        {
            "handle": a.handle,
            "publicKey": b64url(a.public),
            "challenge": ch,
            "challengeSignature": sig,
            "signature": sig,
            "capabilities": {"payloads": ["text"], "maxPayloadSize": 65536, "delivery": ["poll"]},
        },
    )
    t.check("core", "POST /register with signed challenge registers", r.ok and bool(token_of(r)), r)


@section("auth", 8)
def auth(t, api):
    a, b = t.contacts("aut", "aub")
    t.status("core", "inbox without token is 401", api.get("messages/inbox"), 401)
    t.status("core", "inbox with a bogus token is 401", api.get("messages/inbox", "tok_" + random_hex(12)), 401)
    t.status("core", "presence without token is 401", api.post("presence", {"handle": a.handle, "status": "available"}), 401)
    t.status(
        "core", "consent without token is 401", api.post("consent", {"type": "request", "from": a.handle, "to": b.handle}), 401
    )
    env = a.envelope(b, {"type": "text", "content": "x"}, signed=False)
    t.status("core", "unsigned message is 401", a.post_message(env), 401)
    t.status(
        "core",
        "neither token nor signature is 401",
        a.post_message(a.envelope(b, {"type": "text", "content": "x"}, signed=False), token=None),
        401,
    )
    env = a.envelope(b, {"type": "text", "content": "stolen"})
    t.reject(
        "core",
        "token of B cannot submit a message from A signed by B",
        b.post_message({**env, "signature": b.sign(env)}),
        401,
        403,
    )
    secret = "secret-" + random_hex(6)
    r = a.send_text(b, secret)
    g = api.get("messages/inbox", a.token, user=b.handle)
    t.check(
        "core",
        "another agent's inbox is not readable with ?user=",
        r.ok
        and secret not in "".join(json.dumps(payload_of(m)) for m in messages_of(g) if id_of(m) == r.envelope["id"])
        and find(messages_of(g), r.envelope["id"]) is None,
        g,
    )
