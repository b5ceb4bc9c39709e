"""Messages to all contacts and to the public."""

from suite import section
from wire import envelope_of, find, id_of, iso, reservation_payload, signing_bytes, unb64, verifies


@section("broadcast-contacts", 15)
def broadcast_contacts(t, api):
    a, b, c = t.contacts("bca", "bcb", "bcc")
    s, p = t.agent("bcs"), t.agent("bcp")
    p.consent("request", a)  # pending, never accepted
    a.presence("contacts")
    r = a.send("@contacts", reservation_payload(["api/auth.ts"]))
    t.accept("ext", "reservation to @contacts accepted", r)
    i = r.envelope["id"]
    mb, mc = b.received(i), c.received(i)
    t.check("ext", "first contact receives it", mb is not None)
    t.check("ext", "second contact receives it", mc is not None)
    t.check("ext", "a stranger does not", find(s.inbox(limit=200), i) is None)
    t.check("ext", "a handle whose request is pending does not", find(p.inbox(limit=200), i) is None)
    t.check("ext", "the sender does not receive it", find(a.inbox(limit=200), i) is None)
    t.check("ext", "each contact receives it once", sum(id_of(m) == i for m in b.inbox(limit=200)) == 1)
    e = envelope_of(mb or {})
    t.check(
        "ext",
        "the delivered message keeps `from` and the signed `to`",
        e.get("from") == a.handle and e.get("to") == "@contacts",
        (e.get("from"), e.get("to")),
    )
    t.check(
        "ext",
        "the delivered signature still verifies",
        verifies(a.public, signing_bytes(e), unb64(e.get("signature", "")) or b""),
        sorted(e),
    )
    t.check(
        "ext",
        "discovery: inbox?payload_type=context:file_reservation finds it",
        find(b.inbox(payload_type="context:file_reservation", since=iso(-60)), i) is not None,
    )
    s2 = t.agent("bcl")
    t.make_contacts(s2, a)
    t.check("ext", "a contact made later does not receive it (graph at send time)", find(s2.inbox(limit=200), i) is None)
    c.consent("block", a)
    r2 = a.send_text("@contacts", "second")
    t.accept("ext", "second broadcast accepted", r2)
    t.check("ext", "contact still receives", b.received(r2.envelope["id"]) is not None)
    t.check("ext", "a contact that blocked the sender no longer receives", find(c.inbox(limit=200), r2.envelope["id"]) is None)
    t.check("ext", "what was delivered before the block is not recalled", find(c.inbox(limit=200), i) is not None)


@section("broadcast-privacy", 20)
def broadcast_privacy(t, api):
    a, b = t.contacts("bpa", "bpb")
    s = t.agent("bps")

    a.presence("contacts")
    r = a.send("@public", reservation_payload(["x/1.ts"]))
    t.status("ext", "tier contacts -> @public is 403", r, 403)
    t.check("ext", "error code is privacy_mismatch", "privacy_mismatch" in r.error, r)
    t.check("ext", "nothing is delivered to strangers", find(s.inbox(limit=200), r.envelope["id"]) is None)
    t.check("ext", "nothing is delivered to contacts", find(b.inbox(limit=200), r.envelope["id"]) is None)
    t.accept("ext", "tier contacts -> @contacts allowed", a.send_text("@contacts", "c"))
    t.accept("ext", "tier contacts -> explicit handle allowed", a.send_text(b, "e"))

    a.presence("invisible")
    r = a.send_text("@contacts", "c")
    t.status("ext", "tier invisible -> @contacts is 403 privacy_mismatch", r, 403, error="privacy_mismatch")
    t.check("ext", "and not delivered", find(b.inbox(limit=200), r.envelope["id"]) is None)
    t.status(
        "ext", "tier invisible -> @public is 403 privacy_mismatch", a.send_text("@public", "p"), 403, error="privacy_mismatch"
    )
    r = a.send_text(b, "e")
    t.accept("ext", "tier invisible -> explicit handle allowed", r)
    t.check("ext", "and delivered", b.received(r.envelope["id"]) is not None)

    a.presence("public")
    r = a.send_text("@public", "hello all")
    t.accept("ext", "tier public -> @public allowed", r)
    t.check("ext", "a stranger receives it", s.received(r.envelope["id"]) is not None)
    t.check("ext", "a contact receives it", b.received(r.envelope["id"]) is not None)
    t.check("ext", "the sender does not", find(a.inbox(limit=200), r.envelope["id"]) is None)
    t.accept("ext", "tier public -> @contacts allowed", a.send_text("@contacts", "c2"))

    a.presence("contacts")
    t.status("ext", "lowering the tier takes effect at once", a.send_text("@public", "p"), 403, error="privacy_mismatch")
    t.status("ext", "@thread:{id} is deferred: refused", a.send_text("@thread:bd-123", "t"), 400, 404, 422, 501)
    lone = t.agent("bpl")
    lone.presence("contacts")
    t.accept("prof", "broadcast with no contacts is accepted", lone.send_text("@contacts", "anyone?"))
    t.status(
        "core",
        "unsigned broadcast is 401",
        lone.post_message(lone.envelope("@contacts", {"type": "text", "content": "x"}, signed=False)),
        401,
    )
