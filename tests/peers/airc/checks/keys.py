"""Rotation and revocation of keys."""

import secrets
import time

from suite import section
from wire import Agent, b64, decode_key, find, identity_of, presence_entry, public_key, sign, signing_bytes, token_of


@section("key-rotation", 10)
def key_rotation(t, api):
    a, b = t.contacts("kra", "krb")
    old_token = a.token
    new_seed = secrets.token_bytes(32)
    nk = "ed25519:" + b64(public_key(new_seed))

    def proof(seed):
        p = {"new_public_key": nk, "timestamp": int(time.time()), "nonce": secrets.token_hex(16)}
        p["signature"] = b64(sign(seed, signing_bytes(p)))
        return p

    r = api.post("identity/%s/rotate" % a.handle, {"new_public_key": nk, "proof": proof(secrets.token_bytes(32))}, old_token)
    t.status("core", "rotation with a foreign proof is 401", r, 401)
    t.accept("core", "old key still works after the refused rotation", a.send_text(b, "still me"))
    r = api.post("identity/%s/rotate" % a.handle, {"new_public_key": nk, "proof": proof(a.recovery_seed)}, old_token)
    t.accept("core", "rotation with recovery-key proof accepted", r)
    tok = token_of(r)
    t.check("core", "a new session token is issued", bool(tok) and tok != old_token, r)
    i = identity_of(api.get("identity/" + a.handle))
    t.check("core", "lookup shows the new key", decode_key(i.get("public_key") or "") == public_key(new_seed), i)
    t.status("core", "old session token is invalid", api.get("messages/inbox", old_token), 401)
    a.token = tok
    t.status("core", "message signed with the old key is 401", a.send_text(b, "old key"), 401)
    a.seed = new_seed
    a.public = public_key(new_seed)
    r = a.send_text(b, "new key")
    t.accept("core", "message signed with the new key accepted", r)
    t.check("core", "and delivered", b.received(r.envelope["id"]) is not None)
    t.accept("core", "consent survives the rotation", b.send_text(a, "hi again"))


@section("revocation", 12)
def revocation(t, api):
    c, d = t.contacts("klc", "kld")
    c.presence("public")
    before = c.send_text(d, "before")
    proof = lambda seed, **o: (lambda p: {**p, "proof": b64(sign(seed, signing_bytes(p)))})(
        {
            "v": "0.2",
            "handle": c.handle,
            "action": "revoke",
            "reason": "key_compromise",
            "timestamp": int(time.time()),
            "nonce": secrets.token_hex(16),
            **o,
        }
    )
    url = "identity/%s/revoke" % c.handle
    t.status("core", "revocation with a foreign proof is 401", api.post(url, proof(secrets.token_bytes(32)), c.token), 401)
    t.status(
        "core",
        "revocation proof for another handle refused",
        api.post(url, proof(c.recovery_seed, handle=d.handle), c.token),
        400,
        401,
    )
    t.accept("core", "still active after the refused attempts", c.send_text(d, "alive"))
    t.accept("core", "revocation with the recovery key", api.post(url, proof(c.recovery_seed), c.token))
    t.check("core", "lookup reports status revoked", identity_of(api.get("identity/" + c.handle)).get("status") == "revoked")
    t.status("core", "revoked identity cannot send", c.send_text(d, "ghost"), 401, 403)
    t.status("core", "revoked identity cannot read its inbox", api.get("messages/inbox", c.token), 401, 403)
    t.status("core", "revoked identity cannot heartbeat", c.presence("public"), 401, 403)
    t.check("core", "revoked identity is not listed as present", presence_entry(api.get("presence", d.token), c.handle) is None)
    t.check("core", "messages sent before stay readable", find(d.inbox(limit=200), before.envelope["id"]) is not None)
    t.status("core", "the handle is quarantined", Agent(api, c.handle).register(), 403, 409)
    t.status("core", "revoking twice is refused", api.post(url, proof(c.recovery_seed)), 401, 403, 409)
