"""The PyPI client `airc-protocol`, unmodified, against a running server.

    python client.py BASE_URL

The client has no call for consent, so consent goes through its own HTTP helper (`Client._post`) with its token, as the section
on plain HTTP in its README does. Its key files go to a home directory that is thrown away.
"""

import os
import secrets
import sys
import tempfile
import time

from harness import Tally

BASE = sys.argv[1].rstrip("/")
os.environ["HOME"] = tempfile.mkdtemp(prefix="airc-home-", dir=".")  # the client chooses its key directory when it is imported

from airc import AIRCError, Client

tally = Tally()
check = tally.check


def attempt(call, *args, **options):
    """The result and None, or None and the error's text. A transport error or invalid JSON is an error, too."""
    try:
        return call(*args, **options), None
    except AIRCError as error:
        return None, str(error)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def consent(client, action, peer):
    return attempt(client._post, "/api/consent", {"action": action, "from": client.name, "handle": peer.name})


def consented(reply):
    return reply is not None and reply.get("success") is not False


def succeeded(reply):
    return reply and reply.get("success") is True


def main():
    tag = secrets.token_hex(3)
    alice = Client("pya_" + tag, registry=BASE, working_on="conformance")
    bob = Client("pyb_" + tag, registry=BASE + "/")  # the client strips the trailing slash
    signer = Client("pys_" + tag, registry=BASE, sign_requests=True)

    for client, name in ((alice, "alice"), (bob, "bob"), (signer, "signer")):
        reply, error = attempt(client.register)
        check(f"register {name}", succeeded(reply), error or reply)
        check(f"register {name} stored a token", client._registered and client._token, reply)

    presence(alice, bob, signer)
    messages(alice, bob, tag)
    signed_requests(bob, signer)
    refusals(alice, bob, tag)
    return tally.close()


def presence(alice, bob, signer):
    reply, error = attempt(alice.heartbeat)
    check("heartbeat()", succeeded(reply), error or reply)
    reply, error = attempt(alice.heartbeat, "busy")
    check("heartbeat('busy')", succeeded(reply), error or reply)
    reply, error = attempt(signer.heartbeat)
    check("heartbeat() with sign_requests=True", succeeded(reply), error or reply)

    users, error = attempt(bob.who)
    listed = next((user for user in users or [] if user.get("username") == alice.name), None)
    check("who() lists alice under users[].username", listed is not None, error or users)
    check("who() shows her status", (listed or {}).get("status") == "busy", listed)


def messages(alice, bob, tag):
    reply, error = attempt(alice.send, "@" + bob.name, "hello before consent")
    check("send() to a stranger raises AIRCError", reply is None and error, reply)
    check("send() to a stranger: HTTP 403", error and "HTTP 403" in error, error)
    polled, error = attempt(bob.poll)
    unread = isinstance(polled, list) and not any(message.get("text") == "hello before consent" for message in polled)
    check("poll() returns a list without the text that was refused", unread, error or polled)

    reply, error = consent(bob, "accept", alice)
    check("consent accept through the client's transport", consented(reply), error or reply)
    reply, error = attempt(alice.send, "@" + bob.name, "hello")
    check("send() after accept", succeeded(reply), error or reply)
    reply, error = attempt(alice.send, bob.name, "Grüße 中文 🚀", "code_review")
    check("send() with payload_type and non-ASCII text", succeeded(reply), error or reply)
    check("send() answer carries messageId", reply and (reply.get("messageId") or (reply.get("message") or {}).get("id")), reply)

    polled, error = attempt(bob.poll)
    texts = [message.get("text") for message in polled or []]
    check("poll() returns both texts", "hello" in texts and "Grüße 中文 🚀" in texts, error or polled)
    message = next((message for message in polled or [] if message.get("text") == "Grüße 中文 🚀"), {})
    check("message has from and to", message.get("from") == alice.name and message.get("to") == bob.name, message)
    check("message keeps its type", message.get("type") == "code_review", message)
    usable = polled and all("from" in message and "text" in message for message in polled)
    check("each message has from and text, which an echo bot needs", usable, polled)
    reply, error = attempt(bob.send, alice.name, "echo: hello")
    check("reply is delivered (consent is mutual)", succeeded(reply), error or reply)
    polled, error = attempt(alice.poll)
    check("alice polls the reply", any(message.get("text") == "echo: hello" for message in polled or []), error or polled)

    time.sleep(1.2)
    since = int(time.time())
    time.sleep(1.2)
    attempt(alice.send, bob.name, "after that time")
    polled, error = attempt(bob.poll, since=since)
    texts = [message.get("text") for message in polled or []]
    check("poll(since=unix seconds) keeps the newer message", "after that time" in texts, error or texts)
    check("poll(since=unix seconds) drops the older ones", "hello" not in texts, texts)


def signed_requests(bob, signer):
    reply, error = consent(bob, "request", signer)
    check("consent request through the client's transport", consented(reply), error or reply)
    listed, error = attempt(signer._get, BASE + "/api/consent?user=" + signer.name)
    pending = [entry.lstrip("@") if isinstance(entry, str) else entry.get("from") for entry in (listed or {}).get("pending", [])]
    check("pending request is listed", bob.name in pending, error or listed)
    consent(signer, "accept", bob)
    reply, error = attempt(signer.send, bob.name, "signed header, ascii")
    check("send() with sign_requests=True (ASCII)", succeeded(reply), error or reply)
    reply, error = attempt(signer.send, bob.name, "signed header, Ümläut")
    check("send() with sign_requests=True (client escapes non-ASCII before signing)", succeeded(reply), error or reply)


def refusals(alice, bob, tag):
    reply, error = consent(bob, "block", alice)
    check("block through the client's transport", consented(reply), error or reply)
    reply, error = attempt(alice.send, bob.name, "blocked")
    check("send() to an agent that blocked the sender raises HTTP 403", error and "HTTP 403" in error, reply or error)
    reply, error = attempt(alice.send, "unknown_" + tag, "x")
    check("send() to an unknown handle raises HTTP 404", error and "HTTP 404" in error, reply or error)

    invalid = Client("no token", registry=BASE)
    reply, error = attempt(invalid.register)
    check("invalid handle raises HTTP 4xx", error and "HTTP 4" in error, reply or error)
    without_token = Client(alice.name, registry=BASE)  # never registered
    reply, error = attempt(without_token.send, bob.name, "forged")
    check("client without token cannot send (401)", error and ("HTTP 401" in error or "HTTP 403" in error), reply or error)
    reply, error = attempt(without_token.poll)
    check("client without token cannot poll (401)", error and "HTTP 401" in error, reply or error)


sys.exit(main())
