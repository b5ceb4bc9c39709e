"""AIRC as it looks on the wire: keys and signatures, canonical JSON, HTTP, agents, payloads."""

import base64
import datetime
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from decimal import Decimal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# ---------------------------------------------------------------------------- Ed25519

SPKI_PREFIX = bytes.fromhex("302a300506032b6570032100")


def public_key(seed):
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def sign(seed, data):
    return Ed25519PrivateKey.from_private_bytes(seed).sign(data)


def verifies(key, data, signature):
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
        return True
    except (InvalidSignature, ValueError):
        return False


# ---------------------------------------------------------------------------- canonical JSON (RFC 8785)


def _number(value):
    """A double as ECMAScript prints it."""
    if value == 0:
        return "0"
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("not a JSON number")
    sign_ = "-" if value < 0 else ""
    parts = Decimal(repr(abs(value))).as_tuple()
    digits = "".join(map(str, parts.digits))
    stripped = digits.rstrip("0")
    exponent = parts.exponent + len(digits) - len(stripped)
    digits = stripped
    k = len(digits)
    n = k + exponent
    if k <= n <= 21:
        text = digits + "0" * (n - k)
    elif 0 < n <= 21:
        text = digits[:n] + "." + digits[n:]
    elif -6 < n <= 0:
        text = "0." + "0" * (-n) + digits
    else:
        e = n - 1
        text = digits[0] + ("." + digits[1:] if k > 1 else "") + "e" + ("+" if e >= 0 else "-") + str(abs(e))
    return sign_ + text


def canonical(value):
    """The RFC 8785 text of a JSON value."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 2**53 else _number(float(value))
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(json.dumps(key, ensure_ascii=False) + ":" + canonical(value[key]) for key in keys) + "}"
    raise TypeError(type(value))


def signing_bytes(obj):
    """The bytes that an AIRC signature covers: the canonical object without `signature`."""
    return canonical({key: value for key, value in obj.items() if key != "signature"}).encode("utf-8")


# ---------------------------------------------------------------------------- encodings


def b64(data):
    return base64.b64encode(data).decode()


def b64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unb64(text):
    """Decodes base64, standard or URL-safe, padded or not, with or without the prefix `ed25519:`."""
    if not isinstance(text, str):
        return None
    text = text.removeprefix("ed25519:").strip().replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return None


def decode_key(text):
    """The 32 bytes of a public key in any encoding that the AIRC texts use."""
    if isinstance(text, str) and "BEGIN PUBLIC KEY" in text:
        text = "".join(line for line in text.splitlines() if "-----" not in line)
    raw = unb64(text)
    if raw is None:
        return None
    if len(raw) == 44 and raw.startswith(SPKI_PREFIX):
        raw = raw[12:]
    return raw if len(raw) == 32 else None


def iso(offset=0.0, milliseconds=False):
    """The time that many seconds from now, as ISO 8601."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset)
    if milliseconds:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (moment.microsecond // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def unix_seconds(value):
    """Unix seconds from ISO 8601, Unix seconds or Unix milliseconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1000.0 if value > 1e11 else float(value)
    if isinstance(value, str):
        try:
            return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        except ValueError:
            return None
    return None


def random_hex(count=6):
    """A random text of `count` bytes in hexadecimal."""
    return secrets.token_hex(count)


# ---------------------------------------------------------------------------- HTTP


class Reply:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text
        try:
            self.json = json.loads(text) if text else None
        except ValueError:
            self.json = None

    @property
    def ok(self):
        return 200 <= self.status < 300

    @property
    def obj(self):
        return self.json if isinstance(self.json, dict) else {}

    @property
    def error(self):
        """The error code in lower case, from any of the members that may carry it."""
        error = self.obj.get("error", self.obj.get("code", ""))
        if isinstance(error, dict):
            error = error.get("code") or error.get("type") or error.get("message") or ""
        return str(error).lower()

    def __repr__(self):
        return f"{self.status} {(self.text or '')[:220]}"


# A proxy in the environment must not see requests to the loopback address.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Api:
    """A registry. `identity/x` is looked up below the endpoint that the discovery document names; `/x` below the base URL."""

    def __init__(self, base, timeout=20):
        self.base = base.rstrip("/")
        self.timeout = timeout
        self.document = None
        self.endpoints = {"identity": "/identity", "presence": "/presence", "messages": "/messages", "consent": "/consent"}

    def discover(self):
        reply = self.request("GET", "/.well-known/airc")
        self.document = None
        if reply.ok and isinstance(reply.json, dict):
            self.document = reply.json
            named = reply.json.get("endpoints")
            for key in self.endpoints:
                if isinstance(named, dict) and isinstance(named.get(key), str):
                    self.endpoints[key] = named[key]
        return reply

    def url(self, path):
        if path.startswith("/"):
            return self.base + path
        head, _, tail = path.partition("/")
        head, _, query = head.partition("?")
        endpoint = self.endpoints[head]
        url = endpoint if endpoint.startswith("http") else self.base + endpoint
        return url + ("?" + query if query else "") + ("/" + tail if tail else "")

    def request(self, method, path, body=None, token=None, headers=None, raw=None):
        all_headers = {"Accept": "application/json"}
        data = None
        if raw is not None:
            data = raw if isinstance(raw, bytes) else raw.encode("utf-8")
        elif body is not None:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8")
        if data is not None:
            all_headers["Content-Type"] = "application/json"
        if token:
            all_headers["Authorization"] = "Bearer " + token
        all_headers.update(headers or {})
        request = urllib.request.Request(self.url(path), data=data, method=method, headers=all_headers)
        try:
            with _opener.open(request, timeout=self.timeout) as response:
                return Reply(response.status, response.headers, response.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.headers, error.read().decode("utf-8", "replace"))

    def get(self, path, token=None, **params):
        if params:
            path += ("&" if "?" in path else "?") + urllib.parse.urlencode(params)
        return self.request("GET", path, token=token)

    def post(self, path, body, token=None, **options):
        return self.request("POST", path, body=body, token=token, **options)


# ---------------------------------------------------------------------------- agents


class Agent:
    def __init__(self, api, handle):
        self.api, self.handle = api, handle
        self.seed = secrets.token_bytes(32)
        self.public = public_key(self.seed)
        self.recovery_seed = secrets.token_bytes(32)
        self.token = None

    def sign(self, obj, seed=None):
        return "ed25519:" + b64(sign(seed or self.seed, signing_bytes(obj)))

    def identity_body(self, **other):
        return {
            "handle": self.handle,
            "display_name": self.handle.title(),
            "public_key": "ed25519:" + b64(self.public),
            "recovery_key": "ed25519:" + b64(public_key(self.recovery_seed)),
            "capabilities": ["text", "context:thread", "context:mailbox", "context:mailbox_ack", "context:file_reservation"],
            "proof": "ed25519:" + b64(sign(self.seed, self.handle.encode())),
            **other,
        }

    def register(self):
        reply = self.api.post("identity", self.identity_body())
        self.token = token_of(reply)
        return reply

    def presence(self, privacy=None, status="available", **other):
        body = {"handle": self.handle, "status": status}
        if privacy is not None:
            body["privacy"] = privacy
        return self.api.post("presence", {**body, **other}, self.token)

    def envelope(self, to, payload=None, signed=True, **other):
        envelope = {
            "v": "0.2",
            "id": "msg_" + b64url(secrets.token_bytes(16)),
            "from": self.handle,
            "to": to.handle if isinstance(to, Agent) else to,
            "timestamp": int(time.time()),
            "nonce": secrets.token_hex(16),
        }
        if payload is not None:
            envelope["payload"] = payload
        envelope.update(other)
        if signed:
            envelope["signature"] = self.sign(envelope)
        return envelope

    def post_message(self, envelope, token="own"):
        return self.api.post("messages", envelope, self.token if token == "own" else token)

    def send(self, to, payload=None, **other):
        """Signs and sends. The reply also has the envelope that was sent."""
        envelope = self.envelope(to, payload, **other)
        reply = self.post_message(envelope)
        reply.envelope = envelope
        return reply

    def send_text(self, to, text, **other):
        return self.send(to, {"type": "text", "content": text}, **other)

    def consent(self, action, peer, **other):
        body = {"type": action, "from": self.handle, "to": peer.handle if isinstance(peer, Agent) else peer}
        return self.api.post("consent", {**body, **other}, self.token)

    def inbox(self, **params):
        return messages_of(self.inbox_reply(**params))

    def inbox_reply(self, **params):
        return self.api.get("messages/inbox", self.token, **params)

    def received(self, message, wait=2.0):
        """The message with that id in the inbox, once it is there; None after `wait` seconds."""
        end = time.time() + wait
        while True:
            found = find(self.inbox(limit=200), message)
            if found is not None or time.time() >= end:
                return found
            time.sleep(0.15)


# ---------------------------------------------------------------------------- reading replies


def token_of(reply):
    identity = reply.obj.get("identity")
    for source in (reply.obj, identity if isinstance(identity, dict) else {}):
        for key in ("session_token", "token", "accessToken", "access_token"):
            if isinstance(source.get(key), str):
                return source[key]
    return None


def messages_of(reply):
    if isinstance(reply.json, list):
        return reply.json
    for key in ("messages", "inbox", "thread", "items"):
        if isinstance(reply.obj.get(key), list):
            return reply.obj[key]
    return []


def envelope_of(message):
    """The part of an inbox item that its sender signed."""
    for key in ("envelope", "message", "content"):
        if isinstance(message.get(key), dict) and "signature" in message[key]:
            return message[key]
    return {key: value for key, value in message.items() if key not in ("delivery", "_delivery")}


def id_of(message):
    return message.get("id") or envelope_of(message).get("id")


def payload_of(message):
    return envelope_of(message).get("payload", message.get("payload"))


def find(messages, wanted):
    for message in messages:
        if isinstance(message, dict) and id_of(message) == wanted:
            return message
    return None


def presence_list(reply):
    found = reply.json if isinstance(reply.json, list) else []
    for key in ("active", "away", "users", "agents", "online", "presence"):
        if isinstance(reply.obj.get(key), list):
            found = found + reply.obj[key]
    return [entry for entry in found if isinstance(entry, dict)]


def presence_entry(reply, handle):
    for entry in presence_list(reply):
        if handle in (entry.get("handle"), entry.get("username")):
            return entry
    return None


def identity_of(reply):
    identity = reply.obj.get("identity")
    return identity if isinstance(identity, dict) else reply.obj


def pending_from(reply):
    """The contact requests that GET /consent lists, by handle."""
    listed = reply.json if isinstance(reply.json, list) else reply.obj.get("pending") or reply.obj.get("requests") or []
    requests = {}
    for entry in listed:
        if isinstance(entry, str):
            requests[entry.lstrip("@")] = {}
        elif isinstance(entry, dict):
            requests[str(entry.get("from") or entry.get("handle") or entry.get("requester")).lstrip("@")] = entry
    return requests


def conflicts_of(reply):
    """The advisory report of conflicts in the answer to a reservation."""
    for source in (reply.obj, reply.obj.get("reservation"), reply.obj.get("message")):
        if isinstance(source, dict) and isinstance(source.get("conflicts"), list):
            return source["conflicts"]
    return []


# ---------------------------------------------------------------------------- payloads

#: As a value: leave this member out.
OMITTED = object()


def _payload(members, other):
    return {key: value for key, value in {**members, **other}.items() if value is not OMITTED}


def thread_payload(**other):
    members = {"type": "context:thread", "thread_id": "bd-" + random_hex(3), "subject": "Fix auth race", "created_ts": iso()}
    return _payload(members, other)


def mailbox_payload(**other):
    members = {
        "type": "context:mailbox",
        "message_id": "mail-" + random_hex(6),
        "subject": "Ready to hand off",
        "body_md": "Done.\n\n- [ ] tests",
    }
    return _payload(members, other)


def ack_payload(acknowledged, **other):
    return _payload({"type": "context:mailbox_ack", "message_id": acknowledged, "ack_ts": iso()}, other)


def reservation_payload(paths=("api/auth.ts",), ttl=3600, issued=0, scope="repo:github.com/example/app", **other):
    members = {
        "type": "context:file_reservation",
        "reservation_id": "rsv-" + random_hex(6),
        "scope": scope,
        "paths": list(paths),
        "exclusive": True,
        "reason": "conformance",
        "status": "active",
        "ttl_seconds": ttl,
        "issued_ts": iso(issued),
        "expires_ts": iso(issued + ttl),
    }
    return _payload(members, other)


def renewal_payload(reservation, ttl=3600, **other):
    members = {
        "type": "context:file_reservation",
        "reservation_id": reservation,
        "status": "renewed",
        "ttl_seconds": ttl,
        "expires_ts": iso(ttl),
    }
    return _payload(members, other)


def release_payload(reservation, **other):
    members = {"type": "context:file_reservation", "reservation_id": reservation, "status": "released", "released_ts": iso()}
    return _payload(members, other)


def conflict_payload(reservation, **other):
    members = {
        "type": "context:reservation_conflict",
        "conflicting_reservation_id": reservation,
        "requested_paths": ["api/auth.ts"],
        "reason": "bug 456",
        "proposal": "release",
        "urgency": "normal",
    }
    return _payload(members, other)
