"""What the cases share: HTTP calls, schemas, scripts for the agents, and remote swarms that the cases host themselves.

Set up by door.py, which writes a JSON file and names it in SWARM_CONFIG.
"""

import datetime
import json
import os
import re
import threading
import time
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
from harness import ROOT, Skip, Tally
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

CONFIG = json.loads(Path(os.environ["SWARM_CONFIG"]).read_text())
URL, URL_B = CONFIG["url"], CONFIG["url_b"]
TOKENS = CONFIG["tokens"]
ADMIN, USER, USER2 = TOKENS["admin"], TOKENS["user"], TOKENS["user2"]
#: An administrator that sends its first message after the registrations.
ADMIN2 = TOKENS["admin2"]
#: The agent that the swarms hosted by the cases call server A as.
AGENT = TOKENS["peer"]
ADMIN_B, USER_B = TOKENS["admin_b"], TOKENS["user_b"]
#: What A presents to B, and B to A.
LINK_AB, LINK_BA = TOKENS["alpha_on_beta"], TOKENS["beta_on_alpha"]
#: What A presents to the swarms that the cases host.
PEER_TOKEN, PEER2_TOKEN = TOKENS["to_peer"], TOKENS["to_peer2"]
#: The text of the swarm file of A.
DEFINITION = Path(CONFIG["definition"]).read_text()
TIMEOUT = 8
RESTART_SECONDS = 90
SUPERVISOR, WORKER, HELPER, ECHO = "supervisor", "worker", "helper", "echo"

# ---------------------------------------------------------------------------- cases

CASES = []


def case(area, level, needs=()):
    """level: MUST or SHOULD, text of the specification; OPENAPI, only in its openapi.yaml; REF, what published clients rely on;
    ROBUST, quality where the specification is silent. needs: `inter`, the remote swarms; `restart` and `load`, which run last."""

    def register(function):
        name = f"{function.__module__.split('.')[-1]}.{function.__name__}"
        CASES.append({"name": name, "area": area, "level": level, "needs": tuple(needs), "function": function})
        return function

    return register


def run_cases(only):
    tally = Tally()
    cases = [each for each in CASES if re.search(only, each["name"])]
    cases.sort(key=lambda each: ("restart" in each["needs"]) + 2 * ("load" in each["needs"]))
    for each in cases:
        name = f"{each['level']} {each['area']} {each['name']}"
        try:
            if "inter" in each["needs"]:
                set_up_remote_swarms()
            each["function"]()
        except Skip as skip:
            tally.skip(name, skip)
        except httpx.TimeoutException:
            tally.check(name, False, "no answer within the time limit")
        except AssertionError as error:
            tally.check(name, False, str(error) or traceback.format_exc(limit=-1)[-300:])
        except Exception as error:
            tally.check(name, False, f"{type(error).__name__}: {error}")
        else:
            tally.check(name, True)
    return tally.close()


# ---------------------------------------------------------------------------- schemas

SCHEMAS = Path(ROOT) / "crates" / "wire" / "tests" / "data" / "mail-1.3"
CORE = json.loads((SCHEMAS / "MAIL-core.schema.json").read_text())
INTERSWARM = json.loads((SCHEMAS / "MAIL-interswarm.schema.json").read_text())
RFC3339 = re.compile(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")
_registry = Registry().with_resources(
    [(schema["$id"], Resource.from_contents(schema, default_specification=DRAFT202012)) for schema in (CORE, INTERSWARM)]
)
_formats = FormatChecker()


@_formats.checks("uuid")
def _is_uuid(value):
    if not isinstance(value, str):
        return True
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


@_formats.checks("date-time")
def _is_date_time(value):
    if not isinstance(value, str):
        return True
    if not RFC3339.match(value):
        return False
    datetime.datetime.fromisoformat(value.replace("Z", "+00:00").replace("z", "+00:00"))
    return True


_core = Draft202012Validator(CORE, registry=_registry, format_checker=_formats)
_interswarm = Draft202012Validator(INTERSWARM, registry=_registry, format_checker=_formats)


def _first_error(validator, value):
    for error in validator.iter_errors(value):
        causes = error.context or [error]
        return "; ".join(f"{'/'.join(map(str, cause.absolute_path))}: {cause.message[:120]}" for cause in causes)[:500]
    return None


def valid_mail(message):
    error = _first_error(_core, message)
    assert not error, f"MAILMessage breaks MAIL-core.schema.json: {error} :: {json.dumps(message)[:300]}"


def valid_interswarm(message):
    error = _first_error(_interswarm, message)
    assert not error, f"message breaks MAIL-interswarm.schema.json: {error} :: {json.dumps(message)[:300]}"


def is_uuid(value):
    return isinstance(value, str) and _is_uuid(value)


# ---------------------------------------------------------------------------- HTTP

_client = httpx.Client(timeout=TIMEOUT, limits=httpx.Limits(max_connections=200, max_keepalive_connections=0))


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


def get(path, token=None, base=None, **options):
    return _client.get((base or URL) + path, headers={**bearer(token), **options.pop("headers", {})}, **options)


def post(path, token=None, base=None, **options):
    return _client.post((base or URL) + path, headers={**bearer(token), **options.pop("headers", {})}, **options)


def post_message(body=None, tok=None, base=None, timeout=None, **members):
    if body is not None:
        members["body"] = body
    return _client.post((base or URL) + "/message", headers=bearer(tok or USER), json=members, timeout=timeout or TIMEOUT)


def ok(response, status=200):
    assert response.status_code == status, f"want HTTP {status}, got {response.status_code}: {response.text[:300]}"
    return response.json() if "json" in response.headers.get("content-type", "") else response.text


def run_task(body, tok=None, base=None, timeout=None, **members):
    """POST /message with show_events: the response text and the events as (name, data)."""
    answer = ok(post_message(body, tok=tok, base=base, timeout=timeout, show_events=True, **members))
    return answer["response"], [(event.get("event"), _parsed(event.get("data"))) for event in answer.get("events") or []]


def _parsed(data):
    if isinstance(data, str):
        try:
            return json.loads(data)
        except ValueError:
            pass
    return data


def messages_of(events):
    """The messages that `new_message` events carry."""
    return [
        data["extra_data"]["full_message"]
        for name, data in events
        if name == "new_message" and isinstance(data, dict) and (data.get("extra_data") or {}).get("full_message")
    ]


def address_of(party):
    return f"{party['address_type']}:{party['address']}"


def recipients_of(mail):
    message = mail["message"]
    return [party["address"] for party in (message.get("recipients") or [message["recipient"]])]


def stream(body, tok=None, base=None, timeout=None, path="/message", **members):
    """Headers, status, events as (seconds since the start, name, data), and the raw bytes. A comment has the name `:comment`."""
    start, events, raw = time.time(), [], b""
    headers = {**bearer(tok or USER), "Accept": "text/event-stream"}
    payload = {"body": body, "stream": True, **members}
    with httpx.stream("POST", (base or URL) + path, headers=headers, json=payload, timeout=timeout or TIMEOUT) as response:
        if response.status_code != 200:
            response.read()
            return response.headers, response.status_code, [], response.content
        buffer = ""
        for chunk in response.iter_raw():
            raw += chunk
            buffer = (buffer + chunk.decode("utf-8")).replace("\r\n", "\n")
            while "\n\n" in buffer:
                block, buffer = buffer.split("\n\n", 1)
                events.append((time.time() - start, *_event(block)))
        return response.headers, response.status_code, events, raw


def _event(block):
    name, data, comment = "message", [], False
    for line in block.split("\n"):
        if line.startswith(":"):
            comment = True
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    if comment and not data:
        return ":comment", None
    return name, _parsed("\n".join(data))


# ---------------------------------------------------------------------------- scripts for the agents (behaviour.py)


def script(*calls, delay=None):
    value = {"calls": [{"tool": tool, "args": args} for tool, args in calls]}
    if delay:
        value["delay"] = delay
    return json.dumps(value)


def request(target, body, subject="hop"):
    return ("send_request", {"target": target, "subject": subject, "body": body})


def respond(target, body, subject="Re: hop"):
    return ("send_response", {"target": target, "subject": subject, "body": body})


def broadcast(body, subject="B: news"):
    return ("send_broadcast", {"subject": subject, "body": body})


def interrupt(target, body, subject="I: stop"):
    return ("send_interrupt", {"target": target, "subject": subject, "body": body})


def complete(text):
    return ("task_complete", {"finish_message": text})


def new_id():
    return str(uuid.uuid4())


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


_swarm_names = {}


def swarm_name(base=None):
    base = base or URL
    if base not in _swarm_names:
        _swarm_names[base] = get("/health", base=base).json()["swarm_name"]
    return _swarm_names[base]


def own_id(token, base=None):
    identity = get("/whoami", token, base=base).json()
    return identity.get("id") or identity.get("username")


# ---------------------------------------------------------------------------- a remote swarm, hosted here


class Peer:
    """A swarm on a free port of this process. `seen` records every POST; a case may set `fail` and `auto`."""

    def __init__(self, name, token, public=True, description="peer hosted by the checks", keywords=("checks", "peer")):
        self.name, self.token, self.public = name, token, public
        self.description, self.keywords = description, list(keywords)
        self.seen, self.changed = [], threading.Condition()
        #: The status to refuse a path with.
        self.fail = {}
        #: Called with each record, in a thread, after the answer.
        self.auto = None
        self.server = _PeerServer(("127.0.0.1", 0), type("Handler", (_PeerHandler,), {"peer": self}))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def record(self, path, headers, body):
        entry = {"path": path, "headers": {name.lower(): value for name, value in headers.items()}, "json": body}
        with self.changed:
            self.seen.append(entry)
            self.changed.notify_all()
        return entry

    def wait(self, matches, seconds=5.0):
        """The first record that matches, once there is one; None if there is none in time."""
        end = time.time() + seconds
        with self.changed:
            while True:
                for entry in self.seen:
                    if matches(entry):
                        return entry
                left = end - time.time()
                if left <= 0:
                    return None
                self.changed.wait(left)

    def wait_task(self, task_id, paths=("/interswarm/forward", "/interswarm/back"), seconds=5.0, matches=lambda message: True):
        """The first record of a task on one of these paths."""

        def is_of_task(entry):
            if entry["path"] not in paths or not isinstance(entry["json"], dict):
                return False
            message = entry["json"].get("message") or {}
            return message.get("payload", {}).get("task_id") == task_id and matches(message)

        return self.wait(is_of_task, seconds)


class _PeerServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """A client that hangs up is no error here."""


class _PeerHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    peer = None

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        peer = self.peer
        if self.path == "/":
            swarm = {
                "name": peer.name,
                "version": "1.3.6",
                "description": peer.description,
                "entrypoint": SUPERVISOR,
                "keywords": peer.keywords,
                "public": peer.public,
            }
            root = {
                "name": "mail",
                "version": "1.3",
                "protocol_version": "1.3",
                "status": "running",
                "uptime": 1.0,
                "swarm": swarm,
            }
            self.answer(200, root)
        elif self.path == "/health":
            self.answer(200, {"status": "healthy", "swarm_name": peer.name, "timestamp": now()})
        elif self.path == "/swarms":
            self.answer(200, {"swarms": []})
        else:
            self.answer(404, {"detail": "Not Found"})

    def do_POST(self):
        peer = self.peer
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        except ValueError:
            body = None
        entry = peer.record(self.path, self.headers, body)
        if self.path in peer.fail:
            self.answer(peer.fail[self.path], {"detail": "refused by the check"})
            return
        if self.path in ("/interswarm/forward", "/interswarm/back"):
            task_id = ((body or {}).get("message") or {}).get("payload", {}).get("task_id", "")
            runner = f"swarm:{swarm_name()}@{peer.name}"
            self.answer(200, {"swarm": peer.name, "task_id": task_id, "status": "success", "local_runner": runner})
        elif self.path == "/interswarm/message":
            task_id = (body or {}).get("task_id") or new_id()
            response = mail_response(task_id, f"{WORKER}@{peer.name}", "caller", "direct:" + str((body or {}).get("body")))
            self.answer(200, {"response": response, "events": None})
        else:
            self.answer(404, {"detail": "Not Found"})
        if peer.auto:
            threading.Thread(target=peer.auto, args=(entry,), daemon=True).start()


def mail_response(task_id, sender, to, body, subject="Re: hop"):
    message = {
        "task_id": task_id,
        "request_id": new_id(),
        "subject": subject,
        "body": body,
        "sender": {"address_type": "agent", "address": sender},
        "recipient": {"address_type": "agent", "address": to},
    }
    return {"id": new_id(), "timestamp": now(), "msg_type": "response", "message": message}


def interswarm_message(
    peer,
    kind="request",
    to=None,
    body="ping",
    task_id=None,
    sender=None,
    owner=None,
    contributors=None,
    subject="hop",
    target=None,
    optional=True,
):
    """A valid MAILInterswarmMessage from `peer` to server A. `optional`: with the members that only the Python reference demands."""
    here = swarm_name()
    to = to or f"{WORKER}@{here}"
    owner = owner or f"user:bob@{peer.name}"
    payload = {
        "task_id": task_id or new_id(),
        "sender": {"address_type": "agent", "address": sender or f"{SUPERVISOR}@{peer.name}"},
        "subject": subject,
        "body": body,
        "sender_swarm": peer.name,
        "routing_info": {},
    }
    if kind in ("request", "response"):
        payload.update(request_id=new_id(), recipient={"address_type": "agent", "address": to}, recipient_swarm=here)
    else:
        addresses = to if isinstance(to, list) else [to]
        payload.update(
            recipients=[{"address_type": "agent", "address": address} for address in addresses], recipient_swarms=[here]
        )
        payload["broadcast_id" if kind == "broadcast" else "interrupt_id"] = new_id()
    message = {
        "message_id": new_id(),
        "source_swarm": peer.name,
        "target_swarm": target or here,
        "timestamp": now(),
        "payload": payload,
        "msg_type": kind,
        "task_owner": owner,
        "task_contributors": contributors or [owner],
    }
    if optional:
        message.update(auth_token="none", metadata={})
    return message


def answer(peer, record, body, kind="response", **options):
    """What `peer` sends to /interswarm/back in answer to a recorded /interswarm/forward."""
    message = record["json"]["message"]
    payload = message["payload"]
    sender = (payload.get("recipient") or payload["recipients"][0])["address"]
    contributors = list(message["task_contributors"])
    runner = f"swarm:{message['source_swarm']}@{peer.name}"
    if runner not in contributors:
        contributors.append(runner)
    return interswarm_message(
        peer,
        kind,
        to=payload["sender"]["address"],
        body=body,
        task_id=payload["task_id"],
        sender=sender,
        owner=message["task_owner"],
        contributors=contributors,
        subject="Re: " + payload["subject"],
        **options,
    )


class Background:
    """A blocking call in a thread. `join` returns its value or raises its exception."""

    def __init__(self, call):
        self.value, self.error = None, None

        def run():
            try:
                self.value = call()
            except Exception as error:
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self, seconds=TIMEOUT):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "no answer within the time limit"
        if self.error:
            raise self.error
        return self.value


_remote = {}


def set_up_remote_swarms():
    """Once: two peers run and are registered at A, and A and B know each other."""
    if "error" in _remote:
        raise AssertionError("setting up the remote swarms failed: " + _remote["error"])
    if _remote:
        return
    try:
        _remote["peer"] = Peer("peer", PEER_TOKEN)
        _remote["peer2"] = Peer("peer2", PEER2_TOKEN, public=False, description="hidden peer")
        for each in (_remote["peer"], _remote["peer2"]):
            register(ADMIN, None, each.name, each.url, each.token)
        register(ADMIN, None, swarm_name(URL_B), URL_B, LINK_AB)
        register(ADMIN_B, URL_B, swarm_name(), URL, LINK_BA)
    except Exception as error:
        _remote["error"] = f"{type(error).__name__}: {error}"
        raise


def register(token, base, name, url, auth_token):
    ok(post("/swarms", token, base=base, json={"name": name, "base_url": url, "auth_token": auth_token, "volatile": False}))


def peer():
    return _remote["peer"]


def peer2():
    return _remote["peer2"]


def remote_task(remote, target, body, tok=None, kind="request", timeout=None, **options):
    """Starts a task whose supervisor writes to target@peer: the task's id, the call in the background, the record at the peer."""
    task_id = options.pop("task_id", None) or new_id()
    call = {"request": request, "interrupt": interrupt}[kind](f"{target}@{remote.name}", body)
    background = Background(lambda: run_task(script(call), tok=tok or USER, task_id=task_id, timeout=timeout, **options))
    record = remote.wait_task(task_id, ("/interswarm/forward",))
    assert record, "the peer never received POST /interswarm/forward"
    return task_id, background, record


def back(message, tok=None):
    return post("/interswarm/back", tok or AGENT, json={"message": message})


def forward(message, tok=None):
    return post("/interswarm/forward", tok or AGENT, json={"message": message})


def restart_server():
    """door.py restarts server A, with its data and on its port."""
    ok(_client.post(CONFIG["restart_url"], timeout=RESTART_SECONDS))
    ok(get("/health"))
