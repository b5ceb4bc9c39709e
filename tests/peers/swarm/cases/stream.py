"""Server-sent events of a running task."""

import json

import httpx

from kit import (
    RFC3339,
    TIMEOUT,
    URL,
    USER,
    WORKER,
    Background,
    bearer,
    case,
    complete,
    is_uuid,
    messages_of,
    new_id,
    ok,
    post_message,
    request,
    script,
    stream,
    valid_mail,
)


@case("stream", "MUST")
def sse_until_completion():
    h, st, ev, raw = stream(script(request(WORKER, "hi")), subject="S1")
    assert st == 200 and h["content-type"].startswith("text/event-stream"), (st, h.get("content-type"))
    assert ev and ev[-1][1] == "task_complete", [e[1] for e in ev]


@case("stream", "REF")
def last_event_carries_the_response():
    _, _, ev, _ = stream("bye now")
    d = ev[-1][2]
    assert d["response"] == "bye now" and is_uuid(d["task_id"]) and RFC3339.match(d["timestamp"]), d


@case("stream", "REF")
def new_message_events_show_every_hop():
    t = new_id()
    _, _, ev, _ = stream(script(request(WORKER, "hi")), task_id=t)
    ms = messages_of([(n, d) for _, n, d in ev])
    assert [m["msg_type"] for m in ms] == ["request", "request", "response", "broadcast_complete"], [m["msg_type"] for m in ms]
    assert {d["task_id"] for _, n, d in ev if isinstance(d, dict)} == {t}


@case("stream", "MUST")
def streamed_messages_are_schema_valid():
    _, _, ev, _ = stream(script(request(WORKER, "hi")))
    ms = messages_of([(n, d) for _, n, d in ev])
    assert ms
    for m in ms:
        valid_mail(m)


@case("stream", "MUST")
def events_arrive_while_the_task_runs():
    _, _, ev, _ = stream(script(complete("late"), delay=2), timeout=12)
    assert ev[0][0] < 1.2 and ev[-1][0] > 1.8, [(round(t, 2), n) for t, n, _ in ev]


@case("stream", "REF")
def a_ping_within_20_seconds_of_silence():
    _, _, ev, _ = stream(script(complete("late"), delay=21), timeout=40)
    pings = [t for t, n, _ in ev if n == "ping" or n == ":comment"]
    assert pings and pings[0] < 20.5, [(round(t, 1), n) for t, n, _ in ev]
    assert ev[-1][1] == "task_complete" and ev[-1][2]["response"] == "late"


@case("stream", "MUST")
def malformed_stream_request_is_400_json():
    _, st, _, _ = stream("")
    assert st == 400


@case("stream", "MUST")
def stream_needs_a_token():
    with httpx.stream("POST", URL + "/message", json={"body": "x", "stream": True}, timeout=TIMEOUT) as r:
        assert r.status_code == 401


@case("stream", "ROBUST")
def multi_line_text_survives():
    b = "one\n\ntwo\r\nevent: fake\ndata: fake\n\n"
    _, _, ev, _ = stream(b)
    assert ev[-1][1] == "task_complete" and ev[-1][2]["response"] == b


@case("stream", "REF")
def resumed_stream_shows_only_the_new_turn():
    t = new_id()
    ok(post_message("old turn", task_id=t))
    _, _, ev, raw = stream("new turn", task_id=t, resume_from="user_response")
    assert ev[-1][2]["response"] == "new turn"
    assert b"old turn" not in raw


@case("stream", "REF")
def resuming_an_unknown_task_streams_task_error_or_4xx():
    _, st, ev, _ = stream("x", task_id=new_id(), resume_from="user_response")
    assert st in (400, 404) or ev[-1][1] == "task_error", (st, [e[1] for e in ev])


@case("stream", "REF")
def breakpoint_ends_the_stream():
    _, _, ev, _ = stream(script(("ask_human", {"text": "?"})), timeout=25)
    names = [n for _, n, _ in ev]
    assert "breakpoint_tool_call" in names and names[-1] == "task_complete", names
    assert json.loads(ev[-1][2]["response"])[0]["name"] == "ask_human"


@case("stream", "ROBUST")
def a_breakpoint_stream_ends_promptly():
    _, _, ev, _ = stream(script(("ask_human", {"text": "?"})), timeout=25)
    assert ev[-1][0] < 3, f"the stream stayed open {ev[-1][0]:.1f} s after the task paused"


@case("stream", "ROBUST")
def a_client_that_leaves_does_not_break_the_next_one():
    with httpx.stream(
        "POST",
        URL + "/message",
        headers=bearer(USER),
        json={"body": script(complete("gone"), delay=1), "stream": True},
        timeout=TIMEOUT,
    ) as r:
        next(r.iter_raw())
    assert ok(post_message("still here"))["response"] == "still here"


@case("stream", "ROBUST")
def twenty_streams_at_once():
    bgs = [Background(lambda i=i: stream(script(request(WORKER, f"s{i}")), timeout=30)) for i in range(20)]
    got = [b.join(40)[2][-1][2]["response"] for b in bgs]
    assert got == [f"worker:s{i}" for i in range(20)], got
