"""Messages between swarms: the cases host the other swarm."""

import json
import re

from kit import (
    ADMIN,
    ADMIN2,
    AGENT,
    CORE,
    HELPER,
    INTERSWARM,
    PEER2_TOKEN,
    PEER_TOKEN,
    SUPERVISOR,
    USER,
    USER2,
    WORKER,
    Background,
    Peer,
    answer,
    back,
    case,
    forward,
    interswarm_message,
    messages_of,
    new_id,
    ok,
    own_id,
    peer,
    peer2,
    post,
    post_message,
    remote_task,
    request,
    respond,
    run_task,
    script,
    swarm_name,
    valid_interswarm,
    valid_mail,
)

OWNER = re.compile(r"^(admin|user|swarm):[^@:]+@[^@]+$")


@case("interswarm", "MUST", needs=["inter"])
def outgoing_request_is_forwarded_with_a_valid_wrapper():
    t, bg, rec = remote_task(peer(), WORKER, "hi remote")
    m = rec["json"]["message"]
    assert set(rec["json"]) == {"message"}
    valid_interswarm(m)
    assert m["source_swarm"] == swarm_name() and m["target_swarm"] == "peer" and m["msg_type"] == "request"
    assert m["payload"]["task_id"] == t and m["payload"]["body"] == "hi remote"
    back(answer(peer(), rec, "x"))
    bg.join()


@case("interswarm", "MUST", needs=["inter"])
def outgoing_addresses_are_name_at_swarm():
    _, bg, rec = remote_task(peer(), WORKER, "hi")
    p = rec["json"]["message"]["payload"]
    assert p["sender"] == {"address_type": "agent", "address": f"{SUPERVISOR}@{swarm_name()}"}, p["sender"]
    assert p["recipient"] == {"address_type": "agent", "address": "worker@peer"}
    back(answer(peer(), rec, "x"))
    bg.join()


@case("interswarm", "MUST", needs=["inter"])
def task_owner_and_contributors():
    _, bg, rec = remote_task(peer(), WORKER, "hi")
    m = rec["json"]["message"]
    me = f"user:{own_id(USER)}@{swarm_name()}"
    assert m["task_owner"] == me, m["task_owner"]
    assert me in m["task_contributors"] and all(OWNER.match(c) for c in m["task_contributors"]), m["task_contributors"]
    back(answer(peer(), rec, "x"))
    bg.join()


@case("interswarm", "MUST", needs=["inter"])
def the_registered_token_is_used_not_the_users():
    _, bg, rec = remote_task(peer(), WORKER, "hi")
    assert rec["headers"].get("authorization") == f"Bearer {PEER_TOKEN}", rec["headers"].get("authorization")
    assert USER not in json.dumps(rec["json"])
    back(answer(peer(), rec, "x"))
    bg.join()


@case("interswarm", "REF", needs=["inter"])
def wrapper_always_has_auth_token_and_metadata_which_the_reference_demands():
    _, bg, rec = remote_task(peer(), WORKER, "hi")
    m = rec["json"]["message"]
    assert isinstance(m.get("auth_token"), str) and isinstance(m.get("metadata"), dict), sorted(m)
    back(answer(peer(), rec, "x"))
    bg.join()


@case("interswarm", "MUST", needs=["inter"])
def answer_by_back_finishes_the_task():
    t, bg, rec = remote_task(peer(), WORKER, "hi")
    d = ok(back(answer(peer(), rec, "from afar")))
    assert d["swarm"] == swarm_name() and d["task_id"] == t and d["status"] == "success" and isinstance(d["local_runner"], str), d
    r, ev = bg.join()
    assert r == "from afar"
    m = [m for m in messages_of(ev) if m["message"]["sender"]["address"] == "worker@peer"]
    assert m and m[0]["msg_type"] == "response"


@case("interswarm", "MUST", needs=["inter"])
def back_without_the_optional_fields_is_accepted():
    _, bg, rec = remote_task(peer(), WORKER, "hi")
    w = answer(peer(), rec, "lean", optional=False)
    valid_interswarm(w)
    r = back(w)
    if r.status_code != 200:
        back(answer(peer(), rec, "x"))
    assert r.status_code == 200, (r.status_code, r.text[:150])
    assert bg.join()[0] == "lean"


@case("interswarm", "MUST", needs=["inter"])
def contributors_are_notified_when_the_owner_completes():
    t, bg, rec = remote_task(peer(), WORKER, "hi")
    ok(back(answer(peer(), rec, "final words")))
    bg.join()
    n = peer().wait_task(t, ("/interswarm/back",), 5)
    assert n, "the contributing swarm never heard that the task is complete"
    m = n["json"]["message"]
    valid_interswarm(m)
    assert m["payload"]["body"] == "final words" and m["task_owner"] == rec["json"]["message"]["task_owner"]


@case("interswarm", "REF", needs=["inter"])
def completion_notice_is_a_response_with_subject_task_complete():
    t, bg, rec = remote_task(peer(), WORKER, "hi")
    ok(back(answer(peer(), rec, "fin")))
    bg.join()
    m = peer().wait_task(t, ("/interswarm/back",), 5)["json"]["message"]
    assert m["msg_type"] == "response" and m["payload"]["subject"] == "::task_complete::", m["payload"]["subject"]
    assert m["payload"]["recipient"]["address"].endswith("@peer")


@case("interswarm", "MUST", needs=["inter"])
def refused_forward_is_told_to_the_sender():
    peer().fail["/interswarm/forward"] = 500
    try:
        r, _ = run_task(script(request("worker@peer", "x")), tok=USER, timeout=5)
    finally:
        peer().fail.clear()
    assert r.startswith("system|"), r[:200]


@case("interswarm", "MUST", needs=["inter"])
def unknown_swarm_is_told_to_the_sender():
    r, _ = run_task(script(request("worker@nowhere", "x")), tok=USER, timeout=5)
    assert r.startswith("system|"), r[:200]


@case("interswarm", "MUST", needs=["inter"])
def interrupts_travel_too():
    _, bg, rec = remote_task(peer(), WORKER, "halt", kind="interrupt")
    m = rec["json"]["message"]
    assert m["msg_type"] == "interrupt" and [a["address"] for a in m["payload"]["recipients"]] == ["worker@peer"], m
    valid_interswarm(m)
    ok(back(answer(peer(), rec, "halted")))
    assert bg.join()[0] == "halted"


@case("interswarm", "MUST", needs=["inter"])
def non_public_swarms_can_still_be_reached():
    _, bg, rec = remote_task(peer2(), HELPER, "psst")
    assert rec["headers"].get("authorization") == f"Bearer {PEER2_TOKEN}"
    ok(back(answer(peer2(), rec, "ok")))
    assert bg.join()[0] == "ok"


@case("interswarm", "MUST", needs=["inter"])
def incoming_forward_runs_and_the_answer_goes_back():
    w = interswarm_message(peer(), body="ping")
    valid_interswarm(w)
    t = w["payload"]["task_id"]
    d = ok(forward(w))
    assert d["swarm"] == swarm_name() and d["task_id"] == t and d["status"] == "success"
    assert re.match(rf"^swarm:[^@]+@{re.escape(swarm_name())}$", d["local_runner"]), d
    b = peer().wait_task(t, ("/interswarm/back",))
    assert b, "no /interswarm/back came"
    m = b["json"]["message"]
    valid_interswarm(m)
    assert (
        m["msg_type"] == "response"
        and m["payload"]["body"] == "worker:ping"
        and m["payload"]["recipient"]["address"] == "supervisor@peer"
    )


@case("interswarm", "MUST", needs=["inter"])
def incoming_forward_keeps_owner_and_adds_this_instance():
    w = interswarm_message(peer(), owner="user:alice-7@peer")
    d = ok(forward(w))
    m = peer().wait_task(w["payload"]["task_id"], ("/interswarm/back",))["json"]["message"]
    assert m["task_owner"] == "user:alice-7@peer"
    assert "user:alice-7@peer" in m["task_contributors"] and d["local_runner"] in m["task_contributors"], m["task_contributors"]


@case("interswarm", "MUST", needs=["inter"])
def forward_without_the_optional_fields_is_accepted():
    w = interswarm_message(peer(), optional=False)
    valid_interswarm(w)
    ok(forward(w))
    assert peer().wait_task(w["payload"]["task_id"], ("/interswarm/back",))


@case("interswarm", "MUST", needs=["inter"])
def task_complete_for_a_remote_owner_returns_the_finish_message():
    w = interswarm_message(peer(), to=f"{SUPERVISOR}@{swarm_name()}", body="done by the boss")
    ok(forward(w))
    b = peer().wait_task(w["payload"]["task_id"], ("/interswarm/back", "/interswarm/forward"), 4)
    assert b, "the finish message never came back to the swarm that asked"
    assert "done by the boss" in b["json"]["message"]["payload"]["body"]


@case("interswarm", "MUST", needs=["inter"])
def local_hops_on_a_remote_task():
    w = interswarm_message(
        peer(), body=script(request(HELPER, script(respond(WORKER, script(respond("supervisor@peer", "via helper"))))))
    )
    ok(forward(w))
    b = peer().wait_task(w["payload"]["task_id"], ("/interswarm/back",))
    assert b and b["json"]["message"]["payload"]["body"] == "via helper"


@case("interswarm", "MUST", needs=["inter"])
def follow_up_on_a_remote_task_keeps_its_history():
    w = interswarm_message(peer(), body="first")
    t = w["payload"]["task_id"]
    d = ok(forward(w))
    assert peer().wait_task(t, ("/interswarm/back",))
    w2 = interswarm_message(
        peer(),
        body=script(respond("supervisor@peer", "{{turn}}|{{first}}")),
        task_id=t,
        contributors=["user:bob@peer", d["local_runner"]],
    )
    ok(back(w2))
    b = peer().wait_task(t, ("/interswarm/back",), matches=lambda m: "|" in m["payload"]["body"])
    assert b and b["json"]["message"]["payload"]["body"] == "2|first", b and b["json"]["message"]["payload"]["body"]


@case("interswarm", "MUST", needs=["inter"])
def unknown_local_agent_is_not_200():
    assert forward(interswarm_message(peer(), to=f"ghost@{swarm_name()}")).status_code != 200


@case("interswarm", "MUST", needs=["inter"])
def wrong_target_swarm_is_not_200():
    assert forward(interswarm_message(peer(), target="another")).status_code != 200


@case("interswarm", "MUST", needs=["inter"])
def each_required_wrapper_field_is_checked():
    bad = {}
    for f in INTERSWARM["required"]:
        w = interswarm_message(peer())
        del w[f]
        s = forward(w).status_code
        if s != 400:
            bad[f] = s
    assert not bad, bad


@case("interswarm", "MUST", needs=["inter"])
def wrapper_field_types_are_checked():
    bad = {}
    for f, v in (
        ("payload", "x"),
        ("task_contributors", "x"),
        ("task_owner", 5),
        ("timestamp", 5),
        ("message_id", 7),
        ("msg_type", 1),
        ("source_swarm", None),
    ):
        w = interswarm_message(peer())
        w[f] = v
        s = forward(w).status_code
        if s != 400:
            bad[f] = s
    assert not bad, bad


@case("interswarm", "MUST", needs=["inter"])
def payload_required_fields_are_checked():
    bad = {}
    for f in CORE["$defs"]["MAILRequest"]["required"]:
        w = interswarm_message(peer())
        del w["payload"][f]
        s = forward(w).status_code
        if s != 400:
            bad[f] = s
    assert not bad, bad


@case("interswarm", "MUST", needs=["inter"])
def unknown_msg_type_is_400():
    w = interswarm_message(peer())
    w["msg_type"] = "telegram"
    assert forward(w).status_code == 400


@case("interswarm", "MUST", needs=["inter"])
def malformed_json_is_400():
    for p in ("/interswarm/forward", "/interswarm/back"):
        assert post(p, AGENT, content=b"{").status_code == 400, p
        assert post(p, AGENT, json={}).status_code == 400, p
        assert post(p, AGENT, json={"message": [1]}).status_code == 400, p


@case("interswarm", "MUST", needs=["inter"])
def back_for_an_unknown_task_is_4xx():
    r = back(interswarm_message(peer(), "response", to=f"{SUPERVISOR}@{swarm_name()}", owner=f"user:x@{swarm_name()}"))
    assert 400 <= r.status_code < 500, r.status_code


@case("interswarm", "MUST", needs=["inter"])
def back_cannot_change_the_owner():
    _, bg, rec = remote_task(peer(), WORKER, "hi")
    w = answer(peer(), rec, "forged")
    w["task_owner"] = f"user:mallory@{swarm_name()}"
    s = back(w).status_code
    ok(back(answer(peer(), rec, "honest")))
    assert s != 200 and bg.join()[0] == "honest"


@case("interswarm", "MUST", needs=["inter"])
def admin_tasks_have_an_admin_owner():
    t = new_id()
    bg = Background(lambda: run_task(script(request("worker@peer", "hi")), tok=ADMIN2, task_id=t, timeout=5))
    rec = peer().wait_task(t, ("/interswarm/forward",), 4)
    assert rec, "no forward came"
    assert rec["json"]["message"]["task_owner"] == f"admin:{own_id(ADMIN2)}@{swarm_name()}"
    back(answer(peer(), rec, "x"))
    bg.join()


@case("interswarm", "ROBUST", needs=["inter"])
def swarm_registered_after_the_users_first_message_is_reachable():
    tok = USER2
    ok(post_message("warm", tok=tok))
    p = Peer("nowhere", "tok-late")
    try:
        ok(post("/swarms", ADMIN, json={"name": "nowhere", "base_url": p.url, "auth_token": "tok-late", "volatile": True}))
        t = new_id()
        bg = Background(lambda: run_task(script(request("helper@nowhere", "hi")), tok=tok, task_id=t, timeout=5))
        rec = p.wait_task(t, ("/interswarm/forward",), 3)
        assert rec, "a volatile swarm registered at run time is not reachable"
        assert rec["headers"].get("authorization") == "Bearer tok-late"
        back(answer(p, rec, "hey"))
        bg.join()
    finally:
        p.stop()


@case("intermessage", "MUST")
def missing_parts_are_refused():
    base = {"user_token": USER, "body": "x", "targets": ["worker@peer"]}
    for k, want in (("user_token", (400, 401)), ("body", (400,)), ("targets", (400,))):
        j = {x: y for x, y in base.items() if x != k}
        s = post("/interswarm/message", USER, json=j).status_code
        assert s in want, (k, s)


@case("intermessage", "MUST")
def bad_values_are_400():
    for kw in ({"msg_type": "interrupt"}, {"targets": ["a@peer", "b@peer"]}, {"targets": []}, {"body": ""}):
        j = {"user_token": USER, "body": "x", "targets": ["worker@peer"], **kw}
        s = post("/interswarm/message", USER, json=j).status_code
        assert s == 400, (kw, s)


@case("intermessage", "MUST")
def malformed_message_json_is_400():
    assert post("/interswarm/message", USER, content=b"{").status_code == 400


@case("intermessage", "MUST", needs=["inter"])
def unknown_swarm_is_not_200():
    r = post("/interswarm/message", USER, json={"user_token": USER, "body": "x", "targets": ["worker@no-such-swarm"]})
    assert r.status_code != 200


def answer_with(body):
    def go(rec):
        if rec["path"] == "/interswarm/forward":
            back(answer(peer(), rec, body))

    return go


@case("intermessage", "MUST", needs=["inter"])
def request_to_a_remote_agent_returns_its_mail_message():
    peer().auto = answer_with("direct:ask")
    try:
        d = ok(
            post(
                "/interswarm/message", USER, json={"user_token": USER, "body": "ask", "targets": ["worker@peer"], "subject": "Q"}
            )
        )
    finally:
        peer().auto = None
    assert set(d) <= {"response", "events"}, sorted(d)
    valid_mail(d["response"])
    assert "direct:ask" in d["response"]["message"]["body"]


@case("intermessage", "MUST", needs=["inter"])
def stream_flag_travels_in_routing_info():
    n = len(peer().seen)
    t = new_id()
    peer().auto = answer_with("direct:ask")
    try:
        post(
            "/interswarm/message",
            USER,
            json={"user_token": USER, "body": "ask", "targets": ["worker@peer"], "stream": True, "task_id": t},
        )
    finally:
        peer().auto = None
    seen = [r for r in peer().seen[n:] if r["path"] in ("/interswarm/message", "/interswarm/forward")]
    assert seen, "nothing reached the peer"
    j = seen[0]["json"]
    ri = j.get("routing_info") or (j.get("message") or {}).get("payload", {}).get("routing_info") or {}
    assert ri.get("stream") is True, j


@case("intermessage", "MUST", needs=["inter"])
def message_and_target_agent_are_accepted():
    peer().auto = answer_with("direct:ask")
    try:
        r = post("/interswarm/message", USER, json={"user_token": USER, "message": "ask", "target_agent": "worker@peer"})
    finally:
        peer().auto = None
    assert r.status_code == 200, (r.status_code, "spec: `message` or `body`, `target_agent` or `targets`", r.text[:150])
