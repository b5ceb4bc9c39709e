"""The life of a file reservation, and conflicts between two."""

import json
import time

from suite import INVALID, section
from wire import (
    OMITTED,
    conflict_payload,
    conflicts_of,
    find,
    payload_of,
    random_hex,
    release_payload,
    renewal_payload,
    reservation_payload,
)


@section("reservation-life", 20)
def reservation_life(t, api):
    a, b, c = t.contacts("rla", "rlb", "rlc")
    for x in (a, b, c):
        x.presence("contacts")
    p = reservation_payload(["api/auth.ts"])
    rid = p["reservation_id"]
    t.accept("ext", "owner announces", a.send("@contacts", p))
    t.reject("ext", "renewal by another agent refused", b.send("@contacts", renewal_payload(rid)), 401, 403, 404, 409)
    r = b.send("@contacts", release_payload(rid))
    t.reject("ext", "release by another agent refused", r, 401, 403, 404, 409)
    t.check("ext", "the refused release is not delivered", find(c.inbox(limit=200), r.envelope["id"]) is None)
    env = b.envelope("@contacts", release_payload(rid), signed=False)
    env["from"] = a.handle
    env["signature"] = b.sign(env)
    t.status("ext", "release in the owner's name with a foreign signature refused", b.post_message(env), 401, 403, 422)
    r = a.send("@contacts", renewal_payload(rid, ttl=7200))
    t.accept("ext", "renewal by the owner accepted (short form, no scope/paths)", r)
    t.check("ext", "the renewal reaches contacts", b.received(r.envelope["id"]) is not None)
    r = a.send("@contacts", release_payload(rid))
    t.accept("ext", "release by the owner accepted (short form)", r)
    t.check("ext", "the release reaches contacts", b.received(r.envelope["id"]) is not None)
    t.reject("prof", "renewal after release refused", a.send("@contacts", renewal_payload(rid)), 400, 409, 422)
    t.reject(
        "ext",
        "renewal of an id that never existed refused",
        a.send(b, renewal_payload("rsv-" + random_hex(8))),
        400,
        404,
        409,
        422,
    )

    q = reservation_payload(["lib/one.rs"])
    t.accept("ext", "new reservation", a.send(b, q))
    r = a.send(b, {**q, "paths": ["lib/two.rs"]})
    t.status("ext", "same reservation_id by the same owner with other content is 409", r, 409)
    t.check("ext", "the duplicate is not delivered", find(b.inbox(limit=200), r.envelope["id"]) is None)
    t.accept("prof", "same content again (to another contact) is idempotent", a.send(c, q))
    t.accept(
        "ext",
        "another owner may use the same reservation_id",
        b.send(c, reservation_payload(["zz/three.rs"], reservation_id=q["reservation_id"])),
    )
    t.accept("ext", "its owner can release it", b.send(c, release_payload(q["reservation_id"])))
    t.accept("ext", "the first owner's reservation stays active (renewal works)", a.send(b, renewal_payload(q["reservation_id"])))

    e = reservation_payload(["old/file.rs"], ttl=2)
    a.send(b, e)
    time.sleep(3)
    t.accept(
        "ext", "renewal after expires_ts accepted (recovery from delay)", a.send(b, renewal_payload(e["reservation_id"], ttl=600))
    )
    t.status(
        "ext", "renewal without expires_ts refused", a.send(b, renewal_payload(e["reservation_id"], expires_ts=OMITTED)), *INVALID
    )


@section("reservation-conflict", 16)
def reservation_conflict(t, api):
    a, b, s = t.agent("rca"), t.agent("rcb"), t.agent("rcs")
    t.make_contacts(a, b)
    t.make_contacts(b, s)  # s is no contact of a
    for x in (a, b, s):
        x.presence("contacts")
    sc = "repo:github.com/example/" + random_hex(4)
    p = reservation_payload(["api/auth.ts", "lib/db.ts"], scope=sc, reason="race fix")
    t.accept("ext", "first exclusive reservation", a.send("@contacts", p))

    def ids(r):
        return [c.get("reservation_id") for c in conflicts_of(r) if isinstance(c, dict)]

    r = b.send("@contacts", reservation_payload(["api/auth.ts"], scope=sc))
    t.accept("ext", "overlapping exclusive reservation is accepted: reservations are advisory", r)
    t.check("ext", "and delivered", a.received(r.envelope["id"]) is not None)
    t.check("prof", "answer lists the conflict (reservation_id)", p["reservation_id"] in ids(r), r.obj.get("conflicts"))
    cf = next((c for c in conflicts_of(r) if c.get("reservation_id") == p["reservation_id"]), {})
    t.check("prof", "conflict names the owner", str(cf.get("owner", "")).lstrip("@") == a.handle, cf)
    t.check(
        "prof",
        "conflict names the overlapping path only",
        "api/auth.ts" in json.dumps(cf) and "lib/db.ts" not in json.dumps(cf.get("paths", "")),
        cf,
    )
    b.send(a, release_payload(r.envelope["payload"]["reservation_id"]))
    t.check("prof", "disjoint paths: no conflict", not ids(b.send(a, reservation_payload(["api/other.ts"], scope=sc))))
    t.check("prof", "other scope: no conflict", not ids(b.send(a, reservation_payload(["api/auth.ts"], scope=sc + "2"))))
    t.check(
        "prof", "shared request: no conflict", not ids(b.send(a, reservation_payload(["api/auth.ts"], scope=sc, exclusive=False)))
    )
    r = b.send(a, reservation_payload(["api"], scope=sc))
    t.check("prof", "directory above a reserved file conflicts", p["reservation_id"] in ids(r), r.obj.get("conflicts"))
    b.send(a, release_payload(r.envelope["payload"]["reservation_id"]))
    r = s.send(b, reservation_payload(["lib/db.ts"], scope=sc))
    t.check(
        "prof",
        "an agent that is no contact of the owner is told nothing about it",
        r.ok and p["reservation_id"] not in ids(r) and a.handle not in r.text,
        r,
    )
    a.send("@contacts", release_payload(p["reservation_id"]))
    r = b.send(a, reservation_payload(["lib/db.ts"], scope=sc))
    t.check("prof", "released reservation no longer conflicts", p["reservation_id"] not in ids(r), r.obj.get("conflicts"))
    q = reservation_payload(["ttl/a.ts"], scope=sc, ttl=2)
    a.send(b, q)
    time.sleep(3)
    r = b.send(a, reservation_payload(["ttl/a.ts"], scope=sc))
    t.check("ext", "expired reservation is not reported as active", q["reservation_id"] not in ids(r), r.obj.get("conflicts"))
    o = reservation_payload(["past/a.ts"], scope=sc, ttl=60, issued=-3600)
    a.send(b, o)
    r = b.send(a, reservation_payload(["past/a.ts"], scope=sc))
    t.check(
        "ext",
        "an announcement that arrives expired never counts as active",
        r.ok and o["reservation_id"] not in ids(r),
        r.obj.get("conflicts"),
    )
    r = b.send(a, conflict_payload(p["reservation_id"]))
    t.accept("ext", "context:reservation_conflict negotiates", r)
    t.check("ext", "and arrives intact", payload_of(a.received(r.envelope["id"]) or {}) == r.envelope["payload"])
