"""Fills the database of a stopped server with messages, to measure pages on a large one: fill.py DATABASE MESSAGES

A hundred agents; half of the messages are agent-000's and one in ten of them is unread; one in fifty asks for an
acknowledgement; a fifth was sent within the last hour. Every message is a turn of one of a thousand conversations.
"""
import sqlite3
import sys
import time

path, count = sys.argv[1], int(sys.argv[2])
db = sqlite3.connect(path)
db.executescript("PRAGMA journal_mode = off; PRAGMA locking_mode = exclusive; PRAGMA synchronous = off; PRAGMA cache_size = -400000; PRAGMA temp_store = memory;")
head = db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
now = int(time.time() * 1000)
hour, old = 3_600_000, 30 * 86_400_000
rights = '{"can_send":true,"can_observe":true,"can_invite":false,"can_remove":false,"can_create_threads":true,"history":"full","can_see_internal":false}'
numbers = "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
# Four fifths over the last month, one fifth over the last hour.
when = f"CASE WHEN i < {count} * 4 / 5 THEN {now - old} + i * {(old - hour) // max(count * 4 // 5, 1)} ELSE {now - hour} + (i - {count} * 4 / 5) * {hour} / ({count} / 5 + 1) END"
to = "CASE WHEN i % 2 = 0 THEN 'agent-000' ELSE printf('agent-%03d', 1 + i % 99) END"
sender = "printf('agent-%03d', i * 7 % 20)"
seq = f"({head} + 1000 + i * 2)"
started = time.time()
db.execute("BEGIN")
for n in range(100):
    db.execute("INSERT INTO agents(id, kind, state, visibility, contact_policy, privacy, via, created_at, updated_at, born) VALUES(?, 'agent', 'active', 'public', 'open', 'public', 'map', ?, ?, 0)", (f"agent-{n:03}", now - old, now - old))
for n in range(1000):
    made = now - old + n
    place = head + 1 + n
    db.execute("INSERT INTO conversations(id, kind, status, created_by, audience, participant_count, turn_count, thread_count, created_at, updated_at, seq) VALUES(?, 'multi-agent', 'active', 'agent-000', 'parties', 20, ?, 0, ?, ?, ?)", (f"talk-{n}", count // 1000, made, made, place))
    for who in range(20):
        db.execute("INSERT INTO participants(conversation, agent, kind, role, permissions, joined_at, joined, conversation_seq) VALUES(?, ?, 'agent', 'assistant', ?, ?, 0, ?)", (f"talk-{n}", f"agent-{who:03}", rights, made, place))
    db.execute("INSERT INTO events(seq, at, kind, actor, fact) VALUES(?, ?, 'rules.changed', 'posthaste', '{\"kind\":\"rules.changed\"}')", (place, now - old))
for low in range(0, count, 50_000):
    span = (low, min(low + 50_000, count) - 1)
    step = lambda sql: db.execute(f"{sql.replace('NUMBERS', numbers)}", span)
    # The second seq of a message is its turn's.
    step(f"INSERT INTO messages(seq, id, sender, recipients, kind, subject, body, is_json, priority, ack_required, conversation, audience, via, at) NUMBERS SELECT {seq} + 1, CAST(printf('m%015d', i) AS BLOB), {sender}, '[{{\"agent\":\"' || ({to}) || '\"}}]', CASE WHEN i % 10 = 0 THEN 'task' ELSE '' END, 'Subject number ' || i, 'Message ' || i || ' says that the ledger of ' || (i % 977) || ' is balanced and that it need not be read again before the next release goes out on ' || (i % 31) || '.', 0, 1 + i % 5, i % 50 = 0, 'talk-' || (i % 1000), 'parties', CASE i % 3 WHEN 0 THEN 'map' WHEN 1 THEN 'cli' ELSE 'web' END, {when} FROM n")
    step(f"INSERT INTO deliveries(agent, message, copy, state, kind, priority) NUMBERS SELECT {to}, {seq} + 1, 'to', CASE WHEN i % 10 = 2 THEN 0 ELSE 2 END, CASE WHEN i % 10 = 0 THEN 'task' ELSE '' END, 1 + i % 5 FROM n")
    step(f"INSERT INTO events(seq, at, kind, actor, message, fact) NUMBERS SELECT {seq} + 1, {when}, 'message.sent', {sender}, {seq} + 1, '{{\"kind\":\"message.sent\"}}' FROM n")
    step(f"INSERT INTO turns(seq, id, conversation, author, content_type, message, at) NUMBERS SELECT {seq} + 2, CAST(printf('t%015d', i) AS BLOB), 'talk-' || (i % 1000), {sender}, 'text', {seq} + 1, {when} FROM n")
    step(f"INSERT INTO events(seq, at, kind, actor, conversation, fact) NUMBERS SELECT {seq} + 2, {when}, 'turn.added', {sender}, 'talk-' || (i % 1000), '{{\"kind\":\"turn.added\",\"conversation\":\"talk-' || (i % 1000) || '\"}}' FROM n")
    step(f"INSERT INTO found(rowid, subject, body) NUMBERS SELECT m.seq, m.subject, m.body FROM n JOIN messages m ON m.seq = {seq} + 1")
db.execute("UPDATE meta SET value = (SELECT max(seq) FROM events) WHERE key = 'indexed'")
db.execute("COMMIT")
db.execute("PRAGMA journal_mode = wal")
events, last = db.execute("SELECT count(*), max(seq) FROM events").fetchone()
assert events == last, f"the history has gaps: {events} events up to {last}"
print(f"{count} messages, {events} events in {time.time() - started:.0f} s")
