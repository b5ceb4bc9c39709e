"""The tools of mcp_agent_mail through the PyPI package `mcp` 1.30 (streamable HTTP, one session per agent).

    python agent_mail.py URL TOKEN

The checks fix what existing clients of mcp_agent_mail (Python, 0.3.2) rely on:

* a tool's result is one text block with JSON, and the same as structuredContent; a list is `[...]` in the text and
  `{"result": [...]}` in structuredContent;
* a tool that fails answers a result with isError, not a JSON-RPC error;
* if register_agent returns a registration_token, it is passed on to tools whose schema has a member for it;
* ids are integers, times are ISO 8601 with an offset.

Checks marked [better] are about what mcp_agent_mail itself lacks.
"""

import asyncio
import json
import sys
import time
import warnings
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import httpx
from harness import Tally
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from tools import REQUIRED_AT_MOST, SURFACE

warnings.filterwarnings("ignore")


class Checks(Tally):
    """The condition first, as the checks here read best."""

    def check(self, condition, name, detail=""):
        return super().check(name, condition, detail)

    def better(self, condition, name, detail=""):
        return self.check(condition, "[better] " + name, detail)


class ToolError(Exception):
    """A tool answered with isError."""


class Agent:
    """An agent in an MCP session."""

    #: The argument names of each tool, from tools/list.
    params: dict[str, set[str]] = {}

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.name = ""
        self.token: str | None = None
        self.last: Any = None

    async def call(self, tool: str, **args: Any) -> Any:
        result = await self.session.call_tool(tool, args)
        self.last = result
        text = "".join(getattr(block, "text", "") for block in result.content)
        if result.isError:
            raise ToolError(text)
        value = None
        if text.strip():
            try:
                value = json.loads(text)
            except ValueError:
                value = text
        if value is None and result.structuredContent is not None:
            value = result.structuredContent
        if isinstance(value, dict) and set(value) == {"result"}:
            value = value["result"]
        return value

    async def auth(self, tool: str, **args: Any) -> Any:
        """Calls with this agent's token if it has one and the tool takes one."""
        key = "sender_token" if tool in ("send_message", "reply_message") else "registration_token"
        if self.token and key in self.params.get(tool, ()):
            args[key] = self.token
        return await self.call(tool, **args)

    def me(self, tool: str) -> dict[str, str]:
        """agent_name, for read tools that take the reader as an argument."""
        return {"agent_name": self.name} if self.token and "agent_name" in self.params.get(tool, ()) else {}

    async def fails(self, tool: str, **args: Any) -> str | None:
        """The text of the error with which the tool answers; None if it succeeds."""
        try:
            await self.auth(tool, **args)
        except ToolError as error:
            return str(error)
        return None


def iso(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None


def ids(rows: Any) -> list[int]:
    return [row["id"] for row in rows] if isinstance(rows, list) else []


async def surface(t, session):
    """Names and arguments of the tools. Returns the argument names of each tool."""
    tools: dict[str, Any] = {}
    cursor = None
    while True:
        page = await session.list_tools(cursor) if cursor else await session.list_tools()
        tools.update({x.name: x for x in page.tools})
        cursor = page.nextCursor
        if not cursor:
            break
    missing = [n for n in SURFACE if n not in tools]
    t.check(not missing, f"tools/list has the {len(SURFACE)} core tool names", missing)
    bad = []
    for n, want in SURFACE.items():
        if n in tools:
            props = (tools[n].inputSchema or {}).get("properties", {})
            bad += [f"{n}.{a}" for a in want if a not in props]
    t.check(not bad, "every documented argument name is in its tool's inputSchema", bad)
    extra = []
    for n, most in REQUIRED_AT_MOST.items():
        if n in tools:
            req = set((tools[n].inputSchema or {}).get("required", []))
            extra += [f"{n}.{a}" for a in req - most]
    t.check(not extra, "no tool requires more arguments than existing callers give", extra)
    size = len(json.dumps([x.model_dump(exclude_none=True, mode="json") for x in tools.values()]))
    t.better(size < 30000, "tools/list under 30 kB", size)
    return {name: set((tool.inputSchema or {}).get("properties", {})) for name, tool in tools.items()}


async def identities(t, A, B, C, project):
    """Projects and agents. Returns the project and A's profile."""
    hc = await A.call("health_check")
    t.check(isinstance(hc, dict) and hc.get("status") == "ok", "health_check: status ok", hc)
    p = await A.call("ensure_project", human_key=project)
    t.check(
        {"id", "slug", "human_key", "created_at"} <= set(p) and p["human_key"] == project,
        "ensure_project: {id, slug, human_key, created_at}",
        p,
    )
    p2 = await B.call("ensure_project", human_key=project)
    t.check(p2["id"] == p["id"] and p2["slug"] == p["slug"], "ensure_project is idempotent across sessions")
    t.check(
        await A.fails("ensure_project", human_key="relative/path") is not None, "ensure_project refuses a relative path (isError)"
    )

    a = await A.call(
        "register_agent",
        project_key=project,
        program="claude-code",
        model="opus-4.1",
        name="BlueLake",
        task_description="conformance",
    )
    A.name, A.token = a["name"], a.get("registration_token")
    want = {"id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id"}
    t.check(want <= set(a), "register_agent: profile fields", sorted(want - set(a)))
    t.check(a["name"] == "BlueLake", "register_agent keeps a given adjective+noun name", a["name"])
    b = await B.call("register_agent", project_key=project, program="codex-cli", model="gpt5-codex")
    B.name, B.token = b["name"], b.get("registration_token")
    t.check(b["name"] and b["name"] != "BlueLake", f"register_agent without a name generates one ({b['name']})")
    sc = A.last.structuredContent
    t.check(isinstance(sc, dict) and sc.get("name") == "BlueLake", "results carry structuredContent too", sc)
    a2 = await A.auth(
        "register_agent",
        project_key=project,
        program="claude-code",
        model="opus-4.1",
        name="BlueLake",
        task_description="second focus",
    )
    A.token = a2.get("registration_token") or A.token  # the server may issue a new one
    t.check(
        a2["id"] == a["id"] and a2["task_description"] == "second focus",
        "re-registering the same name updates the same identity",
        a2,
    )
    x = await C.call("register_agent", project_key=project, program="codex-cli", model="gpt5", name="worker_42")
    C.name, C.token = x["name"], x.get("registration_token")
    t.better(x["name"] == "worker_42", "register_agent keeps an explicit id such as worker_42")
    who = await A.auth("whois", project_key=project, agent_name=A.name)
    t.check(who.get("name") == A.name and who.get("program") == "claude-code", "whois: profile of one agent", who)
    if A.token and "sender_token" in Agent.params["send_message"]:
        try:
            await A.call(
                "send_message",
                project_key=project,
                sender_name=A.name,
                to=[B.name],
                subject="x",
                body_md="x",
                sender_token="wrong-" + A.token,
            )
            t.check(False, "a wrong sender_token is refused")
        except ToolError:
            t.check(True, "a wrong sender_token is refused")
    return p, a


async def first_contact(t, A, B, C, project):
    refusal = None
    try:
        await A.auth(
            "send_message", project_key=project, sender_name=A.name, to=[B.name], subject="first contact", body_md="hello"
        )
    except ToolError as e:
        refusal = str(e)
    t.check(
        refusal is None or "contact" in refusal.lower(),
        "first message: delivered, or refused with a contact-approval hint",
        refusal,
    )
    t.better(refusal is None, "first message between two agents of one project is delivered")
    if refusal:
        rq = await A.auth(
            "request_contact", project_key=project, from_agent=A.name, to_agent=B.name, reason="conformance", ttl_seconds=3600
        )
        t.check(rq.get("status") in ("pending", "approved"), "request_contact: status pending", rq)
        rp = await B.auth("respond_contact", project_key=project, to_agent=B.name, from_agent=A.name, accept=True)
        t.check(rp.get("approved") is True, "respond_contact(accept=true): approved", rp)
    lc = await A.auth("list_contacts", project_key=project, agent_name=A.name)
    t.check(isinstance(lc, list) or isinstance(lc, dict), "list_contacts: answers", lc)
    for agent in (A, B, C):
        pol = await agent.auth("set_contact_policy", project_key=project, agent_name=agent.name, policy="open")
        t.check(pol.get("policy") == "open", f"set_contact_policy({agent.name}, open)", pol)


async def messages(t, A, B, C, project):
    """Sends and fetches. Returns the payload of the first message and the id of the second."""
    body = "# Plan\n\n- TODO: fix login\n- [ ] write tests\n- ACTION: deploy é 漢字 🚀\n"
    m = await A.auth(
        "send_message",
        project_key=project,
        sender_name=A.name,
        to=[B.name],
        subject="Build plan POL-358",
        body_md=body,
        thread_id="TKT-1",
        importance="high",
        ack_required=True,
    )
    t.check(
        m.get("count") == 1 and len(m.get("deliveries", [])) == 1 and m["deliveries"][0].get("project") == project,
        "send_message: {deliveries:[{project, payload}], count}",
        m,
    )
    payload = m["deliveries"][0]["payload"]
    want = {
        "id",
        "thread_id",
        "subject",
        "importance",
        "ack_required",
        "created_ts",
        "attachments",
        "body_md",
        "from",
        "to",
        "cc",
        "bcc",
    }
    t.check(want <= set(payload), "send_message payload fields", sorted(want - set(payload)))
    t.check(
        payload["from"] == A.name
        and payload["to"] == [B.name]
        and payload["thread_id"] == "TKT-1"
        and payload["importance"] == "high"
        and payload["ack_required"] is True,
        "send_message payload values",
        payload,
    )
    first_id = payload["id"]
    t.check(isinstance(first_id, int), "message ids are integers", first_id)
    t.check(
        iso(payload["created_ts"]) is not None and iso(payload["created_ts"]).tzinfo is not None,
        "created_ts is ISO-8601 with an offset",
        payload["created_ts"],
    )

    inbox = await B.auth("fetch_inbox", project_key=project, agent_name=B.name)
    t.check(isinstance(inbox, list) and first_id in ids(inbox), "fetch_inbox: a list holding the message", inbox)
    row = next((r for r in inbox if r["id"] == first_id), {})
    want = {"id", "subject", "from", "created_ts", "importance", "ack_required", "kind", "thread_id"}
    t.check(want <= set(row), "fetch_inbox row fields", sorted(want - set(row)))
    t.check(
        "body_md" not in row and row.get("kind") == "to" and row.get("from") == A.name,
        "fetch_inbox: no body by default, kind=to, from=sender",
        row,
    )
    full = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, include_bodies=True)
    row = next((r for r in full if r["id"] == first_id), {})
    t.check(row.get("body_md") == body, "fetch_inbox(include_bodies): body round-trips byte for byte", row)
    again = await B.auth("fetch_inbox", project_key=project, agent_name=B.name)
    t.check(first_id in ids(again), "fetch_inbox does not consume messages (second fetch still lists it)", ids(again))
    m2 = await A.auth(
        "send_message",
        project_key=project,
        sender_name=A.name,
        to=[B.name],
        cc=[C.name],
        subject="second",
        body_md="no thread here",
    )
    second_id = m2["deliveries"][0]["payload"]["id"]
    inbox = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, limit=1)
    t.check(ids(inbox) == [second_id], "fetch_inbox(limit=1) gives the newest only", inbox)
    urg = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, urgent_only=True)
    t.check(first_id in ids(urg) and second_id not in ids(urg), "fetch_inbox(urgent_only): high yes, normal no", ids(urg))
    since = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, since_ts=payload["created_ts"])
    t.check(
        second_id in ids(since) and first_id not in ids(since), "fetch_inbox(since_ts) is exclusive of that instant", ids(since)
    )
    fut = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, since_ts="2999-01-01T00:00:00+00:00")
    t.check(fut == [], "an empty inbox is an empty list", fut)
    t.check(B.last.structuredContent == {"result": []}, "empty list: structuredContent is {result: []}", B.last.structuredContent)
    own = await A.auth("fetch_inbox", project_key=project, agent_name=A.name)
    t.check(first_id not in ids(own), "the sender's own inbox does not list what it sent", ids(own))
    m3 = await A.auth(
        "send_message",
        project_key=project,
        sender_name=A.name,
        to=[B.name],
        bcc=[C.name],
        subject="blind recipient",
        body_md="bcc test",
    )
    third_id = m3["deliveries"][0]["payload"]["id"]
    rows = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, include_bodies=True)
    t.check(all(C.name not in json.dumps(r) for r in rows if r["id"] == third_id), "bcc recipients are not shown to the others")
    err = await A.fails("send_message", project_key=project, sender_name=A.name, to=["NoSuchAgent"], subject="x", body_md="y")
    t.check(err is not None and "NoSuchAgent" in err, "an unknown recipient is an error naming it", err)
    err = await A.fails("send_message", project_key=project, sender_name="GhostCat", to=[B.name], subject="x", body_md="y")
    t.check(err is not None, "an unknown sender is an error", err)
    err = await B.fails("fetch_inbox", project_key=project + "-nope", agent_name=B.name)
    t.check(err is not None and "not found" in err.lower(), "an unknown project is an error saying so", err)
    big = "x" * 200_000
    mb = await A.auth("send_message", project_key=project, sender_name=A.name, to=[B.name], subject="big", body_md=big)
    rows = await B.auth("fetch_inbox", project_key=project, agent_name=B.name, include_bodies=True, limit=1)
    t.check(rows and rows[0]["body_md"] == big, "a 200 kB body round-trips")
    t.check(ids(rows) == [mb["deliveries"][0]["payload"]["id"]], "newest first after the big message")
    return payload, second_id


async def acknowledgements(t, B, project, first_id):
    rd = await B.auth("mark_message_read", project_key=project, agent_name=B.name, message_id=first_id)
    t.check(
        rd.get("message_id") == first_id and rd.get("read") is True and iso(rd.get("read_at")),
        "mark_message_read: {message_id, read, read_at}",
        rd,
    )
    rd2 = await B.auth("mark_message_read", project_key=project, agent_name=B.name, message_id=first_id)
    t.check(rd2.get("read_at") == rd.get("read_at"), "mark_message_read is idempotent (first time kept)", rd2)
    ak = await B.auth("acknowledge_message", project_key=project, agent_name=B.name, message_id=first_id)
    t.check(
        ak.get("acknowledged") is True and iso(ak.get("acknowledged_at")) and ak.get("read_at"),
        "acknowledge_message: {message_id, acknowledged, acknowledged_at, read_at}",
        ak,
    )
    ak2 = await B.auth("acknowledge_message", project_key=project, agent_name=B.name, message_id=first_id)
    t.check(ak2.get("acknowledged_at") == ak.get("acknowledged_at"), "acknowledge_message is idempotent", ak2)
    t.check(
        await B.fails("acknowledge_message", project_key=project, agent_name=B.name, message_id=987654321) is not None,
        "acknowledging an unknown message is an error",
    )


async def replies(t, A, B, project, first_id, second_id):
    r1 = await B.auth(
        "reply_message",
        project_key=project,
        message_id=first_id,
        sender_name=B.name,
        body_md="On it. - [x] write tests. @BlueLake please review `src/app.py`",
    )
    t.check(
        r1.get("subject") == "Re: Build plan POL-358"
        and r1.get("thread_id") == "TKT-1"
        and r1.get("reply_to") == first_id
        and r1.get("to") == [A.name],
        "reply_message: Re: subject, same thread, reply_to, to = original sender",
        r1,
    )
    t.check(r1.get("count") == 1 and len(r1.get("deliveries", [])) == 1, "reply_message: deliveries and count")
    t.check(
        r1.get("importance") == "high" and r1.get("ack_required") is True,
        "reply_message inherits importance and ack_required",
        r1,
    )
    ain = await A.auth("fetch_inbox", project_key=project, agent_name=A.name, include_bodies=True)
    t.check(r1["id"] in ids(ain), "the reply is in the sender's inbox", ids(ain))
    r2 = await A.auth("reply_message", project_key=project, message_id=r1["id"], sender_name=A.name, body_md="thanks")
    t.check(r2.get("subject") == "Re: Build plan POL-358", "Re: is not stacked", r2.get("subject"))
    r3 = await B.auth("reply_message", project_key=project, message_id=second_id, sender_name=B.name, body_md="ok")
    t.check(str(r3.get("thread_id")) == str(second_id), "a reply to a thread-less message opens thread <id>", r3)
    sm = await A.auth(
        "summarize_thread",
        project_key=project,
        thread_id="TKT-1",
        include_examples=True,
        llm_mode=False,
        **A.me("summarize_thread"),
    )
    su = sm.get("summary", {})
    t.check(
        sm.get("thread_id") == "TKT-1" and {"participants", "key_points", "action_items"} <= set(su),
        "summarize_thread: {thread_id, summary:{participants, key_points, action_items}, examples}",
        sm,
    )
    t.check(
        set(su.get("participants", [])) == {A.name, B.name} and su.get("total_messages", 3) == 3,
        "summary: participants and total_messages",
        su,
    )
    t.check(any("login" in k for k in su.get("key_points", []) + su.get("action_items", [])), "summary: picks the TODO line", su)
    t.check(isinstance(sm.get("examples"), list) and len(sm["examples"]) >= 1, "summary: examples", sm)
    sm2 = await A.auth(
        "summarize_thread", project_key=project, thread_id="TKT-1,TKT-404", llm_mode=False, **A.me("summarize_thread")
    )
    t.check(
        len(sm2.get("threads", [])) == 2 and "aggregate" in sm2, "summarize_thread of a comma list: {threads, aggregate}", sm2
    )


async def searches(t, A, project, first_id):
    async def search(agent: Agent, q: str, **kw: Any) -> list[int]:
        return ids(await agent.auth("search_messages", project_key=project, query=q, **agent.me("search_messages"), **kw))

    rows = await A.auth("search_messages", project_key=project, query="login", **A.me("search_messages"))
    want = {"id", "subject", "importance", "ack_required", "created_ts", "thread_id", "from"}
    t.check(isinstance(rows, list) and first_id in ids(rows) and want <= set(rows[0]), "search_messages: rows", rows)
    t.check(first_id in await search(A, '"fix login"'), "search: phrase")
    t.check(first_id not in await search(A, '"login fix"'), "search: phrase order matters")
    t.check(first_id in await search(A, "depl*"), "search: prefix*")
    t.check(first_id in await search(A, "POL-358"), "search: hyphenated id POL-358")
    t.check(first_id in await search(A, "login AND deploy") and first_id not in await search(A, "login AND zebra"), "search: AND")
    t.check(first_id in await search(A, "zebra OR login"), "search: OR")
    t.check(first_id not in await search(A, "plan NOT login"), "search: NOT")
    t.check(await search(A, "zebraunicornxyz") == [], "search: no hit is an empty list")
    t.check(len(await search(A, "plan OR second OR bcc", limit=1)) == 1, "search: limit")
    for q in ("*", "", "AND", '"unbalanced', "foo(", "a:b:c", "'; DROP TABLE messages; --"):
        try:
            await search(A, q)
            okq = True
        except ToolError as e:
            okq = "internal" not in str(e).lower() and "sqlite" not in str(e).lower()
        t.check(okq, f"search: odd query {q!r} is answered without an internal error")
    snip = rows[0] if rows else {}
    t.better(any(k in snip for k in ("snippet", "body_md", "excerpt")), "search rows carry a snippet")


async def reservations(t, A, B, project):
    g = await A.auth(
        "file_reservation_paths",
        project_key=project,
        agent_name=A.name,
        paths=["src/**", "README.md"],
        ttl_seconds=3600,
        exclusive=True,
        reason="TKT-1",
    )
    t.check(len(g.get("granted", [])) == 2 and g.get("conflicts") == [], "file_reservation_paths: {granted:[2], conflicts:[]}", g)
    want = {"id", "path_pattern", "exclusive", "reason", "expires_ts"}
    t.check(want <= set(g["granted"][0]), "granted row fields", g["granted"][0])
    g2 = await B.auth(
        "file_reservation_paths",
        project_key=project,
        agent_name=B.name,
        paths=["src/app.py", "docs/x.md"],
        ttl_seconds=3600,
        exclusive=True,
        reason="mine",
    )
    conf = g2.get("conflicts", [])
    t.check(
        len(conf) == 1
        and conf[0].get("path") == "src/app.py"
        and conf[0]["holders"][0].get("agent") == A.name
        and conf[0]["holders"][0].get("path_pattern") == "src/**",
        "a conflicting exclusive path is reported with its holder",
        g2,
    )
    sh = await A.auth("file_reservation_paths", project_key=project, agent_name=A.name, paths=["shared/*.md"], exclusive=False)
    sh2 = await B.auth("file_reservation_paths", project_key=project, agent_name=B.name, paths=["shared/a.md"], exclusive=False)
    t.check(sh["conflicts"] == [] and sh2["conflicts"] == [], "two shared reservations do not conflict", sh2)
    again = await A.auth("file_reservation_paths", project_key=project, agent_name=A.name, paths=["README.md"])
    t.check(
        again["conflicts"] == [] and len(again["granted"]) == 1,
        "reserving one's own path again is granted without conflict",
        again,
    )
    t.better(again["granted"][0]["id"] == g["granted"][1]["id"], "reserving one's own path again extends the same reservation")
    other = await B.auth("file_reservation_paths", project_key=project, agent_name=B.name, paths=["lib/z.rs"])
    t.check(other["conflicts"] == [], "an unrelated path does not conflict")
    t.check(
        await A.fails("file_reservation_paths", project_key=project, agent_name=A.name, paths=[]) is not None,
        "an empty paths list is an error",
    )
    rn = await A.auth("renew_file_reservations", project_key=project, agent_name=A.name, extend_seconds=600, paths=["src/**"])
    fr = (rn.get("file_reservations") or [{}])[0]
    t.check(
        rn.get("renewed") == 1
        and iso(fr.get("new_expires_ts"))
        and iso(fr.get("old_expires_ts"))
        and (iso(fr["new_expires_ts"]) - iso(fr["old_expires_ts"])).total_seconds() >= 599,
        "renew_file_reservations: {renewed, file_reservations:[{old_expires_ts, new_expires_ts}]}",
        rn,
    )
    fe = await B.fails(
        "force_release_file_reservation",
        project_key=project,
        agent_name=B.name,
        file_reservation_id=g["granted"][0]["id"],
        note="conformance",
    )
    t.check(fe is not None, "force release of the reservation of an active holder is refused", fe)
    rl = await A.auth("release_file_reservations", project_key=project, agent_name=A.name, paths=["README.md"])
    t.check(
        rl.get("released") in (1, 2) and iso(rl.get("released_at")),
        "release_file_reservations(paths): {released, released_at}",
        rl,
    )
    rl = await A.auth(
        "release_file_reservations", project_key=project, agent_name=A.name, file_reservation_ids=[sh["granted"][0]["id"]]
    )
    t.check(rl.get("released") == 1, "release by id", rl)
    rl = await A.auth("release_file_reservations", project_key=project, agent_name=A.name)
    t.check(rl.get("released") == 1, "release without arguments releases all that remain", rl)
    rl = await A.auth("release_file_reservations", project_key=project, agent_name=A.name)
    t.check(rl.get("released") == 0, "releasing nothing is not an error", rl)
    await B.auth("release_file_reservations", project_key=project, agent_name=B.name)
    g3 = await B.auth("file_reservation_paths", project_key=project, agent_name=B.name, paths=["src/app.py"])
    t.check(g3["conflicts"] == [], "after release the path is free", g3)
    g4 = await A.auth("file_reservation_paths", project_key=project, agent_name=A.name, paths=["src/**"])
    t.better(len(g4["conflicts"]) == 1, "a glob that covers a held file conflicts (held src/app.py, asked src/**)")
    await A.auth("release_file_reservations", project_key=project, agent_name=A.name)
    g5 = await A.auth("file_reservation_paths", project_key=project, agent_name=A.name, paths=["./src/app.py"])
    t.better(len(g5["conflicts"]) == 1, "./src/app.py is the same path as src/app.py (held plain, asked ./)")
    await A.auth("release_file_reservations", project_key=project, agent_name=A.name)
    await B.auth("release_file_reservations", project_key=project, agent_name=B.name)
    await B.auth("file_reservation_paths", project_key=project, agent_name=B.name, paths=["gen/*.py"])
    g6 = await A.auth("file_reservation_paths", project_key=project, agent_name=A.name, paths=["gen/a*"])
    t.better(len(g6["conflicts"]) == 1, "two intersecting globs conflict (gen/*.py and gen/a*)")
    await A.auth("release_file_reservations", project_key=project, agent_name=A.name)
    await B.auth("release_file_reservations", project_key=project, agent_name=B.name)


async def simultaneous_reservations(t, A, B, project):
    ra, rb = await asyncio.gather(
        A.auth("file_reservation_paths", project_key=project, agent_name=A.name, paths=["race.txt"]),
        B.auth("file_reservation_paths", project_key=project, agent_name=B.name, paths=["race.txt"]),
    )
    t.check(
        len(ra["conflicts"]) + len(rb["conflicts"]) == 1,
        "of two simultaneous exclusive reservations exactly one sees a conflict",
        (ra, rb),
    )


async def macros(t, A, B, project, p, a):
    ms = await B.call(
        "macro_start_session",
        human_key=project,
        program="claude-code",
        model="opus-4.1",
        task_description="macro",
        file_reservation_paths=["macro/*.rs"],
        inbox_limit=5,
    )
    t.check(
        {"project", "agent", "file_reservations", "inbox"} <= set(ms),
        "macro_start_session: {project, agent, file_reservations, inbox}",
        sorted(ms),
    )
    t.check(
        ms["project"]["id"] == p["id"]
        and ms["agent"]["name"]
        and len(ms["file_reservations"]["granted"]) == 1
        and isinstance(ms["inbox"], list),
        "macro_start_session values",
        ms,
    )
    if A.token and "registration_token" in Agent.params["macro_start_session"]:
        t.check(bool(ms.get("registration_token")), "macro_start_session returns the registration_token")
    ms2 = await A.auth("macro_start_session", human_key=project, program="claude-code", model="opus-4.1", agent_name=A.name)
    A.token = ms2.get("registration_token") or ms2["agent"].get("registration_token") or A.token
    t.check(
        ms2["agent"]["id"] == a["id"] and len(ms2["inbox"]) >= 1,
        "macro_start_session(agent_name) resumes the identity and shows its inbox",
        ms2.get("agent"),
    )
    mp = await A.auth(
        "macro_prepare_thread",
        project_key=project,
        thread_id="TKT-1",
        program="claude-code",
        model="opus-4.1",
        agent_name=A.name,
        llm_mode=False,
    )
    t.check(
        {"project", "agent", "thread", "inbox"} <= set(mp)
        and mp["thread"].get("total_messages", mp["thread"].get("summary", {}).get("total_messages")) == 3,
        "macro_prepare_thread: {project, agent, thread, inbox}",
        sorted(mp),
    )
    mc = await A.auth("macro_file_reservation_cycle", project_key=project, agent_name=A.name, paths=["cyc/*"], auto_release=True)
    t.check(
        len(mc["file_reservations"]["granted"]) == 1 and mc.get("released", {}).get("released") == 1,
        "macro_file_reservation_cycle(auto_release)",
        mc,
    )
    hs_args: dict[str, Any] = dict(
        project_key=project,
        requester=A.name,
        target=B.name,
        reason="hi",
        auto_accept=True,
        welcome_subject="welcome",
        welcome_body="hello there",
    )
    if "requester_registration_token" in Agent.params["macro_contact_handshake"]:
        hs_args |= {"requester_registration_token": A.token, "target_registration_token": B.token}
    mh = await A.call("macro_contact_handshake", **hs_args)
    t.check(
        {"request", "response", "welcome_message"} <= set(mh),
        "macro_contact_handshake: {request, response, welcome_message}",
        sorted(mh),
    )


async def policy(t, A, B, project):
    await B.auth("set_contact_policy", project_key=project, agent_name=B.name, policy="block_all")
    # Both still hold race.txt here.
    err = await A.fails("send_message", project_key=project, sender_name=A.name, to=[B.name], subject="blocked", body_md="x")
    t.better(err is not None, "block_all also holds between agents with overlapping reservations")
    await A.auth("release_file_reservations", project_key=project, agent_name=A.name)
    await B.auth("release_file_reservations", project_key=project, agent_name=B.name)
    err = await A.fails("send_message", project_key=project, sender_name=A.name, to=[B.name], subject="blocked", body_md="x")
    t.check(err is not None, "policy block_all refuses mail", err)
    await B.auth("set_contact_policy", project_key=project, agent_name=B.name, policy="open")


async def resources(t, session, A, B, project, p, first_id):
    def q(agent: Agent) -> str:
        return f"&agent_token={agent.token}" if agent.token else ""

    async def res(uri: str) -> Any:
        r = await session.read_resource(uri)
        return json.loads(r.contents[0].text)

    try:
        ib = await res(f"resource://inbox/{B.name}?project={project}&limit=50&include_bodies=true{q(B)}")
        t.check(ib.get("agent") == B.name and first_id in ids(ib.get("messages")), "resource://inbox/{agent}")
        th = await res(f"resource://thread/TKT-1?project={project}&agent={A.name}&include_bodies=true{q(A)}")
        t.check(len(th.get("messages", [])) == 3, "resource://thread/{id}", th)
        agents = await res(f"resource://agents/{p['slug']}")
        t.check({A.name, B.name} <= {z["name"] for z in agents.get("agents", [])}, "resource://agents/{project}", agents)
        reserved = await res(f"resource://file_reservations/{p['slug']}?active_only=true")
        t.check(
            isinstance(reserved, list) and all("path_pattern" in z and "agent" in z for z in reserved),
            "resource://file_reservations/{slug}",
            reserved,
        )
        try:
            pj = await res("resource://tooling/projects")
        except Exception:
            pj = await res("resource://projects?format=json")
        t.check(any(z["slug"] == p["slug"] for z in pj), "resource://tooling/projects (or resource://projects)")
        shown = await res(f"resource://message/{first_id}?project={project}&agent={B.name}{q(B)}")
        t.check(shown.get("id") == first_id and shown.get("subject") == "Build plan POL-358", "resource://message/{id}", shown)
    except Exception as e:
        t.check(False, "resources can be read", e)


async def plain_http(t, url, headers, B, project):
    """Calls without a session, as a hook written with curl makes them."""
    async with httpx.AsyncClient(timeout=20) as h:
        args: dict[str, Any] = {"project_key": project, "agent_name": B.name, "limit": 3}
        if B.token and "registration_token" in Agent.params["fetch_inbox"]:
            args["registration_token"] = B.token
        req = {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": {"name": "fetch_inbox", "arguments": args}}
        r = await h.post(
            url, json=req, headers={**headers, "Content-Type": "application/json", "Accept": "*/*"}, follow_redirects=True
        )
        okr = r.status_code == 200 and r.headers.get("content-type", "").startswith("application/json")
        t.check(
            okr and '"subject"' in r.text.replace('\\"', '"'),
            "curl-style tools/call without initialize or session answers plain JSON",
            f"{r.status_code} {r.headers.get('content-type')} {r.text[:120]}",
        )
        alt = url.rstrip("/") if url.endswith("/") else url + "/"
        r = await h.post(
            alt, json=req, headers={**headers, "Accept": "application/json, text/event-stream"}, follow_redirects=False
        )
        t.check(r.status_code == 200, f"the other slash form works without a redirect ({alt})", r.status_code)


async def scenario(t, url, token):
    headers = {"Authorization": f"Bearer {token}"}
    project = f"/data/projects/conformance-{time.time_ns():x}"
    async with AsyncExitStack() as stack:

        async def connect():
            read, write, _ = await stack.enter_async_context(streamablehttp_client(url, headers=headers))
            session = await stack.enter_async_context(ClientSession(read, write))
            return session, await session.initialize()

        session, hello = await connect()
        other_session, _ = await connect()
        t.check(
            hello.protocolVersion and hello.capabilities.tools is not None, "initialize answers a version and has tools", hello
        )
        A, B, C = Agent(session), Agent(other_session), Agent(session)
        Agent.params = await surface(t, session)
        p, a = await identities(t, A, B, C, project)
        await first_contact(t, A, B, C, project)
        payload, second_id = await messages(t, A, B, C, project)
        first_id = payload["id"]
        await acknowledgements(t, B, project, first_id)
        await replies(t, A, B, project, first_id, second_id)
        await searches(t, A, project, first_id)
        await reservations(t, A, B, project)
        await simultaneous_reservations(t, A, B, project)
        await macros(t, A, B, project, p, a)
        await policy(t, A, B, project)
        await resources(t, session, A, B, project, p, first_id)
    await plain_http(t, url, headers, B, project)


def main():
    t = Checks()
    try:
        asyncio.run(scenario(t, *sys.argv[1:3]))
    except (Exception, BaseExceptionGroup) as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        t.check(False, "the checks ran to their end", f"{type(error).__name__}: {error}")
    return t.close()


sys.exit(main())
