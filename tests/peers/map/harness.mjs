// What the MAP checks share: connections, assertions, collectors, and the loop that runs the checks.
//
// The npm SDK (ClientConnection, AgentConnection, GatewayConnection) speaks wherever it can. RawSocket is for what the SDK cannot
// express: malformed frames, batches, the methods of the specification draft, and the envelopes of notifications.
import { WebSocket } from 'ws';
globalThis.WebSocket ??= WebSocket;
export const SDK = await import('@multi-agent-protocol/sdk');
const { ClientConnection, AgentConnection, GatewayConnection, websocketStream, waitForOpen } = SDK;

// The SDK logs to the console on many ordinary paths.
if (!process.env.MAP_VERBOSE) {
  console.warn = () => {};
  console.error = () => {};
}

export const url = process.argv[2];
const option = (name) =>
  process.argv
    .slice(3)
    .find((argument) => argument.startsWith(`--${name}=`))
    ?.slice(name.length + 3);
const only = option('only') ? new RegExp(option('only')) : null;

/** How long a check waits for something that must come. */
export const WAIT_MS = Number(option('wait') ?? 1500);
/** How long a check waits for something that must not come. */
export const QUIET_MS = Number(option('quiet') ?? 250);
const CHECK_LIMIT_MS = Number(option('limit') ?? 20000);
const CALL_TIMEOUT_MS = Math.max(2500, WAIT_MS + 1000);
const OPEN_TIMEOUT_MS = 5000;
const LEAVE_TIMEOUT_MS = 120;

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const runTag = Date.now().toString(36) + Math.random().toString(36).slice(2, 6);
let serial = 0;
/** A name that no other check and no other run uses. */
export const unique = (prefix = 'x') => `${prefix}-${runTag}-${++serial}`;

// --- error codes

/** The numbers of the mail specification. The SDK 0.1.15 has constants of its own, some with other numbers. */
export const MAIL_ERROR = {
  CONVERSATION_NOT_FOUND: [10000],
  CONVERSATION_CLOSED: [10001],
  NOT_A_PARTICIPANT: [10002],
  PERMISSION_DENIED: [10003],
  ALREADY_JOINED: [10004],
  PARTICIPANT_NOT_FOUND: [10005],
  TURN_NOT_FOUND: [10006],
  THREAD_NOT_FOUND: [10007],
  INVALID_CONTENT_TYPE: [10008],
  NESTING_LIMIT: [10009],
  NOT_ENABLED: [10010],
};
export const RPC_ERROR = { PARSE: -32700, INVALID_REQUEST: -32600, NO_METHOD: -32601, INVALID_PARAMS: -32602 };

/** The SDK's names of event types. */
export const EVENT = SDK.EVENT_TYPES;

// --- assertions

function shorten(value) {
  try {
    const text = JSON.stringify(value);
    if (text === undefined) return String(value);
    return text.length > 160 ? `${text.slice(0, 157)}...` : text;
  } catch {
    return String(value);
  }
}

export function must(condition, why) {
  if (!condition) throw new Error(typeof why === 'function' ? why() : why);
}
export function same(got, want, what = 'value') {
  must(JSON.stringify(got) === JSON.stringify(want), () => `${what}: got ${shorten(got)}, want ${shorten(want)}`);
}
export function isString(value, what) {
  must(typeof value === 'string' && value.length > 0, () => `${what} must be a non-empty string, got ${shorten(value)}`);
}
export function isNumber(value, what) {
  must(typeof value === 'number' && Number.isFinite(value), () => `${what} must be a number, got ${shorten(value)}`);
}
export function isArray(value, what) {
  must(Array.isArray(value), () => `${what} must be an array, got ${shorten(value)}`);
}
export function oneOf(value, list, what) {
  must(list.includes(value), () => `${what}: got ${shorten(value)}, want one of ${shorten(list)}`);
}

/** The promise must be rejected with a JSON-RPC error whose code is one of `codes`; any code if there are none. */
export async function failsWith(promise, codes, what = 'call') {
  let result;
  try {
    result = await promise;
  } catch (error) {
    if (error?.name === 'MAPTimeoutError' || /timed? ?out/i.test(error?.message ?? '')) throw new Error(`${what}: no answer`);
    if (codes === undefined) {
      must(typeof error.code === 'number', () => `${what}: failed without a code: ${error.message}`);
      return error;
    }
    const list = Array.isArray(codes) ? codes : [codes];
    must(list.includes(error.code), () => `${what}: error code ${error.code} (${error.message}), want ${list.join(' or ')}`);
    return error;
  }
  throw new Error(`${what}: succeeded with ${shorten(result)}, want error ${[].concat(codes ?? 'any').join(' or ')}`);
}

// --- collectors

/** A growing list of messages, events or frames that a check can wait on. */
export class Collector {
  items = [];
  #listeners = [];

  push(item) {
    this.items.push(item);
    for (const listener of [...this.#listeners]) listener(item);
  }

  /** The first item that matches, once there is one. */
  async wait(matches = () => true, ms = WAIT_MS, what = 'item') {
    const found = this.items.find(matches);
    if (found !== undefined) return found;
    return await new Promise((resolve, reject) => {
      const listener = (item) => {
        let ok = false;
        try {
          ok = matches(item);
        } catch {
          // An item of another shape.
        }
        if (!ok) return;
        stop();
        resolve(item);
      };
      const timer = setTimeout(() => {
        stop();
        const latest = this.items.slice(-3).map((item) => item?.type ?? item?.payload ?? item);
        reject(new Error(`no ${what} within ${ms} ms (saw ${this.items.length}${latest.length ? `: ${shorten(latest)}` : ''})`));
      }, ms);
      const stop = () => {
        clearTimeout(timer);
        this.#listeners = this.#listeners.filter((other) => other !== listener);
      };
      this.#listeners.push(listener);
    });
  }

  /** All items that match, once there are `n`. */
  async count(n, matches = () => true, ms = WAIT_MS, what = 'items') {
    const end = Date.now() + ms;
    while (this.items.filter(matches).length < n && Date.now() < end) await sleep(10);
    const got = this.items.filter(matches);
    must(got.length >= n, () => `${what}: got ${got.length} of ${n} within ${ms} ms`);
    return got;
  }

  /** No item matches, now and after a while. */
  async none(matches = () => true, ms = QUIET_MS, what = 'item') {
    await sleep(ms);
    const found = this.items.find(matches);
    must(found === undefined, () => `unexpected ${what}: ${shorten(found)}`);
  }
}

// --- connections

export class RawSocket {
  frames = new Collector();
  texts = [];
  closed = false;
  #nextId = 1;

  static async open(address = url) {
    const socket = new RawSocket();
    socket.ws = new WebSocket(address);
    socket.ws.on('message', (data, binary) => {
      const text = data.toString();
      socket.texts.push({ text, binary });
      let frame;
      try {
        frame = JSON.parse(text);
      } catch {
        frame = { unparsable: text };
      }
      socket.frames.push(frame);
    });
    socket.ws.on('close', () => {
      socket.closed = true;
    });
    socket.ws.on('error', () => {});
    await new Promise((resolve, reject) => {
      socket.ws.once('open', resolve);
      socket.ws.once('error', reject);
    });
    return socket;
  }

  text(text) {
    this.ws.send(text);
  }
  notify(method, params) {
    this.text(JSON.stringify({ jsonrpc: '2.0', method, ...(params !== undefined && { params }) }));
  }
  async call(method, params, { id = `raw-${this.#nextId++}`, ms = WAIT_MS } = {}) {
    this.text(JSON.stringify({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) }));
    const isAnswer = (frame) => frame && !Array.isArray(frame) && frame.id === id && !frame.method;
    const frame = await this.frames.wait(isAnswer, ms, `answer to ${method}`);
    if (frame.error) throw Object.assign(new Error(frame.error.message), { code: frame.error.code, data: frame.error.data, frame });
    return frame.result;
  }
  async connect(type = 'client', extra = {}) {
    return this.call('map/connect', { protocolVersion: 1, participantType: type, name: unique('raw'), ...extra });
  }
  /** The params of the `map/event` notifications so far. */
  events(subscriptionId) {
    const isEvent = (frame) => frame.method === 'map/event' && (!subscriptionId || frame.params?.subscriptionId === subscriptionId);
    return this.frames.items.filter(isEvent).map((frame) => frame.params);
  }
  terminate() {
    this.ws.terminate();
  }
}

async function openStream(address) {
  const ws = new WebSocket(address);
  ws.on('error', () => {});
  await waitForOpen(ws, OPEN_TIMEOUT_MS);
  return { ws, stream: websocketStream(ws) };
}

/** Subscribes and collects the events. */
async function collectEvents(connection, filter) {
  const subscription = await connection.subscribe(filter);
  const events = new Collector();
  subscription.on('event', (event) => events.push(event));
  events.subscription = subscription;
  return events;
}

/** What a check is given: it opens connections, which are closed when the check has ended. */
class CheckContext {
  #sockets = [];
  #agents = [];

  /** A connected client of the SDK. `pid` is its participant id, `hello` the answer to its connect. */
  async client(options = {}) {
    const { ws, stream } = await openStream(options.url ?? url);
    this.#sockets.push(ws);
    const client = new ClientConnection(stream, {
      name: options.name ?? unique('client'),
      capabilities: options.capabilities,
      defaultTimeout: CALL_TIMEOUT_MS,
    });
    client.ws = ws;
    client.hello = await client.connect(options.connect);
    client.pid = client.hello.participantId;
    client.collect = (filter) => collectEvents(client, filter);
    client.call = (method, params) => client.callExtension(method, params);
    return client;
  }

  /** A connected and registered agent of the SDK. `inbox` collects its messages, `card` is what registration answered. */
  async agent(options = {}) {
    const { ws, stream } = await openStream(options.url ?? url);
    this.#sockets.push(ws);
    const agent = new AgentConnection(stream, {
      name: options.name ?? unique('agent'),
      role: options.role,
      parent: options.parent,
      scopes: options.scopes,
      visibility: options.visibility,
      capabilities: options.capabilities,
      defaultTimeout: CALL_TIMEOUT_MS,
    });
    this.#agents.push(agent);
    agent.ws = ws;
    agent.inbox = new Collector();
    agent.onMessage((message) => {
      agent.inbox.push(message);
    });
    const result = await agent.connect(options.connect);
    agent.hello = result.connection;
    agent.card = result.agent;
    agent.pid = result.connection.participantId;
    agent.id = agent.agentId;
    agent.collect = (filter) => collectEvents(agent, filter);
    agent.call = (method, params) => agent.callExtension(method, params);
    return agent;
  }

  async gateway(options = {}) {
    const { ws, stream } = await openStream(options.url ?? url);
    this.#sockets.push(ws);
    const gateway = new GatewayConnection(stream, { name: unique('gateway'), routing: options.routing, defaultTimeout: CALL_TIMEOUT_MS });
    gateway.ws = ws;
    gateway.hello = await gateway.connect();
    return gateway;
  }

  async socket(address) {
    const socket = await RawSocket.open(address ?? url);
    this.#sockets.push(socket.ws);
    return socket;
  }

  /** Agents leave properly, so that the server does not keep them for later; then every connection is cut. */
  async close() {
    const connected = this.#agents.filter((agent) => agent.ws.readyState === 1 && agent.isConnected);
    if (connected.length) {
      await Promise.race([Promise.allSettled(connected.map((agent) => agent.disconnect())), sleep(LEAVE_TIMEOUT_MS)]);
    }
    for (const ws of this.#sockets) {
      try {
        ws.terminate();
      } catch {
        // Closed already.
      }
    }
    await sleep(5);
  }
}

// --- checks

const checks = [];
export function check(name, fn) {
  checks.push({ name, fn });
}
/** Thrown by a check that cannot be made here. */
export class Skip extends Error {}

export async function runChecks() {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => {});
  for (const { name, fn } of checks) {
    if (only && !only.test(name)) continue;
    const context = new CheckContext();
    let timer;
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`check did not end within ${CHECK_LIMIT_MS} ms`)), CHECK_LIMIT_MS);
    });
    try {
      await Promise.race([fn(context), limit]);
      console.log(`ok ${name}`);
      passed += 1;
    } catch (error) {
      if (error instanceof Skip) {
        console.log(`skip ${name}: ${error.message}`);
        skipped += 1;
      } else {
        console.log(`not ok ${name}: ${(error?.message ?? String(error)).replace(/\s+/g, ' ')}`);
        failed += 1;
      }
    } finally {
      clearTimeout(timer);
      await context.close();
    }
  }
  console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
  process.exit(failed ? 1 : 0);
}

// --- small helpers of the checks

/** Matches a message with this payload. */
export const hasPayload = (payload) => (message) => JSON.stringify(message?.payload) === JSON.stringify(payload);

export async function newConversation(connection, params = {}) {
  return (await connection.createConversation({ type: 'multi-agent', subject: unique('conversation'), ...params })).conversation;
}
export async function addTurn(connection, conversationId, text = unique('turn'), params = {}) {
  return (await connection.recordTurn({ conversationId, contentType: 'text', content: { text }, ...params })).turn;
}
export const texts = (turns) => turns.map((turn) => turn.content?.text);
