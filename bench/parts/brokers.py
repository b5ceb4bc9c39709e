"""NATS JetStream, Redis streams and PostgreSQL, each with the same message and the load generator that suits it best."""
import csv
import glob
import io
import json
import os
import pwd
import threading
import time

from . import install
from .drive import Nats
from .system import BODY, SUBJECT, answers, figure, free_port, run

RECORD = json.dumps({"from": "agent-1", "to": ["agent-2"], "subject": SUBJECT, "body": BODY})
PAGE = 50


class JetStream:
    """One stream in files. `always` syncs every write before its acknowledgement; otherwise the server syncs every two minutes."""

    def __init__(self, workspace, always=False, messages=0):
        self.workspace, self.port = workspace, free_port()
        self.program, self.version = install.nats()
        self.data = workspace.folder("nats")
        self.start(always and not messages)
        self.fill(messages)
        if always and messages:
            # Filled without syncs, then restarted with them.
            self.stop()
            os.sync()
            self.start(True)

    def start(self, always):
        config = os.path.join(self.data, "nats.conf")
        with open(config, "w") as out:
            out.write(f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.data}/store"'
                      f'{", sync_interval: always" if always else ""} }}\n')
        self.server = self.workspace.start("nats", [self.program, "-c", config], answers(self.port))
        self.line = Nats(self.port)
        stream = {"name": "mail", "subjects": ["mail.>"], "storage": "file", "retention": "limits", "max_msgs": -1}
        for attempt in range(50):
            try:
                self.line.ask("$JS.API.STREAM.CREATE.mail", stream)
                break
            except RuntimeError:
                # JetStream opens a moment after the port.
                if attempt == 49:
                    raise
                time.sleep(0.1)

    def stop(self):
        self.line.close()
        self.server.stop()

    def fill(self, messages):
        if messages:
            there = self.line.ask("$JS.API.STREAM.INFO.mail", None)["state"]["messages"]
            if messages > there:
                self.line.pump(self.server, 512, lambda n: b"mail.agent-%d" % (n % 100), count=messages - there)

    def round(self, in_flight, seconds=None, agents=16, count=None):
        there = self.line.ask("$JS.API.STREAM.INFO.mail", None)["state"]["messages"]
        done = self.line.pump(self.server, in_flight, lambda n: b"mail.agent-%d" % (n * 7919 % agents), seconds, count)
        kept = self.line.ask("$JS.API.STREAM.INFO.mail", None)["state"]["messages"] - there
        if kept != done["messages"]:
            raise RuntimeError(f"NATS acknowledged {done['messages']} and keeps {kept}")
        return done


class Redis:
    """Streams, one for each agent, with the append-only file synced before the answer (`always`) or once a second."""

    def __init__(self, workspace, sync="always"):
        programs = install.debian({"redis-server": "redis-server", "redis-benchmark": "redis-tools", "redis-cli": "redis-tools"})
        self.port, self.data, self.sync = free_port(), workspace.folder("redis"), sync
        self.load, self.client = programs["redis-benchmark"], programs["redis-cli"]
        command = [programs["redis-server"], "--port", self.port, "--bind", "127.0.0.1", "--dir", self.data, "--save", "",
                   "--appendonly", "yes", "--appendfsync", sync,
                   # A rewrite of the file would cost Redis CPU time at a random moment.
                   "--auto-aof-rewrite-percentage", "0"]
        self.server = workspace.start("redis", list(map(str, command)), answers(self.port))
        self.rate = {}

    def say(self, *words):
        return run([self.client, "-p", str(self.port), *words])[0].strip()

    def stop(self):
        self.server.stop()

    def fill(self, messages):
        """By a script inside the server, which is the fastest way, with the syncs off meanwhile."""
        self.say("config", "set", "appendfsync", "no")
        script = ("for n = 1, tonumber(ARGV[1]) do redis.call('XADD', 'inbox:' .. (n % 2 == 0 and '000000000000' or "
                  "string.format('%012d', n % 100)), '*', 'from', ARGV[2], 'to', 'agent-2', 'subject', ARGV[3] .. n, 'body', ARGV[4]) end")
        for low in range(0, messages, 20_000):
            self.say("eval", script, "0", str(min(20_000, messages - low)), "agent-1", SUBJECT, BODY)
        self.say("config", "set", "appendfsync", self.sync)

    def round(self, in_flight, seconds=None, agents=16, count=None):
        command = [self.load, "-p", self.port, "-c", in_flight, "-r", agents, "--csv", "-n"]
        entry = ["XADD", "inbox:__rand_int__", "*", "from", "agent-1", "to", "agent-2", "subject", SUBJECT, "body", BODY]
        once = lambda n: run([*map(str, command), str(n), *entry])
        if count is None:
            # redis-benchmark takes a number of requests, not of seconds; a short run tells how many fit.
            if in_flight not in self.rate:
                self.rate[in_flight] = self.row(once(500 * in_flight if in_flight < 8 else 3000)[0])["rps"]
            count = max(200, int(self.rate[in_flight] * seconds))
        cpu = self.server.cpu()
        out, own = once(count)
        row = self.row(out)
        self.rate[in_flight] = row["rps"]
        cpu = self.server.cpu() - cpu
        return {"messages": count, "per_second": round(row["rps"], 1), "p50_us": round(row["p50_latency_ms"] * 1000),
                "p99_us": round(row["p99_latency_ms"] * 1000), "server_cpu_us": round(cpu * 1e6 / count, 2),
                "client_cpu_us": round(own * 1e6 / count, 2), "memory": self.server.memory()}

    @staticmethod
    def row(out):
        names, values = list(csv.reader(io.StringIO(out[out.index('"test"'):])))[:2]
        return {name: float(value) for name, value in zip(names[1:], values[1:])}

    def page(self, count):
        """The newest fifty of a stream that holds half of all messages."""
        out, own = run([self.load, "-p", str(self.port), "-c", "1", "-n", str(count), "--csv", "XREVRANGE", "inbox:000000000000", "+", "-",
                        "COUNT", str(PAGE)])
        return {"p50_us": round(self.row(out)["p50_latency_ms"] * 1000), "p99_us": round(self.row(out)["p99_latency_ms"] * 1000)}

    def clear(self):
        self.say("flushall")


TABLES = """
CREATE TABLE messages(seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    sender text NOT NULL, recipients text NOT NULL, kind text NOT NULL, subject text, body text NOT NULL, priority int NOT NULL,
    ack_required boolean NOT NULL, audience text NOT NULL, via text NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON messages(sender, seq);
CREATE TABLE deliveries(agent text NOT NULL, message bigint NOT NULL, copy text NOT NULL, state int NOT NULL, kind text NOT NULL,
    priority int NOT NULL, PRIMARY KEY(agent, message));
CREATE INDEX ON deliveries(agent, state, priority, message) WHERE state < 2;
CREATE INDEX ON deliveries(message, agent);
CREATE TABLE events(seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), kind text NOT NULL,
    actor text NOT NULL, message bigint, fact text NOT NULL);
"""
INDEX = """
ALTER TABLE messages ADD COLUMN found tsvector
    GENERATED ALWAYS AS (to_tsvector('simple', coalesce(subject, '') || ' ' || body)) STORED;
CREATE INDEX messages_found ON messages USING gin(found);
"""
# One statement, so one round trip and one transaction for the three rows.
SEND = """\\set me random(0, {last})
\\set to random(0, {last})
WITH m AS (INSERT INTO messages(sender, recipients, kind, subject, body, priority, ack_required, audience, via)
  VALUES('agent-' || :me::int, '[{{"agent":"agent-' || :to::int || '"}}]', '', '{subject}', '{body}', 3, false, 'parties', 'cli') RETURNING seq),
d AS (INSERT INTO deliveries(agent, message, copy, state, kind, priority) SELECT 'agent-' || :to::int, seq, 'to', 0, '', 3 FROM m)
INSERT INTO events(kind, actor, message, fact) SELECT 'message.sent', 'agent-' || :me::int, seq, '{{"kind":"message.sent"}}' FROM m;
"""
FILL = """
SET synchronous_commit = off;
INSERT INTO messages(seq, sender, recipients, kind, subject, body, priority, ack_required, audience, via) OVERRIDING SYSTEM VALUE
  SELECT i, 'agent-' || i * 7 % 20, '[]', '', 'Subject number ' || i, 'Message ' || i || ' says that the ledger of ' || i % 977 ||
    ' is balanced and that no one needs to look at it again before the next release goes out on ' || i % 31 || '.', 3, false, 'parties', 'cli'
  FROM generate_series({low}, {high}) i;
INSERT INTO deliveries SELECT CASE WHEN i % 2 = 0 THEN 'agent-0' ELSE 'agent-' || 1 + i % 99 END, i, 'to',
  CASE WHEN i % 10 = 2 THEN 0 ELSE 2 END, '', 3 FROM generate_series({low}, {high}) i;
INSERT INTO events(kind, actor, message, fact) SELECT 'message.sent', 'agent-1', i, '{{"kind":"message.sent"}}' FROM generate_series({low}, {high}) i;
ALTER TABLE messages ALTER seq RESTART WITH {next};
"""


class Postgres:
    """Messages, deliveries and events as rows, with the indices that posthaste has for a plain message; a second database has a
    full-text index as well. Settings are the package's, commits are synchronous."""

    def __init__(self, workspace):
        programs = install.debian({"postgres": "postgresql", "initdb": "postgresql", "psql": "postgresql-client", "pgbench": "postgresql"})
        self.programs, self.workspace, self.port = programs, workspace, free_port()
        self.data = workspace.folder("postgres")
        user = None
        if os.geteuid() == 0:
            user = "postgres"
            os.chown(self.data, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        made = workspace.start("initdb", [programs["initdb"], "-D", f"{self.data}/database", "-A", "trust", "-U", "bench", "-E", "UTF8",
                                      "--locale=C", "--no-sync"], user=user, cwd=self.data)
        if made.process.wait(120) != 0:
            raise RuntimeError(f"initdb: {made.log()[-500:]}")
        made.stop()
        self.server = workspace.start("postgres", [programs["postgres"], "-D", f"{self.data}/database", "-p", str(self.port), "-k", self.data,
                                               "-c", "listen_addresses=127.0.0.1", "-c", "synchronous_commit=on"],
                                  self.ready, user=user, cwd=self.data, stop=2)
        for database in ("plain", "indexed"):
            self.say("postgres", f"CREATE DATABASE {database}")
            self.say(database, TABLES + (INDEX if database == "indexed" else ""))

    def ready(self, _server):
        try:
            self.say("postgres", "SELECT 1")
            return True
        except RuntimeError:
            return False

    def command(self, program):
        return [self.programs[program], "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench"]

    def say(self, database, text):
        return run([*self.command("psql"), "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text], timeout=600)[0]

    def stop(self):
        self.server.stop()

    def clear(self, database):
        self.say(database, "TRUNCATE messages, deliveries, events RESTART IDENTITY")

    def fill(self, database, messages):
        """Fills the database up to that number of messages, 100,000 at a time."""
        there = int(self.say(database, "SELECT coalesce(max(seq), 0) FROM messages"))
        # Building the index at the end is faster than maintaining it.
        self.say(database, "DROP INDEX IF EXISTS messages_found")
        for low in range(there + 1, messages + 1, 100_000):
            self.say(database, FILL.format(low=low, high=min(low + 99_999, messages), next=min(low + 99_999, messages) + 1))
        if database == "indexed":
            self.say(database, "SET maintenance_work_mem = '512MB'; CREATE INDEX messages_found ON messages USING gin(found)")
        # The state in which autovacuum would leave it.
        self.say(database, "VACUUM ANALYZE")
        self.say(database, "CHECKPOINT")

    def round(self, database, in_flight, seconds=None, agents=16, count=None):
        folder = self.workspace.folder("pgbench")
        script = os.path.join(folder, "send.sql")
        with open(script, "w") as out:
            out.write(SEND.format(last=agents - 1, subject=SUBJECT, body=BODY))
        often = ["-T", str(seconds)] if count is None else ["-t", str(max(1, count // in_flight))]
        # Memory is measured while the connections are open, because each is a process.
        held = []
        look = threading.Timer(0.7 * (seconds or 1), lambda: held.append(self.server.memory()))
        look.start()
        cpu = self.server.cpu()
        _, own = run([*self.command("pgbench"), "-n", "-M", "prepared", "-c", str(in_flight), "-j", str(min(2, in_flight)), *often, "-l",
                        "--log-prefix", os.path.join(folder, "log"), "-f", script, database], cwd=folder)
        # Each connection is a process of the server; its CPU time counts, also after it has ended.
        cpu = self.server.cpu() - cpu
        look.join()
        times, ends = [], []
        for path in glob.glob(os.path.join(folder, "log.*")):
            with open(path) as log:
                for line in log:
                    fields = line.split()
                    times.append(int(fields[2]))
                    ends.append(int(fields[4]) + int(fields[5]) / 1e6)
                os.unlink(path)
        wall = max(ends) - min(ends) if len(ends) > 1 else 1
        return figure(times, wall, cpu, own, held[0])

    def reads(self, text, count):
        """One statement again and again over one connection."""
        folder = self.workspace.folder("pgbench")
        script = os.path.join(folder, "read.sql")
        with open(script, "w") as out:
            out.write(text + ";\n")
        run([*self.command("pgbench"), "-n", "-M", "prepared", "-c", "1", "-t", str(count), "-l", "--log-prefix",
             os.path.join(folder, "log"), "-f", script, "indexed"], cwd=folder)
        times = []
        for path in glob.glob(os.path.join(folder, "log.*")):
            with open(path) as log:
                times.extend(int(line.split()[2]) for line in log)
        shown = figure(times, sum(times) / 1e6)
        return {"p50_us": shown["p50_us"], "p99_us": shown["p99_us"]}
