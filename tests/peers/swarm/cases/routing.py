"""Messages between the agents of a swarm, and their tools."""

import re

from kit import (
    ECHO,
    HELPER,
    SUPERVISOR,
    WORKER,
    broadcast,
    case,
    complete,
    interrupt,
    is_uuid,
    messages_of,
    ok,
    post_message,
    recipients_of,
    request,
    respond,
    run_task,
    script,
    swarm_name,
)


@case("routing", "MUST")
def one_hop():
    assert run_task(script(request(WORKER, "ping")))[0] == "worker:ping"


@case("routing", "MUST")
def three_agents_deep():
    assert run_task(script(request(WORKER, script(request(HELPER, "deep")))))[0] == "worker<helper:deep"


@case("routing", "MUST")
def request_and_response_have_their_own_ids_and_types():
    _, ev = run_task(script(request(WORKER, "ping", "Q1")))
    k = [(m["msg_type"], m["message"]["sender"]["address"], recipients_of(m)) for m in messages_of(ev)]
    assert ("request", SUPERVISOR, [WORKER]) in k and ("response", WORKER, [SUPERVISOR]) in k, k
    ids = [m["id"] for m in messages_of(ev)]
    assert len(set(ids)) == len(ids) and all(map(is_uuid, ids))


@case("routing", "MUST")
def address_qualified_with_the_local_swarm_is_local():
    r, _ = run_task(script(request(f"{WORKER}@{swarm_name()}", "ping")))
    assert r == "worker:ping", r[:200]


@case("routing", "MUST")
def broadcast_reaches_every_other_agent_once():
    r, ev = run_task(script(broadcast("news"), request(WORKER, "after")))
    assert r == "worker:after", r
    got = [d["extra_data"] for n, d in ev if n == "tool_call" and d["extra_data"]["tool_name"] == "acknowledge_broadcast"]
    assert len(got) == 3, f"3 other agents should have been handed the broadcast, {len(got)} were"
    b = [m for m in messages_of(ev) if m["msg_type"] == "broadcast"]
    assert b and all(m["message"]["recipients"] == [{"address_type": "agent", "address": "all"}] for m in b)
    assert len({m["id"] for m in b}) == 1


@case("routing", "MUST")
def interrupt_is_delivered_as_interrupt():
    r, ev = run_task(script(interrupt(WORKER, "halt")))
    assert r == "worker!halt"
    m = [m for m in messages_of(ev) if m["msg_type"] == "interrupt"]
    assert len(m) == 1 and recipients_of(m[0]) == [WORKER] and "interrupt_id" in m[0]["message"]


@case("routing", "MUST")
def priority_interrupt_then_broadcast_then_requests_in_order():
    _, ev = run_task(script(request(WORKER, "r1"), broadcast("bb"), request(HELPER, "r2"), interrupt(HELPER, "ii")))
    order = [(m["msg_type"], m["message"]["body"]) for m in messages_of(ev) if m["message"]["sender"]["address"] == SUPERVISOR]
    seq = [x for i, x in enumerate(order) if x not in order[:i]][:4]
    assert seq == [("interrupt", "ii"), ("broadcast", "bb"), ("request", "r1"), ("request", "r2")], seq


@case("routing", "MUST")
def ties_are_fifo():
    _, ev = run_task(script(*[request(WORKER if i % 2 else HELPER, f"m{i}") for i in range(6)]))
    got = [
        m["message"]["body"]
        for m in messages_of(ev)
        if m["message"]["sender"]["address"] == SUPERVISOR and m["msg_type"] == "request"
    ]
    assert got == [f"m{i}" for i in range(6)], got


@case("routing", "SHOULD")
def comm_targets_limit_who_can_be_reached():
    r, _ = run_task(script(request(HELPER, script(request(ECHO, "x")))))
    assert r.startswith("helper|system|"), r[:200]


@case("routing", "MUST")
def unknown_recipient_is_told_to_the_sender_and_the_task_goes_on():
    r, _ = run_task(script(request("zed", "x")))
    assert r.startswith("system|"), r[:200]


@case("routing", "REF")
def system_error_subjects_have_double_colons():
    r, _ = run_task(script(request("zed", "x")))
    assert re.match(r"system\|::[a-z_]+::\|", r), r[:120]


@case("routing", "SHOULD")
def only_supervisors_can_complete():
    r, ev = run_task(script(request(WORKER, script(complete("by worker")))))
    assert r != "by worker", "an agent without can_complete_tasks ended the task"
    assert "worker|" in r or r.startswith("system|"), r[:200]


@case("routing", "ROBUST")
def second_task_complete_in_a_turn_changes_nothing():
    r, ev = run_task(script(complete("first"), complete("second")))
    assert r == "first" and sum(1 for m in messages_of(ev) if m["msg_type"] == "broadcast_complete") == 1


@case("routing", "ROBUST")
def messages_sent_after_completion_go_nowhere():
    r, ev = run_task(script(complete("over"), request(WORKER, "late")))
    assert r == "over"
    assert not [m for m in messages_of(ev) if recipients_of(m) == [WORKER]]


@case("routing", "MUST")
def await_message_parks_the_agent_until_the_answer():
    r, ev = run_task(script(request(WORKER, "ping"), ("await_message", {"reason": "for worker"})))
    assert r == "worker:ping"
    assert [d for n, d in ev if n == "await_message"] or True


@case("routing", "REF")
def await_message_with_nothing_outstanding_is_an_error_not_a_freeze():
    r, _ = run_task(script(("await_message", {})))
    assert r.startswith("system|::tool_call_error::|"), r[:200]


@case("routing", "MUST")
def ignore_broadcast_sends_nothing():
    r, ev = run_task(
        script(
            ("send_broadcast", {"subject": "B: q", "body": script(("ignore_broadcast", {"reason": "no"}))}),
            request(WORKER, "after"),
        )
    )
    assert r == "worker:after"
    assert not [m for m in messages_of(ev) if m["message"]["subject"].startswith("Re: B:")]


def _messages_the_worker_remembers_after(tool):
    ask = script(request(WORKER, script(respond(SUPERVISOR, "{{turn}}"))))
    return run_task(
        script(
            ("send_broadcast", {"subject": "B: x", "body": script((tool, {}))}),
            request(HELPER, script(respond(SUPERVISOR, ask), delay=0.4)),
        )
    )[0]


@case("routing", "MUST")
def acknowledged_broadcast_is_kept_in_memory():
    assert _messages_the_worker_remembers_after("acknowledge_broadcast") == "2"


@case("routing", "MUST")
def ignored_broadcast_is_not_kept_in_memory():
    r = _messages_the_worker_remembers_after("ignore_broadcast")
    assert r == "1", f"the worker's history holds {r} messages, the ignored broadcast included"


@case("routing", "REF")
def acknowledge_broadcast_on_a_request_is_a_tool_error():
    r, _ = run_task(script(("acknowledge_broadcast", {"note": "n"})))
    assert r.startswith("system|::tool_call_error::|"), r[:200]


@case("routing", "MUST")
def bad_tool_arguments_come_back_as_a_system_error():
    r, _ = run_task(script(("send_request", {"target": WORKER})))
    assert r.startswith("system|"), r[:200]


@case("routing", "MUST")
def unknown_tool_comes_back_as_a_system_error():
    r, _ = run_task(script(("frobnicate", {"a": 1})))
    assert r.startswith("system|"), r[:200]


@case("routing", "MUST")
def turn_without_tool_calls_does_not_hang_the_task():
    d = ok(post_message(script()))
    assert d["response"], d


@case("routing", "REF")
def help_tool_tells_identity():
    r, _ = run_task(script(("help", {"get_summary": False, "get_identity": True})))
    assert SUPERVISOR in r and swarm_name() in r and f"{SUPERVISOR}@{swarm_name()}" in r, r[:200]


@case("routing", "SHOULD")
def action_result_returns_to_the_caller():
    r, ev = run_task(script(("upper", {"text": "abc"})))
    assert r == "action|SUCCESS: ABC" or (r.startswith("action|") and r.endswith("ABC")), r
    assert "action_call" in [n for n, _ in ev] and "action_complete" in [n for n, _ in ev]


@case("routing", "SHOULD")
def failing_action_does_not_end_the_task():
    r, _ = run_task(script(("boom", {"text": "abc"})))
    assert "boom abc" in r and (r.startswith("action|") or r.startswith("system|")), r


@case("routing", "SHOULD")
def action_not_granted_to_the_agent_is_refused():
    r, _ = run_task(script(request(WORKER, script(("boom", {"text": "q"})))))
    assert r.startswith("worker|system|"), r
