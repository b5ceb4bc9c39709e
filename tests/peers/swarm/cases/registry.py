"""The registry of other swarms."""

import json
from pathlib import Path

from kit import (
    ADMIN,
    CONFIG,
    DEFINITION,
    RFC3339,
    USER,
    Peer,
    case,
    get,
    ok,
    post,
    post_message,
    restart_server,
    swarm_name,
)

REQUIRED = ("swarm_name", "base_url", "version", "last_seen", "swarm_description", "keywords")


def new_peer(name, **kw):
    return Peer(name, "tok-" + name, **kw)


def listed(base=None):
    return {s["swarm_name"]: s for s in ok(get("/swarms", base=base))["swarms"]}


def register_peer(p, path="/swarms", **kw):
    return post(path, ADMIN, json={"name": p.name, "base_url": p.url, **kw})


@case("registry", "MUST")
def registered_public_swarm_is_listed_with_fetched_metadata():
    p = new_peer("reg-one", description="fetched text", keywords=("k1", "k2"))
    try:
        d = ok(register_peer(p, auth_token="s3cr3t-one", metadata={"team": "x"}))
        assert d["swarm_name"] == "reg-one" and isinstance(d["status"], str)
        s = listed()["reg-one"]
        assert all(k in s for k in REQUIRED), s
        assert s["base_url"].rstrip("/") == p.url and s["version"] == "1.3" and s["swarm_description"] == "fetched text"
        assert s["keywords"] == ["k1", "k2"] and RFC3339.match(s["last_seen"]), s
        assert s.get("metadata") in (None, {"team": "x"})
    finally:
        p.stop()


@case("registry", "MUST")
def non_public_swarm_is_hidden():
    p = new_peer("reg-hidden", public=False)
    try:
        ok(register_peer(p))
        assert "reg-hidden" not in listed()
    finally:
        p.stop()


@case("registry", "SHOULD")
def no_secret_or_private_parameter_in_the_list():
    p = new_peer("reg-secret")
    try:
        ok(register_peer(p, auth_token="s3cr3t-two", volatile=False))
        txt = get("/swarms").text
        assert "s3cr3t-two" not in txt
        for s in json.loads(txt)["swarms"]:
            assert not {"auth_token", "auth_token_ref", "public", "volatile"} & set(s), s
    finally:
        p.stop()


@case("registry", "MUST")
def registering_again_updates():
    p, q = new_peer("reg-upd", description="old"), new_peer("reg-upd", description="new")
    try:
        ok(register_peer(p))
        ok(register_peer(q))
        s = listed()["reg-upd"]
        assert s["base_url"].rstrip("/") == q.url and s["swarm_description"] == "new"
    finally:
        p.stop(), q.stop()


@case("registry", "MUST")
def missing_fields_are_400():
    for j in ({}, {"name": "x"}, {"base_url": "http://127.0.0.1:1"}, {"name": "", "base_url": ""}):
        assert post("/swarms", ADMIN, json=j).status_code == 400, j


@case("registry", "MUST")
def malformed_json_is_400():
    assert post("/swarms", ADMIN, content=b"{").status_code == 400
    assert post("/swarms", ADMIN, json=[1]).status_code == 400


@case("registry", "MUST")
def wrong_types_are_400():
    for j in (
        {"name": 5, "base_url": "http://x"},
        {"name": "x", "base_url": 7},
        {"name": "x", "base_url": "http://127.0.0.1:1", "volatile": "maybe"},
    ):
        assert post("/swarms", ADMIN, json=j).status_code == 400, j


@case("registry", "ROBUST")
def unreachable_swarm_answers_in_time_and_is_not_listed():
    r = post("/swarms", ADMIN, json={"name": "reg-dead", "base_url": "http://127.0.0.1:9"}, timeout=15)
    assert r.status_code != 401
    assert "reg-dead" not in listed()


@case("registry", "ROBUST")
def own_name_cannot_be_taken_over():
    p = new_peer(swarm_name())
    try:
        register_peer(p)
        s = listed().get(swarm_name())
        assert s is None or s["base_url"].rstrip("/") != p.url
    finally:
        p.stop()


@case("registry", "MUST")
def path_register_with_swarm_name():
    p = new_peer("reg-alias")
    try:
        r = post("/swarms/register", ADMIN, json={"swarm_name": p.name, "base_url": p.url})
        assert r.status_code == 200, (r.status_code, "spec section Swarm Registry: POST /swarms/register {swarm_name, base_url}")
        assert "reg-alias" in listed()
    finally:
        p.stop()


@case("registry", "OPENAPI")
def path_register_with_name():
    p = new_peer("reg-alias2")
    try:
        d = ok(post("/swarms/register", ADMIN, json={"name": p.name, "base_url": p.url, "volatile": True}))
        assert d["swarm_name"] == "reg-alias2"
    finally:
        p.stop()
    assert post("/swarms/register", USER, json={"name": "x", "base_url": "http://x"}).status_code in (401, 403)


@case("registry", "MUST")
def dump_answers_status_and_name():
    d = ok(get("/swarms/dump", ADMIN))
    assert isinstance(d["status"], str) and d["swarm_name"] == swarm_name()


@case("registry", "MUST")
def load_of_nonsense_is_400():
    for j in ({}, {"json": "{"}, {"json": 5}, {"json": "{}"}):
        r = post("/swarms/load", ADMIN, json=j)
        assert r.status_code == 400, (j, r.status_code, r.text[:120])
    assert ok(get("/swarms/dump", ADMIN))["swarm_name"] == swarm_name()


@case("registry", "MUST")
def load_with_malformed_json_is_400():
    assert post("/swarms/load", ADMIN, content=b"{").status_code == 400


@case("registry", "MUST", needs=["load"])
def load_replaces_the_definition():
    d = ok(post("/swarms/load", ADMIN, json={"json": DEFINITION}))
    assert isinstance(d["status"], str) and d["swarm_name"]
    assert ok(get("/swarms/dump", ADMIN))["swarm_name"] == d["swarm_name"]
    assert ok(post_message("after load", tok=USER))["response"] == "after load"


@case("registry", "MUST", needs=["load"])
def load_refuses_an_agent_called_all():
    d = json.loads(DEFINITION)
    extra = dict(d["agents"][-1])
    extra["name"] = "all"
    d["agents"].append(extra)
    r = post("/swarms/load", ADMIN, json={"json": json.dumps(d)})
    assert r.status_code == 400, (r.status_code, r.text[:150])


@case("registry", "MUST", needs=["restart"])
def volatile_goes_persistent_stays():
    p, q = new_peer("reg-vol"), new_peer("reg-per")
    try:
        ok(register_peer(p, volatile=True, auth_token="vol-s3cr3t"))
        ok(register_peer(q, volatile=False, auth_token="per-s3cr3t", metadata={"m": 1}))
        assert {"reg-vol", "reg-per"} <= set(listed())
        restart_server()
        now_ = listed()
        assert "reg-vol" not in now_, "volatile entry survived a restart"
        assert "reg-per" in now_ and now_["reg-per"]["base_url"].rstrip("/") == q.url, sorted(now_)
    finally:
        p.stop(), q.stop()


@case("registry", "SHOULD", needs=["restart"])
def registry_file_holds_no_plain_token():
    """The database is the registry. Tokens for other swarms lie beside it, in a file that only its owner can read."""
    p = new_peer("reg-env")
    try:
        ok(register_peer(p, volatile=False, auth_token="plain-s3cr3t-77"))
        holds = [path for path in Path(CONFIG["data"]).rglob("*") if path.is_file() and b"plain-s3cr3t-77" in path.read_bytes()]
        assert [path.name for path in holds] in ([], ["swarm-tokens-alpha.json"]), holds
        assert all(path.stat().st_mode & 0o077 == 0 for path in holds), "the token file is open to others"
    finally:
        p.stop()
