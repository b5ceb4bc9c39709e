"""Load over raw sockets with little CPU time of its own: HTTP connections with one request at a time each, and one NATS
connection with many unacknowledged publications. Every figure includes the CPU time of this side."""
import json
import re
import select
import socket
import time
from urllib.parse import urlsplit

from .system import BODY, SUBJECT, figure

LENGTH = re.compile(rb"content-length: *(\d+)", re.I)
SESSION = re.compile(rb"mcp-session-id: *([^\r\n]+)", re.I)


class Http:
    """Connections to one address. A request is the bytes of its body; a response is checked for a substring."""

    def __init__(self, url, headers=None):
        parts = urlsplit(url)
        self.address, self.path = (parts.hostname, parts.port), parts.path or "/"
        self.headers = {"host": parts.netloc, "content-type": "application/json",
                        "accept": "application/json, text/event-stream", **(headers or {})}

    def request(self, body, headers=None):
        if isinstance(body, str):
            body = body.encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in {**self.headers, **(headers or {})}.items())
        return f"POST {self.path} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body

    def lane(self):
        lane = socket.create_connection(self.address, 30)
        lane.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return lane

    def ask(self, body, headers=None, timeout=120):
        """One request over its own connection: head and body of the response."""
        with self.lane() as lane:
            lane.settimeout(timeout)
            lane.sendall(self.request(body, headers))
            got = b""
            while (answer := whole(got)) is None:
                more = lane.recv(1 << 18)
                if not more:
                    raise RuntimeError(f"the server closed the connection: {got[:200]!r}")
                got += more
            return answer

    def pump(self, server, in_flight, seconds=None, request=None, good=b'"result"', count=None, grace=20, headers=None):
        """Keeps `in_flight` connections busy until the time is up or `count` requests were sent. `request(lane)` returns the next body."""
        lanes = {}
        poll = select.epoll()
        for number in range(in_flight):
            lane = self.lane()
            lane.setblocking(False)
            poll.register(lane.fileno(), select.EPOLLIN)
            lanes[lane.fileno()] = [lane, number, b"", 0.0]
        times, failed, why, asked = [], 0, b"", 0
        now = time.perf_counter
        cpu, own, started = server.cpu(), time.process_time(), now()
        end = started + (seconds or 3600)
        waiting = 0
        head = headers or (lambda number: None)
        for entry in lanes.values():
            if count is None or asked < count:
                entry[3] = now()
                entry[0].send(self.request(request(entry[1]), head(entry[1])))
                asked += 1
                waiting += 1
        last = started
        while waiting:
            events = poll.poll(1)
            if not events and now() > end + grace:
                break
            for fileno, _ in events:
                entry = lanes[fileno]
                more = entry[0].recv(1 << 18)
                if not more:
                    raise RuntimeError(f"the server closed a connection: {entry[2][:200]!r}")
                entry[2] = got = entry[2] + more if entry[2] else more
                answer = whole(got)
                if answer is None:
                    continue
                last = now()
                if good in answer[1] and b'"isError":true' not in answer[1] and b'"isError": true' not in answer[1]:
                    times.append((last - entry[3]) * 1e6)
                else:
                    failed, why = failed + 1, answer[1][:300]
                entry[2] = b""
                if last < end and (count is None or asked < count):
                    entry[3] = now()
                    entry[0].send(self.request(request(entry[1]), head(entry[1])))
                    asked += 1
                else:
                    waiting -= 1
        wall = max(last, started + 1e-6) - started if not waiting else now() - started
        cpu, own = server.cpu() - cpu, time.process_time() - own
        for entry in lanes.values():
            entry[0].close()
        poll.close()
        if not times and failed:
            raise RuntimeError(f"every request failed: {why.decode(errors='replace')}")
        return figure(times, wall, cpu, own, server.memory(), failed + waiting)


def whole(got):
    """Head and body if the response is complete."""
    split = got.find(b"\r\n\r\n")
    if split < 0:
        return None
    head = got[:split]
    length = LENGTH.search(head)
    if length:
        body = got[split + 4:]
        return (head, body) if len(body) >= int(length[1]) else None
    if b"chunked" in head.lower():
        at, body = split + 4, b""
        while (line := got.find(b"\r\n", at)) >= 0:
            size = int(got[at:line].split(b";")[0], 16)
            if size == 0:
                return (head, body) if len(got) >= line + 4 else None
            if len(got) < line + 2 + size + 2:
                return None
            body += got[line + 2:line + 2 + size]
            at = line + 2 + size + 2
        return None
    return head, b""


class Nats:
    """One connection to a NATS server, for acknowledged publications."""

    ANSWER = re.compile(rb"MSG _INBOX\.b\.(\d+) 1 (?:\S+ )?(\d+)\r\n")

    def __init__(self, port):
        self.lane = socket.create_connection(("127.0.0.1", port), 30)
        self.lane.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lane.recv(1 << 16)
        self.lane.sendall(b'CONNECT {"verbose":false,"pedantic":false,"protocol":1,"headers":true,"no_responders":true}\r\n'
                          b"SUB _INBOX.b.* 1\r\nPING\r\n")
        self.rest, self.number = b"", 0
        while b"PONG" not in self.rest:
            self.rest += self.lane.recv(1 << 16)
        self.rest = b""

    def publication(self, subject, body):
        self.number += 1
        return self.number, b"PUB %s _INBOX.b.%d %d\r\n%s\r\n" % (subject, self.number, len(body), body)

    def answers(self):
        """The acknowledgements that have arrived; waits for some data."""
        self.lane.settimeout(30)
        more = self.lane.recv(1 << 18)
        if not more:
            raise RuntimeError("NATS closed the connection")
        got = self.rest + more
        at, found = 0, []
        while True:
            if got.startswith(b"PING\r\n", at):
                self.lane.sendall(b"PONG\r\n")
                at += 6
                continue
            hit = self.ANSWER.match(got, at)
            if hit is None:
                if b"\r\n" in got[at:] and not got.startswith((b"MSG", b"PONG", b"INFO"), at):
                    raise RuntimeError(f"NATS said: {got[at:at + 200]!r}")
                break
            end = hit.end() + int(hit[2])
            if len(got) < end + 2:
                break
            found.append((int(hit[1]), got[hit.end():end]))
            at = end + 2
        self.rest = got[at:]
        return found

    def ask(self, subject, body):
        number, text = self.publication(subject.encode(), json.dumps(body).encode() if body else b"")
        self.lane.sendall(text)
        while True:
            for which, answer in self.answers():
                if which == number:
                    answer = json.loads(answer)
                    if "error" in answer:
                        raise RuntimeError(f"{subject}: {answer['error']}")
                    return answer

    def pump(self, server, in_flight, subject, seconds=None, count=None):
        """Keeps `in_flight` publications unacknowledged. `subject(n)` is the subject of the nth."""
        body = json.dumps({"from": "agent-1", "to": ["agent-2"], "subject": SUBJECT, "body": BODY}).encode()
        times, asked = [], {}
        now = time.perf_counter
        cpu, own, started = server.cpu(), time.process_time(), now()
        end, sent = started + (seconds or 3600), 0
        while True:
            if now() < end and (count is None or sent < count):
                new = []
                while len(asked) < in_flight and (count is None or sent < count):
                    number, text = self.publication(subject(sent), body)
                    new.append(text)
                    asked[number] = now()
                    sent += 1
                if new:
                    self.lane.sendall(b"".join(new))
            elif not asked:
                break
            for number, answer in self.answers():
                if b'"error"' in answer:
                    raise RuntimeError(f"NATS refused: {answer!r}")
                times.append((now() - asked.pop(number)) * 1e6)
        wall = now() - started
        return figure(times, wall, server.cpu() - cpu, time.process_time() - own, server.memory())

    def close(self):
        self.lane.close()
