"""Growth of each system: with the messages that it holds, and with the agents that are registered."""
import itertools
import random

from . import brokers, mail, posthaste

IN_FLIGHT = 64


def pairs_of(agents):
    """An endless iterator of senders and recipients, the same in every run."""
    dice = random.Random(7)
    return ((f"agent-{dice.randrange(agents)}", f"agent-{dice.randrange(agents)}") for _ in itertools.count())


def with_messages(run, which):
    """Sends at 64 in flight, a page of 50 of a mailbox with half of everything, searches, and memory, at each size."""
    rows = []

    def note(system, size, idle, send, inbox=None, rare=None, common=None):
        row = {"system": system, "messages": size, "memory_before": idle, "send": send}
        for name, page in (("inbox", inbox), ("rare", rare), ("common", common)):
            if page:
                row[name] = {"p50_us": page["p50_us"], "p99_us": page["p99_us"]}
        rows.append(row)
        pages = ", ".join(f"{name} {row[name]['p50_us'] / 1000:.1f} ms" for name in ("inbox", "rare", "common") if name in row)
        run.tell(f"{system}, {size:,} messages {pages}", IN_FLIGHT, send)

    for size in run.sizes:
        own = posthaste.Server(run.binary, run.workspace, messages=size)
        try:
            inbox = own.pages("inbox", {"agent": "agent-000", "limit": 50}, run.reads)
            rare = own.pages("search", {"agent": "agent-000", "query": f"{size - 2}", "newest": True, "limit": 50}, run.reads)
            common = own.pages("search", {"agent": "agent-000", "query": "ledger", "newest": True, "limit": 50}, run.reads // 2)
            # After some reads and before the sends: the memory for holding that many messages.
            idle = own.server.memory()
            people = itertools.cycle([(f"agent-{n:03}", f"agent-{(n * 7 + 1) % 100:03}") for n in range(100)])
            note("posthaste", size, idle, own.sends(IN_FLIGHT, people, run.seconds), inbox, rare, common)
        finally:
            own.stop()
    if "redis" in which:
        peer, there = brokers.Redis(run.workspace), 0
        try:
            for size in run.sizes:
                peer.fill(size - there)
                there, idle, inbox = size, peer.server.memory(), peer.page(run.reads)
                note("Redis, fsync always", size, idle, peer.round(IN_FLIGHT, run.seconds, agents=100), inbox)
        finally:
            peer.stop()
    if "nats" in which:
        for size in run.sizes:
            peer = brokers.JetStream(run.workspace, always=True, messages=size)
            try:
                if peer.version >= (2, 10):
                    idle = peer.server.memory()
                    note("NATS, sync always", size, idle, peer.round(IN_FLIGHT, run.seconds, agents=100))
            finally:
                peer.stop()
    if "postgres" in which:
        peer = brokers.Postgres(run.workspace)
        page = ("SELECT m.seq, m.id, m.sender, m.recipients, m.subject, m.body, d.state FROM deliveries d JOIN messages m ON m.seq = d.message"
                " WHERE d.agent = 'agent-0' ORDER BY d.message DESC LIMIT 50")
        look = ("SELECT m.seq, m.id, m.sender, m.subject, ts_headline('simple', m.body, to_tsquery('simple', '{word}')) FROM messages m"
                " WHERE m.found @@ to_tsquery('simple', '{word}') AND EXISTS (SELECT 1 FROM deliveries d WHERE d.message = m.seq AND d.agent = 'agent-0')"
                " ORDER BY m.seq DESC LIMIT 50")
        try:
            for size in run.sizes:
                peer.fill("indexed", size)
                inbox = peer.reads(page, run.reads)
                rare = peer.reads(look.format(word=size - 2), run.reads)
                common = peer.reads(look.format(word="ledger"), run.reads // 2)
                idle = peer.server.memory()
                note("PostgreSQL with index", size, idle, peer.round("indexed", IN_FLIGHT, run.seconds, agents=100), inbox, rare, common)
        finally:
            peer.stop()
    if "mcp" in which:
        peer = mail.AgentMail(run.workspace)
        try:
            for size in run.sizes:
                peer.fill(size)
                inbox = peer.tools.inbox(20, 10)
                idle = peer.server.memory()
                row = {"system": "mcp-agent-mail", "messages": size, "memory_before": idle, "in_flight": 1,
                       "send": peer.tools.round(1, 3), "inbox": {"p50_us": inbox["p50_us"], "p99_us": inbox["p99_us"]}}
                rows.append(row)
                run.tell(f"mcp-agent-mail, {size:,} messages, inbox {inbox['p50_us'] / 1000:.1f} ms", 1, row["send"])
        finally:
            peer.stop()
    return rows


def with_agents(run, which):
    """Sends among each number of agents at 64 in flight, the same number of messages each time, on an empty database."""
    rows, count = [], run.messages

    def note(system, agents, before, send):
        rows.append({"system": system, "agents": agents, "memory_before": before, "send": send})
        run.tell(f"{system}, {agents:,} agents", IN_FLIGHT, send)

    for agents in run.agents:
        own = posthaste.Server(run.binary, run.workspace)
        try:
            own.register(agents)
            before = own.server.memory()
            note("posthaste", agents, before, own.sends(IN_FLIGHT, pairs_of(agents), count=count))
        finally:
            own.stop()
        if "redis" in which:
            peer = brokers.Redis(run.workspace)
            try:
                before = peer.server.memory()
                note("Redis, fsync always", agents, before, peer.round(IN_FLIGHT, agents=agents, count=count))
            finally:
                peer.stop()
        if "nats" in which:
            peer = brokers.JetStream(run.workspace, always=True)
            try:
                before = peer.server.memory()
                # Each is synced alone, so a quarter of them is enough.
                note("NATS, sync always", agents, before, peer.round(IN_FLIGHT, agents=agents, count=count // 4))
            finally:
                peer.stop()
    if "postgres" in which:
        peer = brokers.Postgres(run.workspace)
        try:
            for agents in run.agents:
                peer.clear("indexed")
                before = peer.server.memory()
                note("PostgreSQL with index", agents, before, peer.round("indexed", IN_FLIGHT, agents=agents, count=count))
        finally:
            peer.stop()
    return rows
