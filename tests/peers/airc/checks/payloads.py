"""Payload types of the extension: which are accepted, which refused."""

import time

from suite import INVALID, section
from wire import (
    OMITTED,
    ack_payload,
    conflict_payload,
    find,
    iso,
    mailbox_payload,
    payload_of,
    reservation_payload,
    thread_payload,
)


def accepts_and_refuses(t, a, b, tag, good, bad):
    for name, p in good:
        t.accept(tag, "good: " + name, a.send(b, p))
    for name, p in bad:
        t.status(tag, "bad: " + name, a.send(b, p), *INVALID)


@section("context-thread", 13)
def context_thread(t, api):
    a, b = t.contacts("cta", "ctb")
    accepts_and_refuses(
        t,
        a,
        b,
        "ext",
        [
            ("minimal", thread_payload()),
            ("all fields", thread_payload(participants=["@alice", "@bob"], status="open", updated_ts=iso())),
            ("closed", thread_payload(status="closed")),
            ("unknown extra field", thread_payload(colour="blue")),
        ],
        [
            ("no thread_id", thread_payload(thread_id=OMITTED)),
            ("no subject", thread_payload(subject=OMITTED)),
            ("no created_ts", thread_payload(created_ts=OMITTED)),
            ("status not in the list", thread_payload(status="paused")),
            ("participants is a string", thread_payload(participants="@alice")),
            ("created_ts not a timestamp", thread_payload(created_ts="yesterday")),
            ("subject is a number", thread_payload(subject=7)),
        ],
    )
    r = a.send(b, thread_payload(thread_id="tid-1", subject="first"))
    r2 = a.send(b, thread_payload(thread_id="tid-1", subject="second", updated_ts=iso()))
    t.check("ext", "sending it again with the same thread_id updates (accepted)", r.ok and r2.ok, r2)
    c = t.agent("ctc")
    a.send(b, thread_payload(participants=["@" + b.handle, "@" + c.handle]))
    t.status("ext", "being listed as participant grants no consent", c.send_text(b, "hi"), 403)


@section("context-mailbox", 15)
def context_mailbox(t, api):
    a, b = t.contacts("cma", "cmb")
    accepts_and_refuses(
        t,
        a,
        b,
        "ext",
        [
            ("minimal", mailbox_payload()),
            ("all fields", mailbox_payload(thread_id="bd-1", ack_required=True, priority="urgent", expires_ts=iso(3600))),
            ("priority low", mailbox_payload(priority="low")),
        ],
        [
            ("no message_id", mailbox_payload(message_id=OMITTED)),
            ("no subject", mailbox_payload(subject=OMITTED)),
            ("no body_md", mailbox_payload(body_md=OMITTED)),
            ("priority not in the list", mailbox_payload(priority="asap")),
            ("ack_required is a string", mailbox_payload(ack_required="yes")),
            ("expires_ts not a timestamp", mailbox_payload(expires_ts="soon")),
            ("body_md is an object", mailbox_payload(body_md={"md": "x"})),
        ],
    )
    # asynchronous delivery: b never sent a heartbeat
    r = a.send(b, mailbox_payload(ack_required=True))
    t.check("ext", "mailbox entry waits for an offline recipient", b.received(r.envelope["id"]) is not None)
    k = b.send(a, ack_payload(r.envelope["payload"]["message_id"], response="Got it."))
    t.accept("ext", "recipient acknowledges", k)
    t.check(
        "ext",
        "the acknowledgment reaches the sender",
        find(a.inbox(payload_type="context:mailbox_ack"), k.envelope["id"]) is not None,
    )
    r = a.send(b, mailbox_payload(expires_ts=iso(3)))
    t.check("ext", "entry is visible before expires_ts", r.ok and b.received(r.envelope["id"], wait=1) is not None, r)
    time.sleep(4)
    t.check("ext", "entry is hidden after expires_ts", find(b.inbox(limit=200), r.envelope["id"]) is None)


@section("context-mailbox-ack", 7)
def context_mailbox_ack(t, api):
    a, b = t.contacts("cka", "ckb")
    r = a.send(b, mailbox_payload(ack_required=True))
    i = r.envelope["payload"]["message_id"]
    accepts_and_refuses(
        t,
        b,
        a,
        "ext",
        [
            ("minimal", ack_payload(i)),
            ("response of exactly 500 characters", ack_payload(i, response="é" * 500)),
        ],
        [
            ("no message_id", ack_payload(i, message_id=OMITTED)),
            ("no ack_ts", ack_payload(i, ack_ts=OMITTED)),
            ("ack_ts not a timestamp", ack_payload(i, ack_ts="now")),
            ("response over 500 characters", ack_payload(i, response="x" * 501)),
            ("response is a number", ack_payload(i, response=1)),
        ],
    )


@section("context-reservation", 26)
def context_reservation(t, api):
    a, b = t.contacts("cra", "crb")
    accepts_and_refuses(
        t,
        a,
        b,
        "ext",
        [
            ("example of the specification", reservation_payload(["api/auth.ts", "api/session.ts"], thread_id="bd-123")),
            ("exclusive omitted (default true)", reservation_payload(exclusive=OMITTED)),
            ("shared", reservation_payload(exclusive=False)),
            ("project scope", reservation_payload(scope="project:my-project")),
            ("reason omitted", reservation_payload(reason=OMITTED)),
            ("path with spaces and unicode", reservation_payload(["docs/Über uns/read me.md"])),
            ("unknown extra field", reservation_payload(editor="vim")),
        ],
        [
            ("no reservation_id", reservation_payload(reservation_id=OMITTED)),
            ("no scope", {k: v for k, v in reservation_payload().items() if k != "scope"}),
            ("no paths", {k: v for k, v in reservation_payload().items() if k != "paths"}),
            ("empty paths", reservation_payload([])),
            ("paths is a string", {**reservation_payload(), "paths": "api/auth.ts"}),
            ("path is a number", reservation_payload([7])),
            ("absolute path /etc/passwd", reservation_payload(["/etc/passwd"])),
            ("absolute path after a good one", reservation_payload(["api/a.ts", "/home/x/api/b.ts"])),
            ("Windows absolute path", reservation_payload(["C:\\src\\a.ts"])),
            ("no status", reservation_payload(status=OMITTED)),
            ("status not in the list", reservation_payload(status="locked")),
            ("no ttl_seconds", reservation_payload(ttl_seconds=OMITTED)),
            ("ttl_seconds zero", reservation_payload(ttl_seconds=0)),
            ("ttl_seconds negative", reservation_payload(ttl_seconds=-5)),
            ("ttl_seconds is a string", reservation_payload(ttl_seconds="3600")),
            ("no issued_ts", reservation_payload(issued_ts=OMITTED)),
            ("no expires_ts", reservation_payload(expires_ts=OMITTED)),
            ("expires_ts before issued_ts", reservation_payload(expires_ts=iso(-7200))),
            ("exclusive is a string", reservation_payload(exclusive="yes")),
        ],
    )


@section("context-conflict", 7)
def context_conflict(t, api):
    a, b = t.contacts("cca", "ccb")
    accepts_and_refuses(
        t,
        a,
        b,
        "ext",
        [
            ("example of the specification", conflict_payload("rsv-9f3a")),
            ("proposal split", conflict_payload("rsv-9f3a", proposal="split")),
        ],
        [
            ("no conflicting_reservation_id", conflict_payload("x", conflicting_reservation_id=OMITTED)),
            ("no requested_paths", conflict_payload("x", requested_paths=OMITTED)),
            ("requested_paths absolute", conflict_payload("x", requested_paths=["/etc/passwd"])),
            ("proposal not in the list", conflict_payload("x", proposal="steal")),
            ("requested_paths is a string", conflict_payload("x", requested_paths="api/auth.ts")),
        ],
    )


@section("payloads-more", 30)
def payloads_more(t, api):
    def run(pairs, good):
        a, b = t.contacts("paa", "pab")
        for name, p in pairs:
            r = a.send(b, p)
            if good:
                t.accept("ext", "good: " + name, r)
            else:
                t.status("ext", "bad: " + name, r, *INVALID)
        return a, b

    run(
        [
            ("thread archived", thread_payload(status="archived")),
            ("thread timestamp with fraction and +00:00", thread_payload(created_ts="2026-01-06T12:00:00.123+00:00")),
            ("thread with empty participants", thread_payload(participants=[])),
            ("mailbox ack_required false", mailbox_payload(ack_required=False)),
            ("mailbox priority high", mailbox_payload(priority="high")),
            ("mailbox with unknown field", mailbox_payload(labels=["x"])),
            ("reservation with glob path", reservation_payload(["src/**/*.ts"])),
            ("reservation of a dotfile", reservation_payload([".github/workflows/ci.yml"])),
            ("reservation path containing dots", reservation_payload(["src/..hidden/a..b.ts"])),
            ("reservation repo scope with https remote", reservation_payload(scope="repo:https://github.com/example/app.git")),
            ("conflict proposal wait", conflict_payload("rsv-1", proposal="wait")),
            ("conflict proposal share", conflict_payload("rsv-1", proposal="share")),
            ("conflict without reason and urgency", conflict_payload("rsv-1", reason=OMITTED, urgency=OMITTED)),
            ("unknown context type passes through", {"type": "context:weather", "sky": "grey"}),
            ("context:code of the core registry", {"type": "context:code", "data": {"file": "auth.ts", "line": 42}}),
            (
                "context:attestation of another extension",
                {"type": "context:attestation", "attestation_id": "att-1", "subject": "x"},
            ),
        ],
        True,
    )
    run(
        [
            ("thread updated_ts not a timestamp", thread_payload(updated_ts=12)),
            ("thread participants with a number", thread_payload(participants=["@a", 3])),
            ("thread_id is a number", thread_payload(thread_id=5)),
            ("thread_id empty", thread_payload(thread_id="")),
            ("thread subject null", thread_payload(subject=None)),
            ("mailbox message_id is a number", mailbox_payload(message_id=5)),
            ("mailbox message_id empty", mailbox_payload(message_id="")),
            ("mailbox thread_id is a number", mailbox_payload(thread_id=5)),
            ("mailbox expires_ts is a number", mailbox_payload(expires_ts=1767787200)),
            ("mailbox priority is a number", mailbox_payload(priority=1)),
            ("mailbox body_md null", mailbox_payload(body_md=None)),
        ],
        False,
    )
    wrap = lambda p: {"type": p["type"], "data": {k: v for k, v in p.items() if k != "type"}}
    a, b = t.contacts("pac", "pad")
    r = a.send(b, wrap(mailbox_payload()))
    t.accept("prof", "good: fields under payload.data (channel client) accepted", r)
    t.check("prof", "and delivered unchanged", payload_of(b.received(r.envelope["id"]) or {}) == r.envelope["payload"])
    t.status(
        "prof", "bad: wrapped reservation with absolute path", a.send(b, wrap(reservation_payload(["/etc/passwd"]))), *INVALID
    )
