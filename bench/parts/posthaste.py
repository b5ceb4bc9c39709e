"""posthaste under measurement: by `posthaste-load bench`, and as a server of this run where the database is filled first."""
import json
import os
import re
import subprocess
import sys

from .drive import Http
from .system import BODY, SUBJECT, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILL = os.path.join(ROOT, "crates", "posthaste", "tests", "browser", "fill.py")
RATES = {f"POSTHASTE_RATE_{name}": "off"
         for name in ("REQUESTS", "MESSAGES", "BROADCASTS", "HEARTBEATS", "CONSENTS", "REGISTRATIONS")}
RPC = "/x-posthaste/rpc"


class Server:
    """A running posthaste server with its data in a directory of the run."""

    def __init__(self, binary, workspace, messages=0, further=()):
        self.binary, self.workspace, self.further = binary, workspace, list(further)
        self.data = workspace.folder("posthaste")
        self.start()
        if messages:
            self.stop()
            database = os.path.join(self.data, "realms", "main.db")
            run([sys.executable, FILL, database, str(messages)], timeout=600)
            # Written pages reach the disk now, so that no measurement pays for them.
            os.sync()
            self.start()

    def start(self):
        command = [self.binary, "serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--data", self.data, *self.further]
        ready = lambda server: "ready http" in server.log()
        self.server = self.workspace.start("posthaste", command, ready, env={**os.environ, **RATES})
        self.url = re.search(r"ready (http://\S+)", self.server.log())[1]
        with open(os.path.join(self.data, "admin.token")) as token:
            self.token = token.read().strip()
        self.http = Http(self.url + RPC, {"authorization": f"Bearer {self.token}"})

    def stop(self):
        self.server.stop()

    def new_token(self, role, name):
        made, _ = run([self.binary, "token", "create", "--data", self.data, "--role", role, "--name", name])
        return made.strip()

    def register(self, agents):
        names = iter(range(agents))
        body = lambda _lane: call("register", {"id": f"agent-{next(names)}"})
        self.http.pump(self.server, min(16, agents), request=body, count=agents)

    def sends(self, in_flight, pairs, seconds=None, count=None):
        """Sends, one request per connection at a time; `pairs` is an endless iterator of sender and recipient."""
        def body(_lane):
            sender, to = next(pairs)
            return call("send", {"from": sender, "to": [to], "subject": SUBJECT, "body": BODY})
        return self.http.pump(self.server, in_flight, seconds, body, count=count)

    def pages(self, method, params, count):
        return self.http.pump(self.server, 1, request=lambda _lane: call(method, params), count=count)


def call(method, params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": f"x-posthaste/{method}", "params": params}, separators=(",", ":"))


def bench(bench_run, *options, directory, timeout=600):
    """The output of `posthaste-load bench`, with its temporary files in the run's directory."""
    command = [bench_run.load, "--bin", bench_run.binary, "bench", "--json", *map(str, options)]
    out, _ = run(command, timeout=timeout, env={**os.environ, "TMPDIR": directory})
    return json.loads(out)


def of_round(one):
    """A round of `posthaste-load bench` in the form of the results."""
    return {"messages": one["messages"], "per_second": round(one["per_second"], 1), "p50_us": one["p50_us"], "p99_us": one["p99_us"],
            "server_cpu_us": one["server_cpu_us_per_message"], "client_cpu_us": one.get("client_cpu_us_per_message"),
            "memory": one["server_bytes"]}


def of_map(one):
    """A scenario of `posthaste-load bench --map` in the form of the results."""
    return {"per_second": round(one["per_second"], 1), "p50_us": one.get("p50_us"), "p99_us": one.get("p99_us"),
            "server_cpu_us": one.get("server_cpu_us"), "client_cpu_us": one.get("client_cpu_us"), "memory": one.get("server_bytes")}


def version(binary):
    return subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
