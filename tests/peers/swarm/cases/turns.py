"""Tasks with several turns, and breakpoint tools."""

import json

from kit import HELPER, SUPERVISOR, WORKER, Background, case, complete, new_id, ok, post_message, request, respond, script


@case("multiturn", "MUST")
def follow_up_with_resume_from_user_response():
    t = new_id()
    assert ok(post_message("one", task_id=t))["response"] == "one"
    r = ok(post_message(script(complete("{{turn}}|{{first}}")), task_id=t, resume_from="user_response"))["response"]
    assert r == "2|one", r


@case("multiturn", "MUST")
def follow_up_with_the_task_id_alone():
    t = new_id()
    assert ok(post_message("one", task_id=t))["response"] == "one"
    assert ok(post_message("two", task_id=t, timeout=4))["response"] == "two"


@case("multiturn", "MUST")
def history_of_other_agents_survives_completion():
    t = new_id()
    assert ok(post_message(script(request(WORKER, "w-one")), task_id=t))["response"] == "worker:w-one"
    r = ok(
        post_message(
            script(request(WORKER, script(respond(SUPERVISOR, "{{turn}}|{{first}}")))), task_id=t, resume_from="user_response"
        )
    )["response"]
    assert r == "2|w-one", r


@case("multiturn", "MUST")
def history_is_scoped_by_task():
    ok(post_message("one", task_id=new_id()))
    assert ok(post_message(script(complete("{{turn}}"))))["response"] == "1"


@case("multiturn", "MUST")
def five_turns():
    t = new_id()
    ok(post_message("t1", task_id=t))
    for i in range(2, 6):
        assert ok(post_message(script(complete("{{turn}}")), task_id=t, resume_from="user_response"))["response"] == str(i)


@case("multiturn", "MUST")
def second_turn_may_use_other_agents():
    t = new_id()
    ok(post_message("one", task_id=t))
    assert ok(post_message(script(request(HELPER, "two")), task_id=t, resume_from="user_response"))["response"] == "helper:two"


@case("multiturn", "ROBUST")
def resuming_an_unknown_task_is_an_error_not_a_hang():
    r = post_message("x", task_id=new_id(), resume_from="user_response", timeout=5)
    assert r.status_code in (400, 404) or (r.status_code == 200 and "not found" in r.json()["response"]), (
        r.status_code,
        r.text[:200],
    )


@case("multiturn", "ROBUST")
def two_posts_at_once_on_one_task_both_get_an_answer():
    t = new_id()
    b = [Background(lambda i=i: post_message(script(complete(f"d{i}"), delay=0.4), task_id=t, timeout=5)) for i in range(2)]
    codes = [x.join(8).status_code for x in b]
    assert all(c in (200, 409) for c in codes), codes


@case("breakpoint", "MUST")
def breakpoint_tool_pauses_and_resumes():
    t = new_id()
    d = ok(post_message(script(("ask_human", {"text": "proceed?"})), task_id=t))
    c = json.loads(d["response"])
    assert isinstance(c, list) and len(c) == 1 and c[0]["name"] == "ask_human", c
    r = ok(
        post_message(
            "",
            task_id=t,
            resume_from="breakpoint_tool_call",
            kwargs={"breakpoint_tool_call_result": json.dumps({"content": "yes go"})},
        )
    )["response"]
    assert r.startswith("resumed|") and "yes go" in r, r


@case("breakpoint", "REF")
def breakpoint_call_has_the_function_call_shape():
    d = ok(post_message(script(("ask_human", {"text": "é?"})), task_id=new_id()))
    c = json.loads(d["response"])[0]
    assert c["type"] == "function_call" and c["status"] == "completed" and c["call_id"] and c["id"]
    assert json.loads(c["arguments"]) == {"text": "é?"}


@case("breakpoint", "REF")
def two_breakpoint_calls_are_answered_by_call_id():
    t = new_id()
    c = json.loads(ok(post_message(script(("ask_human", {"text": "a"}), ("ask_human", {"text": "b"})), task_id=t))["response"])
    assert [json.loads(x["arguments"])["text"] for x in c] == ["a", "b"]
    r = ok(
        post_message(
            "",
            task_id=t,
            resume_from="breakpoint_tool_call",
            kwargs={
                "breakpoint_tool_call_result": json.dumps(
                    [{"call_id": x["call_id"], "content": f"R{i}"} for i, x in enumerate(c)]
                )
            },
        )
    )["response"]
    assert r == "resumed|R1", r


@case("breakpoint", "REF")
def breakpoint_result_may_be_an_object_or_plain_text():
    for res, want in (({"content": "obj"}, "obj"), ("plain words", "plain words")):
        t = new_id()
        ok(post_message(script(("ask_human", {"text": "a"})), task_id=t))
        r = ok(post_message("", task_id=t, resume_from="breakpoint_tool_call", kwargs={"breakpoint_tool_call_result": res}))[
            "response"
        ]
        assert r == "resumed|" + want, r


@case("breakpoint", "REF")
def resume_without_result_is_an_error_not_a_hang():
    t = new_id()
    ok(post_message(script(("ask_human", {"text": "a"})), task_id=t))
    r = post_message("", task_id=t, resume_from="breakpoint_tool_call", timeout=5)
    assert r.status_code == 400 or "breakpoint_tool_call_result" in r.text, (r.status_code, r.text[:200])


@case("breakpoint", "REF")
def breakpoint_in_a_worker_resumes_the_worker():
    t = new_id()
    ok(post_message(script(request(WORKER, script(("ask_human", {"text": "w?"})))), task_id=t))
    r = ok(
        post_message(
            "",
            task_id=t,
            resume_from="breakpoint_tool_call",
            kwargs={"breakpoint_tool_call_result": json.dumps({"content": "w!"})},
        )
    )["response"]
    assert r == "worker|resumed|w!", r
