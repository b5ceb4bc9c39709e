"""POST /message."""

import json

from kit import (
    ADMIN,
    ECHO,
    HELPER,
    SUPERVISOR,
    USER,
    USER2,
    WORKER,
    Background,
    address_of,
    broadcast,
    case,
    complete,
    interrupt,
    is_uuid,
    messages_of,
    new_id,
    ok,
    own_id,
    post,
    post_message,
    request,
    respond,
    run_task,
    script,
    swarm_name,
    valid_mail,
)


@case("message", "MUST")
def body_comes_back_when_the_task_completes():
    d = ok(post_message("hello there"))
    assert d["response"] == "hello there", d


@case("message", "MUST")
def events_absent_unless_asked_for():
    assert not ok(post_message("x")).get("events")


@case("message", "MUST")
def text_is_carried_unchanged():
    for b in [
        "grüße 😀 \u2028 \u0000x".replace("\u0000", ""),
        "line1\nline2\r\nline3\ttab",
        "<body>&amp;</body> \"quoted\" 'q' ]]>",
        " lead and trail ",
        '{"not": "a script"}',
    ]:
        d = ok(post_message(b))
        assert d["response"] == b, (b, d["response"])


@case("message", "ROBUST")
def body_of_300_kb():
    b = "0123456789abcdef" * (300 * 64)
    assert ok(post_message(b, timeout=20))["response"] == b


@case("message", "REF")
def show_events_lists_every_message():
    r, ev = run_task("story", subject="Subj")
    names = [n for n, _ in ev]
    assert names[0] == "new_message" and "task_complete" in names, names
    ms = messages_of(ev)
    first, last = ms[0], ms[-1]
    assert first["msg_type"] == "request" and address_of(first["message"]["sender"]) == "user:" + own_id(USER), first
    assert first["message"]["recipient"] == {"address_type": "agent", "address": SUPERVISOR}
    assert first["message"]["subject"] == "Subj" and first["message"]["body"] == "story"
    assert last["msg_type"] == "broadcast_complete" and last["message"]["body"] == "story" == r


@case("message", "MUST")
def task_complete_goes_to_agent_all_from_the_supervisor():
    _, ev = run_task("bye")
    m = messages_of(ev)[-1]
    assert m["msg_type"] == "broadcast_complete"
    assert m["message"]["recipients"] == [{"address_type": "agent", "address": "all"}], m
    assert m["message"]["sender"]["address"].split("@")[0] == SUPERVISOR and m["message"]["sender"]["address_type"] == "agent"


@case("message", "MUST")
def every_message_of_a_task_is_schema_valid_local_hops():
    _, ev = run_task(script(request(WORKER, script(request(HELPER, "deep")))))
    assert len(messages_of(ev)) >= 5
    for m in messages_of(ev):
        valid_mail(m)


@case("message", "MUST")
def user_request_and_completion_are_schema_valid():
    _, ev = run_task("plain")
    for m in messages_of(ev):
        valid_mail(m)


@case("message", "MUST")
def broadcast_and_interrupt_are_schema_valid():
    _, ev = run_task(script(broadcast("all hands"), interrupt(WORKER, "halt")))
    kinds = {m["msg_type"] for m in messages_of(ev)}
    assert {"broadcast", "interrupt"} <= kinds, kinds
    for m in messages_of(ev):
        valid_mail(m)


@case("message", "MUST")
def system_messages_are_schema_valid_and_named_after_the_swarm():
    _, ev = run_task(script(request("no-such-agent", "x")))
    sysm = [m for m in messages_of(ev) if m["message"]["sender"]["address_type"] == "system"]
    assert sysm, "no system message told the agent about its error"
    for m in sysm:
        assert m["message"]["sender"]["address"] == swarm_name(), m
        valid_mail(m)


@case("message", "REF")
def default_subject():
    _, ev = run_task("x")
    assert messages_of(ev)[0]["message"]["subject"] == "New Message"


@case("message", "MUST")
def given_task_id_is_used():
    t = new_id()
    _, ev = run_task(script(request(WORKER, "x")), task_id=t)
    assert {m["message"]["task_id"] for m in messages_of(ev)} == {t}


@case("message", "MUST")
def task_id_is_made_up_as_a_uuid():
    _, a = run_task("x")
    _, b = run_task("x")
    ta, tb = ({m["message"]["task_id"] for m in messages_of(e)} for e in (a, b))
    assert len(ta) == len(tb) == 1 and ta != tb and all(map(is_uuid, ta | tb))


@case("message", "MUST")
def entrypoint_can_be_chosen():
    _, ev = run_task("via echo", entrypoint=ECHO)
    assert messages_of(ev)[0]["message"]["recipient"]["address"] == ECHO
    assert messages_of(ev)[-1]["message"]["sender"]["address"].split("@")[0] == ECHO


@case("message", "ROBUST")
def unknown_entrypoint_does_not_hang():
    r = post_message("x", entrypoint="unknown-entrypoint")
    assert r.status_code in (200, 400, 404, 422), r.status_code
    if r.status_code == 200:
        assert r.json()["response"] != "x"


@case("message", "MUST")
def admin_messages_carry_the_admin_address_type():
    _, ev = run_task("x", tok=ADMIN)
    assert messages_of(ev)[0]["message"]["sender"] == {"address_type": "admin", "address": own_id(ADMIN)}


@case("message", "MUST")
def malformed_json_is_400():
    assert post("/message", USER, content=b"{oops").status_code == 400


@case("message", "MUST")
def non_object_is_400():
    for j in ([1], "str", 5, None):
        r = post("/message", USER, content=json.dumps(j).encode(), headers={"Content-Type": "application/json"})
        assert r.status_code == 400, (j, r.status_code)


@case("message", "MUST")
def missing_or_empty_body_is_400():
    for j in ({}, {"body": ""}, {"subject": "only"}, {"body": None}):
        r = post("/message", USER, json=j)
        assert r.status_code == 400, (j, r.status_code)


@case("message", "MUST")
def body_of_the_wrong_type_is_400():
    for b in (5, ["x"], {"a": 1}, True):
        r = post("/message", USER, json={"body": b})
        assert r.status_code == 400, (b, r.status_code, r.text[:100])


@case("message", "MUST")
def unknown_resume_from_is_400():
    r = post_message("x", resume_from="somewhere", task_id=new_id(), timeout=4)
    assert r.status_code == 400, r.status_code


@case("message", "MUST")
def kwargs_must_be_an_object():
    assert post_message("x", kwargs=[1, 2]).status_code == 400


@case("message", "REF")
def unknown_msg_type_is_400():
    assert post_message("x", msg_type="telegram").status_code == 400
    assert ok(post_message("x", msg_type=None))["response"] == "x"


@case("message", "OPENAPI")
def field_message_is_accepted_for_body():
    assert ok(post("/message", USER, json={"message": "alias"}))["response"] == "alias"


@case("message", "MUST")
def users_are_isolated_even_with_one_task_id():
    t = new_id()
    ok(post_message("mine", task_id=t, tok=USER))
    r, ev = run_task(script(complete("{{turn}}")), task_id=t, tok=USER2)
    assert r == "1", "a second user's task saw the first user's history"
    assert all(address_of(m["message"]["sender"]) != "user:" + own_id(USER) for m in messages_of(ev))


@case("message", "MUST")
def parallel_tasks_of_one_user_do_not_mix():
    bgs = [
        Background(
            lambda i=i: ok(post_message(script(request(WORKER, script(respond(SUPERVISOR, f"n{i}"), delay=0.2))), timeout=20))
        )
        for i in range(12)
    ]
    assert [b.join(25)["response"] for b in bgs] == [f"n{i}" for i in range(12)]


@case("message", "REF")
def kwargs_max_steps_ends_a_long_task():
    r = ok(
        post_message(script(request(WORKER, script(request(HELPER, script(request(WORKER, "deep")))))), kwargs={"max_steps": 2})
    )["response"]
    assert r.startswith("system|") and "steps" in r, r[:200]
