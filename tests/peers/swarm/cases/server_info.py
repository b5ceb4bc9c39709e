"""What the server says of itself."""

import time

from kit import ADMIN, RFC3339, USER, case, get, ok, post, post_message, swarm_name


@case("meta", "MUST")
def root_needs_no_token_and_has_the_keys():
    d = ok(get("/"))
    assert d["name"] == "mail" and d["status"] == "running", d
    assert isinstance(d["uptime"], (int, float)) and d["uptime"] >= 0
    s = d["swarm"]
    assert (s if isinstance(s, str) else s["name"]) == swarm_name(), d
    assert (d.get("version") or d.get("protocol_version")) == "1.3", d


@case("meta", "OPENAPI")
def root_has_key_version():
    assert ok(get("/")).get("version") == "1.3"


@case("meta", "REF")
def root_carries_swarm_info_a_reference_peer_reads_when_registering_us():
    d = ok(get("/"))
    assert d.get("protocol_version") == "1.3", d
    s = d["swarm"]
    assert isinstance(s, dict), "the reference registry calls .get() on `swarm`; a string makes its POST /swarms fail"
    assert isinstance(s["name"], str) and isinstance(s["entrypoint"], str) and isinstance(s["description"], str)
    assert isinstance(s["keywords"], list) and isinstance(s["public"], bool)


@case("meta", "MUST")
def health_shape():
    d = ok(get("/health"))
    assert isinstance(d["status"], str) and d["status"] and isinstance(d["swarm_name"], str)
    assert RFC3339.match(d["timestamp"]), d


@case("meta", "MUST")
def swarms_list_needs_no_token():
    assert isinstance(ok(get("/swarms"))["swarms"], list)


@case("meta", "ROBUST")
def uptime_grows():
    a = ok(get("/"))["uptime"]
    time.sleep(0.3)
    assert ok(get("/"))["uptime"] > a


@case("meta", "ROBUST")
def unknown_path_404_wrong_method_405():
    assert get("/no/such/path").status_code == 404
    assert get("/message", USER).status_code in (404, 405)


@case("status", "MUST")
def whoami_user():
    d = ok(get("/whoami", USER))
    assert d["role"] == "user" and (d.get("id") or d.get("username")), d


@case("status", "MUST")
def whoami_admin():
    assert ok(get("/whoami", ADMIN))["role"] == "admin"


@case("status", "OPENAPI")
def whoami_has_id():
    assert isinstance(ok(get("/whoami", USER)).get("id"), str)


@case("status", "MUST")
def status_shape():
    d = ok(get("/status", USER))
    assert d["swarm"]["name"] == swarm_name() and isinstance(d["swarm"]["status"], str)
    assert isinstance(d["active_users"], int) and not isinstance(d["active_users"], bool)
    assert isinstance(d["user_mail_ready"], bool) and isinstance(d["user_task_running"], bool)


@case("status", "REF")
def status_user_ready_after_first_message():
    ok(post_message("hello"))
    d = ok(get("/status", USER))
    assert d["user_mail_ready"] is True and d["active_users"] >= 1, d


@case("status", "REF")
def admin_can_set_health():
    try:
        assert ok(post("/health", ADMIN, json={"status": "degraded"}))["status"] == "degraded"
        assert ok(get("/health"))["status"] == "degraded"
    finally:
        post("/health", ADMIN, json={"status": "healthy"})
    assert post("/health", USER, json={"status": "x"}).status_code in (401, 403)
