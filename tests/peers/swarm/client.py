"""The Python reference of MAIL as a client: its MAILClient, its registry and router, its stdlib actions.

They come from the PyPI package mail-swarms (Python 3.12 or newer). Set up by door.py, which names a JSON file in SWARM_CONFIG. The
server hosts swarm alpha (scripted_swarm.py) and knows no swarm called "probe" yet; this program hosts that one.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
import uuid
from pathlib import Path

from harness import Tally

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # asks no server for prices
CONFIG = json.loads(Path(os.environ["SWARM_CONFIG"]).read_text())
URL, TOKENS = CONFIG["url"], CONFIG["tokens"]
USER, ADMIN, PROBE = TOKENS["user"], TOKENS["admin"], TOKENS["probe"]
STEP_SECONDS = 12
SOME_TIME = "2026-01-01T00:00:00+00:00"

# The reference reads its version from ./pyproject.toml when it is imported.
WORK = tempfile.mkdtemp(prefix="mail-swarms-", dir=".")
os.chdir(WORK)
Path("pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.3.6"\n')
logging.disable(logging.CRITICAL)

from aiohttp import web
from mail.client import MAILClient
from mail.core.message import MAILMessage
from mail.net.registry import SwarmRegistry
from mail.net.router import InterswarmRouter
from mail.stdlib.interswarm.actions import get_swarm_health, get_swarm_registry, ping_swarm

tally = Tally()


def script(*calls):
    return json.dumps({"calls": [{"tool": tool, "args": args} for tool, args in calls]})


def request(target, body):
    return ("send_request", {"target": target, "subject": "hop", "body": body})


def new_id():
    return str(uuid.uuid4())


async def step(name, action):
    try:
        await asyncio.wait_for(action, STEP_SECONDS)
    except Exception as error:
        tally.check(name, False, f"{type(error).__name__}: {error}")
    else:
        tally.check(name, True)


# ---------------------------------------------------------------------------- as a client


async def ping(user):
    root = await user.ping()
    assert root["name"] == "mail" and root["status"] == "running" and root["protocol_version"] == "1.3", root


async def login():
    client = MAILClient(URL)
    identity = await client.login(USER)
    assert identity["role"] == "user" and client.user_id and client.user_role == "user"
    await client.aclose()


async def refused_login():
    client = MAILClient(URL)
    try:
        await client.login("nope")
    except RuntimeError:
        return
    finally:
        await client.aclose()
    raise AssertionError("login with an unknown key worked")


async def status(user, swarm):
    await user.post_message("x")
    answer = await user.get_status()
    assert answer["user_mail_ready"] is True and answer["swarm"]["name"] == swarm


async def message(user):
    answer = await user.post_message("hello from the real client", subject="real", show_events=True)
    assert answer["response"] == "hello from the real client" and answer["events"][0]["event"] == "new_message"


async def through_a_worker(user):
    answer = await user.post_message(script(request("worker", "ping")))
    assert answer["response"] == "worker:ping", answer


async def entrypoint(user):
    assert (await user.post_message("e", entrypoint="echo"))["response"] == "e"


async def second_turn(user):
    task = new_id()
    await user.post_message("one", task_id=task)
    turn = script(("task_complete", {"finish_message": "{{turn}}"}))
    answer = await user.post_message(turn, task_id=task, resume_from="user_response")
    assert answer["response"] == "2", answer


async def breakpoint_tool(user):
    task = new_id()
    answer = await user.post_message(script(("ask_human", {"text": "?"})), task_id=task)
    assert json.loads(answer["response"])[0]["name"] == "ask_human"
    result = json.dumps({"content": "ok"})
    answer = await user.post_message("", task_id=task, resume_from="breakpoint_tool_call", breakpoint_tool_call_result=result)
    assert answer["response"] == "resumed|ok", answer


async def stream(user):
    events = [event async for event in await user.post_message_stream(script(request("worker", "s")))]
    assert events[0].event == "new_message" and events[-1].event == "task_complete", [event.event for event in events]
    assert json.loads(events[-1].data)["response"] == "worker:s"


async def health_update(admin):
    try:
        assert (await admin.update_health("degraded"))["status"] == "degraded"
    finally:
        await admin.update_health("healthy")


async def tasks(user):
    task = new_id()
    await user.post_message("t", task_id=task)
    assert task in await user.get_tasks()
    assert (await user.get_task(task))["task_id"] == task


async def dump(admin, swarm):
    assert (await admin.dump_swarm())["swarm_name"] == swarm


# ---------------------------------------------------------------------------- as a swarm


class Probe:
    """The swarm "probe", with the reference's registry and router behind a small HTTP server on a free port."""

    def __init__(self, swarm):
        self.swarm = swarm
        self.received = asyncio.Queue()

    async def start(self):
        app = web.Application()
        app.router.add_get("/", self.root)
        app.router.add_get("/health", self.health)
        app.router.add_post("/interswarm/message", self.direct)
        app.router.add_post("/interswarm/forward", self.receive)
        app.router.add_post("/interswarm/back", self.receive)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        self.registry = SwarmRegistry("probe", self.url, os.path.abspath("registry.json"), local_swarm_public=True)
        self.router = InterswarmRouter(self.registry, "probe")

    async def root(self, _):
        swarm = {
            "name": "probe",
            "version": "1.3.6",
            "description": "real router",
            "entrypoint": "supervisor",
            "keywords": ["real"],
            "public": True,
        }
        root = {"name": "mail", "protocol_version": "1.3", "version": "1.3", "status": "running", "uptime": 1.0, "swarm": swarm}
        return web.json_response(root)

    async def health(self, _):
        return web.json_response({"status": "healthy", "swarm_name": "probe", "timestamp": SOME_TIME})

    async def receive(self, http_request):
        message = (await http_request.json())["message"]
        await self.received.put((http_request.path, message))
        task = message["payload"]["task_id"]
        runner = f"swarm:{self.swarm}@probe"
        return web.json_response({"swarm": "probe", "task_id": task, "status": "success", "local_runner": runner})

    async def direct(self, http_request):
        asked = await http_request.json()
        message = {
            "task_id": asked.get("task_id") or new_id(),
            "request_id": new_id(),
            "subject": "Re",
            "body": "direct:" + asked["body"],
            "sender": {"address_type": "agent", "address": "worker@probe"},
            "recipient": {"address_type": "user", "address": "caller"},
        }
        response = {"id": new_id(), "timestamp": SOME_TIME, "msg_type": "response", "message": message}
        return web.json_response({"response": response, "events": None})


async def register_probe(user, admin, probe):
    answer = await admin.register_swarm("probe", probe.url, auth_token=TOKENS["to_probe"], volatile=False)
    assert answer["swarm_name"] == "probe"
    listed = [swarm for swarm in (await user.get_swarms())["swarms"] if swarm["swarm_name"] == "probe"]
    assert listed and listed[0]["swarm_description"] == "real router" and listed[0]["keywords"] == ["real"], listed


async def register_server(probe):
    await probe.registry.register_swarm(probe.swarm, URL, PROBE)
    endpoint = probe.registry.get_swarm_endpoint(probe.swarm)
    assert endpoint["version"] == "1.3" and endpoint["is_active"], endpoint
    await probe.registry.start_health_checks()
    assert probe.registry.get_swarm_endpoint(probe.swarm)["is_active"]
    await probe.registry.stop_health_checks()


async def stdlib_actions():
    assert await ping_swarm.function({"url": URL}) == "pong"
    assert await get_swarm_health.function({"url": URL}) == "healthy"
    registry = await get_swarm_registry.function({"url": URL})
    assert "probe" in str(registry), registry


async def forward_with_router(probe):
    await probe.router.start()
    task = new_id()
    payload = {
        "task_id": task,
        "request_id": new_id(),
        "sender": {"address_type": "agent", "address": "supervisor"},
        "recipient": {"address_type": "agent", "address": f"worker@{probe.swarm}"},
        "subject": "hop",
        "body": "router says hi",
        # Version 1.3.6 sends these nulls.
        "sender_swarm": None,
        "recipient_swarm": None,
        "routing_info": {},
    }
    mail = MAILMessage(id=new_id(), timestamp=SOME_TIME, msg_type="request", message=payload)
    owner = "user:kim@probe"
    outgoing = probe.router.convert_local_message_to_interswarm(mail, owner, [owner])
    await probe.router.send_interswarm_message_forward(outgoing)
    while True:
        path, message = await asyncio.wait_for(probe.received.get(), 6)
        if message["payload"]["task_id"] == task:
            break
    body = message["payload"]["body"]
    assert path == "/interswarm/back" and body == "worker:router says hi", (path, body)
    assert message["task_owner"] == owner and len(message["task_contributors"]) == 2
    assert isinstance(message["auth_token"], str) and isinstance(message["metadata"], dict)


async def send_interswarm(user):
    answer = await user.send_interswarm_message("ask", USER, subject="s", targets=["worker@probe"])
    assert answer["response"]["message"]["body"] == "direct:ask", answer


async def main():
    user, admin = MAILClient(URL, api_key=USER), MAILClient(URL, api_key=ADMIN)
    swarm = (await user.get_health())["swarm_name"]
    await step("MAILClient.ping", ping(user))
    await step("MAILClient.login / whoami", login())
    await step("MAILClient.login refused", refused_login())
    await step("MAILClient.get_status after a message", status(user, swarm))
    await step("MAILClient.post_message with events", message(user))
    await step("MAILClient.post_message through a worker", through_a_worker(user))
    await step("MAILClient.post_message entrypoint", entrypoint(user))
    await step("MAILClient multi-turn", second_turn(user))
    await step("MAILClient breakpoint", breakpoint_tool(user))
    await step("MAILClient.post_message_stream", stream(user))
    await step("MAILClient.update_health", health_update(admin))
    await step("MAILClient.get_tasks / get_task", tasks(user))
    await step("MAILClient.dump_swarm", dump(admin, swarm))
    probe = Probe(swarm)
    await probe.start()
    await step("MAILClient.register_swarm + get_swarms", register_probe(user, admin, probe))
    await step("SwarmRegistry registers and health-checks the server", register_server(probe))
    await step("stdlib ping/health/registry actions", stdlib_actions())
    await step("InterswarmRouter forward is answered on back", forward_with_router(probe))
    await step("MAILClient.send_interswarm_message", send_interswarm(user))
    for client in (user, admin):
        await client.aclose()
    await probe.router.stop()
    await probe.runner.cleanup()


asyncio.run(main())
sys.exit(tally.close())
