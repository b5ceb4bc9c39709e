"""The inbox, threads, and malformed requests."""

import time

from suite import section
from wire import find, id_of, iso, mailbox_payload, messages_of, payload_of


@section("inbox", 27)
def inbox(t, api):
    a, b = t.contacts("ina", "inb")
    c = t.agent("inc")
    t.make_contacts(c, b)
    r1 = a.send_text(b, "one")
    r2 = a.send(b, mailbox_payload(subject="two"))
    r3 = c.send_text(b, "three")
    b.received(r3.envelope["id"])
    ids = [id_of(m) for m in b.inbox(limit=200)]
    t.check("core", "GET /messages/inbox holds all three", all(x.envelope["id"] in ids for x in (r1, r2, r3)), ids)
    t.check(
        "core",
        "items are in arrival order",
        [i for i in ids if i in (r1.envelope["id"], r2.envelope["id"], r3.envelope["id"])]
        == [x.envelope["id"] for x in (r1, r2, r3)],
        ids,
    )
    g = api.get("messages", b.token, limit=200)
    t.check(
        "core",
        "GET /messages is the same inbox",
        g.ok and all(find(messages_of(g), x.envelope["id"]) is not None for x in (r1, r2, r3)),
        g,
    )
    t.check("core", "own outgoing messages are not in the inbox", find(a.inbox(limit=200), r1.envelope["id"]) is None)
    t.check("core", "third parties do not see them", find(c.inbox(limit=200), r1.envelope["id"]) is None)
    f = b.inbox(payload_type="context:mailbox", limit=200)
    t.check("ext", "payload_type filter keeps matching messages", find(f, r2.envelope["id"]) is not None, f)
    t.check(
        "ext",
        "payload_type filter drops the others",
        all((payload_of(m) or {}).get("type") == "context:mailbox" for m in f),
        [payload_of(m) for m in f],
    )
    t.check("ext", "payload_type with no match gives an empty list", b.inbox(payload_type="context:file_reservation") == [])
    t.check("ext", "payload_type=text works too", find(b.inbox(payload_type="text"), r1.envelope["id"]) is not None)

    time.sleep(1.2)
    since_seconds, since_iso, since_milliseconds = int(time.time()), iso(), int(time.time() * 1000)
    time.sleep(1.2)
    r4 = a.send_text(b, "four")
    b.received(r4.envelope["id"])
    for name, v in (("unix seconds", since_seconds), ("ISO 8601", since_iso)):
        got = [id_of(m) for m in b.inbox(since=v, limit=200)]
        t.check("ext", "since as %s keeps newer" % name, r4.envelope["id"] in got, got)
        t.check("ext", "since as %s drops older" % name, r1.envelope["id"] not in got and r3.envelope["id"] not in got, got)
    got = [id_of(m) for m in b.inbox(since=since_milliseconds, limit=200)]
    t.check("prof", "since as unix milliseconds", r4.envelope["id"] in got and r1.envelope["id"] not in got, got)
    got = b.inbox(since=since_iso, payload_type="context:mailbox")
    t.check("ext", "since and payload_type combine", got == [], got)
    t.check("ext", "since in the future gives nothing", b.inbox(since=iso(3600)) == [])

    g = b.inbox_reply(limit=2)
    m2 = messages_of(g)
    t.check("core", "limit caps the page", len(m2) == 2, len(m2))
    seen, cur, pages = [id_of(m) for m in m2], g.obj.get("nextCursor") or g.obj.get("next_cursor"), 1
    t.check("core", "a capped page offers nextCursor", bool(cur), g.obj.keys())
    while cur and pages < 10:
        g = b.inbox_reply(limit=2, cursor=cur)
        seen += [id_of(m) for m in messages_of(g)]
        cur, pages = g.obj.get("nextCursor") or g.obj.get("next_cursor"), pages + 1
    t.check(
        "core",
        "following the cursor yields every message once",
        len(seen) == len(set(seen)) and all(x.envelope["id"] in seen for x in (r1, r2, r3, r4)),
        seen,
    )
    for bad in ("-1", "abc"):
        g = b.inbox_reply(limit=bad)
        t.check("prof", "limit=%s is answered without a server error" % bad, g.status in (200, 400, 422), g)

    x1 = b.send_text(a, "answer")
    g = api.get("messages/thread/" + a.handle, b.token)
    th = [id_of(m) for m in messages_of(g)]
    want = [r1.envelope["id"], r2.envelope["id"], r4.envelope["id"], x1.envelope["id"]]
    t.check("core", "thread holds both directions in order", [i for i in th if i in want] == want, th)
    t.check("core", "thread excludes other correspondents", r3.envelope["id"] not in th)
    t.check("core", "thread needs authentication", api.get("messages/thread/" + a.handle).status == 401)
    t.check("core", "an outsider's view of the thread is empty", not messages_of(api.get("messages/thread/" + a.handle, c.token)))
    t.status("core", "message with neither body nor payload refused", a.send(b), 400, 422)
    t.status("core", "payload without type refused", a.send(b, {"content": "x"}), 400, 422)


@section("robustness", 9)
def robustness(t, api):
    a, b = t.contacts("roa", "rob")
    for name, raw in (
        ("malformed JSON", "{not json"),
        ("a JSON array", "[1,2]"),
        ("a JSON string", '"x"'),
        ("an empty body", ""),
        ("invalid UTF-8", b'{"v":"\xff\xfe"}'),
    ):
        r = api.request("POST", "messages", raw=raw, token=a.token)
        t.check("core", "%s is a client error" % name, r.status in (400, 401, 415, 422), r)
    r = a.send(b, {"type": "text", "content": [[[[[[1]]]]]], "u": {"k": [True, False, None]}})
    t.accept("core", "nested payload accepted", r)
    t.check("core", "nested payload intact", payload_of(b.received(r.envelope["id"]) or {}) == r.envelope["payload"])
    r = a.send(b, {"type": "com.example:mytype", "data": {"k": 1}})
    t.accept("core", "unknown reverse-domain payload type accepted", r)
    r = api.request("POST", "messages", raw='{"a":' * 3000 + "1" + "}" * 3000, token=a.token)
    t.check(
        "prof",
        "3000 levels of nesting do not crash the server",
        400 <= r.status < 500 and api.get("messages/inbox", b.token).ok,
        r.status,
    )
