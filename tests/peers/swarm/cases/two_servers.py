"""Two posthaste servers, A and B."""

import time

from kit import (
    HELPER,
    SUPERVISOR,
    URL_B,
    USER,
    USER_B,
    WORKER,
    Background,
    case,
    interrupt,
    new_id,
    ok,
    post,
    request,
    respond,
    run_task,
    script,
    stream,
    swarm_name,
    valid_mail,
)


def name_of_b():
    return swarm_name(URL_B)


@case("two", "MUST", needs=["inter"])
def worker_of_b_answers():
    assert run_task(script(request(f"{WORKER}@{name_of_b()}", "over there")), tok=USER)[0] == "worker:over there"


@case("two", "MUST", needs=["inter"])
def interrupt_to_b():
    assert run_task(script(interrupt(f"{WORKER}@{name_of_b()}", "halt")), tok=USER)[0] == "worker!halt"


@case("two", "MUST", needs=["inter"])
def local_worker_asks_b():
    r, _ = run_task(
        script(
            request(WORKER, script(request(f"{HELPER}@{name_of_b()}", script(respond(f"{WORKER}@{swarm_name()}", "from b")))))
        ),
        tok=USER,
    )
    assert r == "worker<from b", r


@case("two", "MUST", needs=["inter"])
def supervisor_of_b_completes_and_a_gets_the_finish_message():
    r, _ = run_task(script(request(f"{SUPERVISOR}@{name_of_b()}", "finished in b")), tok=USER, timeout=5)
    assert "finished in b" in r, r


@case("two", "MUST", needs=["inter"])
def nested_work_in_b():
    r, _ = run_task(
        script(
            request(
                f"{WORKER}@{name_of_b()}",
                script(request(HELPER, script(respond(WORKER, script(respond(f"{SUPERVISOR}@{swarm_name()}", "b inside")))))),
            )
        ),
        tok=USER,
    )
    assert r == "b inside", r


@case("two", "MUST", needs=["inter"])
def unknown_agent_of_b_is_told_to_the_sender():
    r, _ = run_task(script(request(f"ghost@{name_of_b()}", "x")), tok=USER, timeout=5)
    assert r.startswith("system|"), r[:200]


@case("two", "MUST", needs=["inter"])
def one_task_two_remote_requests():
    r, _ = run_task(
        script(
            request(
                f"{WORKER}@{name_of_b()}",
                script(respond(f"{SUPERVISOR}@{swarm_name()}", script(request(f"{HELPER}@{name_of_b()}", "again")))),
            )
        ),
        tok=USER,
    )
    assert r == "helper:again", r


@case("two", "MUST", needs=["inter"])
def eight_remote_tasks_at_once():
    bgs = [
        Background(lambda i=i: run_task(script(request(f"{WORKER}@{name_of_b()}", f"n{i}")), tok=USER, timeout=20)[0])
        for i in range(8)
    ]
    assert [b.join(25) for b in bgs] == [f"worker:n{i}" for i in range(8)]


@case("two", "SHOULD", needs=["inter"])
def second_turn_reaches_b_with_history():
    t = new_id()
    assert run_task(script(request(f"{WORKER}@{name_of_b()}", "one")), tok=USER, task_id=t)[0] == "worker:one"
    time.sleep(0.5)
    r, _ = run_task(
        script(request(f"{WORKER}@{name_of_b()}", script(respond(f"{SUPERVISOR}@{swarm_name()}", "{{turn}}|{{first}}")))),
        tok=USER,
        task_id=t,
        resume_from="user_response",
        timeout=5,
    )
    assert r == "2|one", r


@case("two", "MUST", needs=["inter"])
def streaming_a_task_that_goes_through_b():
    _, _, ev, _ = stream(script(request(f"{WORKER}@{name_of_b()}", "sse")), tok=USER)
    assert ev[-1][1] == "task_complete" and ev[-1][2]["response"] == "worker:sse"
    assert "interswarm_message_sent" in [n for _, n, _ in ev]


@case("two", "MUST", needs=["inter"])
def interswarm_message_from_a_user_to_b():
    d = ok(
        post(
            "/interswarm/message",
            USER,
            json={"user_token": USER_B, "body": "user asks b", "targets": [f"{SUPERVISOR}@{name_of_b()}"]},
        )
    )
    valid_mail(d["response"])
    assert d["response"]["message"]["body"] == "user asks b"
