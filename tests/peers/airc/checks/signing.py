"""Signed messages and replays."""

import json
import secrets
import time

from suite import section
from wire import b64, b64url, decode_key, envelope_of, id_of, identity_of, iso, payload_of, sign, signing_bytes, unb64, verifies


@section("signing", 22)
def signing(t, api):
    a, b = t.contacts("sia", "sib")
    r = a.send_text(b, "hello")
    t.accept("core", "correctly signed message accepted", r)
    m = b.received(r.envelope["id"])
    t.check("core", "it reaches the recipient", m is not None)
    e = envelope_of(m or {})
    sig = unb64(e.get("signature", "")) or b""
    pub = decode_key(identity_of(api.get("identity/" + a.handle)).get("public_key") or "")
    t.check(
        "core",
        "recipient can verify the delivered envelope with the published key",
        bool(pub) and verifies(pub, signing_bytes(e), sig),
        sorted(e),
    )
    t.check("core", "payload arrives unchanged", payload_of(m or {}) == r.envelope["payload"], payload_of(m or {}))

    env = a.envelope(b, {"type": "text", "content": "pay 1"})
    env["payload"]["content"] = "pay 9"
    t.status("core", "tampered payload refused", a.post_message(env), 401, 422)
    env = a.envelope(b, {"type": "text", "content": "x"})
    env["thread_id"] = "added-after-signing"
    t.status("core", "field added after signing refused", a.post_message(env), 401, 422)
    env = a.envelope(b, {"type": "text", "content": "x"}, thread_id="t1")
    del env["thread_id"]
    t.status("core", "field removed after signing refused", a.post_message(env), 401, 422)
    env = a.envelope(b, {"type": "text", "content": "x"}, signed=False)
    env["signature"] = a.sign(env, seed=secrets.token_bytes(32))
    t.status("core", "signature by an unregistered key refused", a.post_message(env), 401, 422)
    env["signature"] = b.sign(env)
    t.status("core", "signature by the recipient's key refused", a.post_message(env), 401, 422)
    for bad in ("", "ed25519:", "ed25519:!!!!", "ed25519:" + b64(b"\0" * 63), "ed25519:" + b64(b"\0" * 64), 7):
        t.status(
            "core", "malformed signature %r refused" % str(bad)[:16], a.post_message({**env, "signature": bad}), 400, 401, 422
        )

    # canonicalization
    env = a.envelope(b, {"type": "text", "content": "order", "z": 1, "a": {"y": [3, 1, 2], "b": None}})
    rev = dict(reversed(list(env.items())))
    t.accept(
        "core",
        "wire key order and whitespace do not matter",
        api.request("POST", "messages", raw=json.dumps(rev, indent=3, ensure_ascii=True), token=a.token),
    )
    env = a.envelope(b, {"type": "text", "content": 'Grüße 中文 🚀 "q" \\ / \n\t\u0001 \u007f'})
    t.accept("core", "non-ASCII and control characters are signed as UTF-8 JCS", a.post_message(env))
    m = b.received(env["id"])
    t.check("core", "non-ASCII payload arrives unchanged", m and payload_of(m) == env["payload"])
    env = a.envelope(b, {"type": "text", "content": "n", "n": [0, -0.0, 1.0, 1.5, 1e2, 0.1, 1e-7, 1e21, 123456789]})
    wire = json.dumps(env)
    t.accept(
        "core",
        "numbers are canonicalized as IEEE-754 doubles (1.0 -> 1, 1e2 -> 100)",
        api.request("POST", "messages", raw=wire, token=a.token),
    )
    # encodings of the signature field
    for name, f in (("bare base64 (v0.2 draft, SDKs)", b64), ("base64url without padding (whitepaper)", b64url)):
        env = a.envelope(b, {"type": "text", "content": name}, signed=False)
        env["signature"] = f(sign(a.seed, signing_bytes(env)))
        t.accept("prof", "signature as %s accepted" % name, a.post_message(env))
    env = a.envelope("@" + b.handle, {"type": "text", "content": "x"})
    t.accept("core", "`to` with leading @ is verified as sent and delivered", a.post_message(env))


@section("replay", 9)
def replay(t, api):
    a, b = t.contacts("rea", "reb")
    r = a.send_text(b, "once")
    t.accept("core", "first submission accepted", r)
    t.status("core", "identical envelope again is 409", a.post_message(r.envelope), 409)
    env = a.envelope(b, {"type": "text", "content": "other"}, id=r.envelope["id"])
    t.status("core", "same id, new nonce, re-signed: 409", a.post_message(env), 409)
    env = a.envelope(b, {"type": "text", "content": "other"}, nonce=r.envelope["nonce"])
    t.status("core", "same nonce, new id: refused", a.post_message(env), 401, 409)
    b.received(r.envelope["id"])
    t.check("core", "the recipient holds the message once", sum(id_of(m) == r.envelope["id"] for m in b.inbox(limit=200)) == 1)
    t.status("core", "timestamp 10 minutes old refused", a.send_text(b, "old", timestamp=int(time.time()) - 600), 400, 401, 409)
    t.status("core", "timestamp 10 minutes ahead refused", a.send_text(b, "new", timestamp=int(time.time()) + 600), 400, 401, 409)
    t.accept("core", "timestamp 60 s old accepted", a.send_text(b, "ok", timestamp=int(time.time()) - 60))
    t.accept("core", "ISO 8601 timestamp accepted", a.send_text(b, "iso", timestamp=iso(milliseconds=True)))
