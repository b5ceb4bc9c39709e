// JSON-RPC and events over plain HTTP.
import { check, must, same, sleep, RPC_ERROR, WAIT_MS, url } from '../harness.mjs';

const ORIGIN = url.replace(/^ws/, 'http').replace(/(https?:\/\/[^/]+).*/, '$1');

check('http.rpc', async (t) => {
  const a = await t.agent();
  const r = await fetch(`${ORIGIN}/map/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'map/agents/list', params: {} }),
  });
  same(r.status, 200, 'status');
  const j = await r.json();
  same(j.id, 1, 'id');
  must(
    j.result?.agents?.some((x) => x.id === a.id),
    'agent listed',
  );
});

check('http.batch', async () => {
  const r = await fetch(`${ORIGIN}/map/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'map/scopes/list', params: {} }))),
  });
  same(r.status, 200, 'status');
  same((await r.json()).map((x) => x.id).sort(), [1, 2], 'ids');
});

check('http.sse-events', async (t) => {
  const ac = new AbortController();
  const r = await fetch(`${ORIGIN}/map/events`, { headers: { accept: 'text/event-stream' }, signal: ac.signal });
  same(r.status, 200, 'status');
  must(/text\/event-stream/.test(r.headers.get('content-type') ?? ''), 'content-type');
  const a = await t.agent();
  const rd = r.body.getReader();
  let buf = '';
  const end = Date.now() + WAIT_MS;
  try {
    while (!buf.includes(a.id) && Date.now() < end) {
      const x = await Promise.race([rd.read(), sleep(WAIT_MS).then(() => ({ done: true }))]);
      if (x.done) break;
      buf += new TextDecoder().decode(x.value);
    }
    must(/^data: .*\{/m.test(buf) && buf.includes(a.id), 'no event line for the new agent');
  } finally {
    ac.abort();
  }
});

check('http.rpc-parse-error', async () => {
  const r = await fetch(`${ORIGIN}/map/rpc`, { method: 'POST', body: '{' });
  const j = await r.json();
  same(j.error?.code, RPC_ERROR.PARSE, 'code');
});
