// The page in a real browser, against a server of its own: node page.mjs PATH-TO-POSTHASTE
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browser } from './driver.mjs';

const [bin, only = ''] = process.argv.slice(2);
const data = await mkdtemp(join(tmpdir(), 'posthaste-page-'));
const server = spawn(bin, ['serve', '--data', data, '--listen', '127.0.0.1:0', '--log', 'json', '--log-level', 'error'], { stdio: ['ignore', 'pipe', 'inherit'] });
const base = await new Promise((found, failed) => {
  let text = '';
  server.stdout.on('data', (chunk) => {
    text += chunk;
    const match = text.match(/^ready (\S+)/m);
    if (match) found(match[1]);
  });
  server.on('exit', () => failed(new Error('the server ended: ' + text)));
});
const token = (await readFile(join(data, 'admin.token'), 'utf8')).trim();

async function call(method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: `x-posthaste/${method}`, params });
  const answer = await (await fetch(`${base}/x-posthaste/rpc`, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body })).json();
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}
for (const id of ['ann', 'bob', 'admin']) await call('register', { id });
const send = (from, to, subject, body, more = {}) => call('send', { from, to: [to], subject, body, ...more });

const hostile = [
  '<script>window.pwned = 1</script>',
  '<img src=x onerror="window.pwned = 2">',
  '<svg onload="window.pwned = 3">',
  '[click](javascript:window.pwned=4)',
  '<a href="javascript:window.pwned=5">click</a>',
  '![pixel](https://elsewhere.invalid/pixel.png)',
  '<style>body { display: none }</style>',
  '<iframe srcdoc="<script>parent.pwned = 6</script>"></iframe>',
  '<form action="https://elsewhere.invalid"><input name=a></form>',
].join('\n\n');

let browser;
async function fresh(options) {
  if (browser) await browser.close();
  browser = await Browser.start(options);
}
async function signIn(address = '/ui') {
  await browser.go(base + address);
  await browser.type('#token', token);
  await browser.click('.sign button');
  await browser.find('#rail');
}
/// Nothing on the console, no requests to other sites.
async function clean() {
  const { console: said, requests } = await browser.logs();
  const bad = said.filter((line) => !line.startsWith('DEBUG'));
  assert.deepEqual(bad, [], 'the console is quiet');
  const foreign = requests.filter((address) => !address.startsWith(base) && !address.startsWith('data:') && !address.startsWith('chrome') && address !== 'about:blank');
  assert.deepEqual(foreign, [], 'no requests to other sites');
}

const tests = {
  async 'sign in: a wrong token is refused, the right one opens what was asked for'() {
    await browser.go(`${base}/ui/inbox?agent=ann`);
    assert.match(await browser.at(), /sign-in\?next=/);
    await browser.type('#token', 'ph_wrong');
    await browser.click('.sign button');
    assert.match(await browser.text('.sorry'), /unknown, expired or revoked/);
    await browser.logs(); // Chromium logs the 401 of a page; that one is meant.
    await browser.type('#token', token);
    await browser.click('.sign button');
    await browser.find('#rail');
    assert.match(await browser.at(), /\/ui\/inbox\?agent=ann$/);
    const [cookie] = (await browser.cookies()).filter((cookie) => cookie.name.startsWith('posthaste.'));
    assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict' && !cookie.value.includes(token));
    assert.equal(await browser.run('return document.cookie'), '', 'script sees no cookie');
  },

  async 'a message arrives live, and pausing keeps it'() {
    await browser.go(`${base}/ui/live?kind=message.sent`);
    await browser.until('following', 'return document.querySelector("#livestate").textContent === "following"');
    await send('ann', 'bob', 'Live one', 'It came by itself');
    await browser.until('the message', 'return document.querySelector("#live").textContent.includes("Live one")');
    await browser.press('p');
    await send('ann', 'bob', 'Held one', 'While paused');
    await browser.until('the count', 'return document.querySelector("#fresh").textContent === "1 new"');
    assert.equal(await browser.run('return document.querySelector("#live").textContent.includes("Held one")'), false);
    await browser.click('#fresh');
    await browser.until('the held message', 'return document.querySelector("#live").textContent.includes("Held one")');
    assert.equal(await browser.count('#live .row'), 2, 'no row twice');
    await browser.click('#live .row:last-child a[data-message]');
    await browser.until('the drawer', 'return document.querySelector("#drawer h2")?.textContent === "Held one"');
    assert.match(await browser.at(), /message=/);
    await browser.press('\uE00C');
    assert.equal(await browser.count('#drawer article'), 0, 'Escape closes it');
  },

  async 'search finds with marks and opens by keyboard'() {
    await send('ann', 'bob', 'The quick fox', 'A [fox] & a <b>hen</b>');
    await browser.go(`${base}/ui`);
    await browser.pressUntil('/', 'the focus in the search box', 'return document.activeElement.name === "q"');
    await browser.press(...'fox', '\uE007');
    await browser.until('matches', 'return document.querySelectorAll("mark").length > 0');
    assert.match(await browser.at(), /\/ui\/search\?q=fox/);
    assert.equal(await browser.text('mark'), 'fox');
    await browser.run('document.activeElement.blur()');
    await browser.press('j', '\uE007');
    await browser.until('the drawer', 'return document.querySelector("#drawer h2")?.textContent === "The quick fox"');
  },

  async 'a conversation shows its lanes and its messages'() {
    for (const [from, to, text] of [['ann', 'bob', 'one'], ['bob', 'ann', 'two'], ['ann', 'bob', 'three']]) {
      await send(from, to, `Say ${text}`, `**${text}**`, { conversation: 'talk-1' });
    }
    await browser.go(`${base}/ui/conversations`);
    await browser.click('.row a.open');
    await browser.find('svg.lanes');
    assert.equal(await browser.count('svg.lanes .lane'), 2);
    assert.equal(await browser.count('svg.lanes polygon'), 3);
    assert.equal(await browser.count('.turn'), 3);
    await browser.run('document.querySelector("svg.lanes a").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))');
    await browser.until('the drawer', 'return document.querySelector("#drawer h2")?.textContent === "Say one"');
  },

  async 'a message is written, completed, previewed and sent with Ctrl+Enter'() {
    await browser.go(`${base}/ui/write`);
    await browser.type('input[name=to]', 'an');
    await browser.until('names to choose from', 'return [...document.querySelectorAll("#offer option")].some((o) => o.value === "ann")');
    await browser.type('input[name=to]', 'n, bob');
    await browser.type('input[name=subject]', 'From a person');
    await browser.type('textarea', 'Please **stop**');
    await browser.until('the preview', 'return document.querySelector("#preview strong")?.textContent === "stop"');
    await browser.ask('POST', '/actions', { actions: [{ type: 'key', id: 'k', actions: [{ type: 'keyDown', value: '\uE009' }, { type: 'keyDown', value: '\uE007' }, { type: 'keyUp', value: '\uE007' }, { type: 'keyUp', value: '\uE009' }] }] });
    await browser.until('the receipts', 'return document.querySelectorAll(".receipts li").length === 2');
    assert.match(await browser.text('.done'), /Sent/);
    const { messages } = await call('inbox', { agent: 'bob', limit: 1 });
    assert.equal(messages[0].from, 'admin');
    assert.equal(messages[0].door, 'web');
  },

  async 'a message that asks is read by opening and acknowledged with a key'() {
    await send('ann', 'admin', 'Please confirm', 'Yes or no?', { ack_required: true, priority: 1 });
    await browser.go(`${base}/ui/inbox`);
    assert.equal(await browser.count('.row.unread'), 1);
    await browser.press('j', '\uE007');
    await browser.until('the drawer', 'return document.querySelector("#drawer h2")?.textContent === "Please confirm"');
    await browser.until('read', 'return document.querySelectorAll(".row.unread").length === 0');
    await browser.press('a');
    await browser.until('acknowledged', 'return document.querySelector(".done")?.textContent === "Acknowledged."');
    const { messages } = await call('inbox', { limit: 1 });
    assert.equal(messages[0].delivery.state, 'acked');
  },

  async 'keys lead to every page'() {
    for (const [key, path] of [['l', 'live'], ['i', 'inbox'], ['c', 'conversations'], ['t', 'tasks'], ['r', 'reservations'], ['a', 'agents'], ['s', 'search'], ['e', 'settings'], ['o', '']]) {
      await browser.pressUntil(['g', key], `g ${key}`, `return location.pathname === '/ui' + (arguments[0] ? '/' + arguments[0] : '')`, path);
      await browser.run('document.activeElement.blur()');
    }
    await browser.pressUntil('?', 'the list of keys', 'return document.querySelector("#keys").open');
    await browser.press('\uE00C');
  },

  async 'hostile messages do nothing, wherever they are shown'() {
    const { id } = await send('ann', 'admin', hostile, hostile, { conversation: 'hostile' });
    await send('ann', 'admin', 'again', { text: hostile, html: hostile }, { conversation: 'hostile' });
    await send('ann', 'bob', 'third', hostile, { conversation: 'hostile' });
    for (const path of ['/ui', '/ui/inbox', `/ui/inbox?message=${id}`, `/ui/messages/${id}`, '/ui/conversations/hostile', '/ui/live', '/ui/search?q=pwned', `/ui/write?reply=${id}`]) {
      await browser.go(base + path);
      await browser.until('the page stands', 'return document.readyState === "complete" && getComputedStyle(document.body).display !== "none"');
      for (const link of await browser.run('return [...document.querySelectorAll("main a, aside a")].map((a) => a.getAttribute("href"))')) {
        assert.ok(!/^\s*(javascript|data|vbscript):/i.test(link), link);
      }
      assert.equal(await browser.count('main script, main iframe, main img, main style, aside script, aside img'), 0, path);
      assert.equal(await browser.run('return window.pwned'), null, path);
    }
    await browser.go(`${base}/ui/write?to=ann`);
    await browser.run('const box = document.querySelector("textarea"); box.value = arguments[0]; box.dispatchEvent(new Event("input", { bubbles: true }))', hostile);
    await browser.until('the preview', 'return document.querySelector("#preview").textContent.includes("pwned")');
    assert.equal(await browser.run('return window.pwned'), null);
    await browser.go(`${base}/ui/live`);
    await browser.until('following', 'return document.querySelector("#livestate").textContent === "following"');
    await send('bob', 'ann', hostile, hostile);
    await browser.until('the row', 'return document.querySelector("#live .row:last-child").textContent.includes("bob") || document.querySelector("#live").textContent.includes("bob")');
    assert.equal(await browser.run('return window.pwned'), null);
  },

  async 'dark when the system is, and when it is chosen'() {
    const paper = 'return getComputedStyle(document.documentElement).backgroundColor';
    await browser.go(`${base}/ui`);
    const light = await browser.run(paper);
    await browser.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'dark' }] });
    const dark = await browser.run(paper);
    assert.notEqual(light, dark);
    await browser.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'light' }] });
    assert.equal(await browser.run(paper), light);
    await browser.click('.me summary');
    await browser.click('.me button[value=dark]');
    await browser.until('dark by choice', `return getComputedStyle(document.documentElement).backgroundColor === arguments[0]`, dark);
    await browser.go(`${base}/ui/agents`);
    assert.equal(await browser.run(paper), dark, 'the choice is remembered');
    await browser.click('.me summary');
    await browser.click('.me button[value=system]');
    await browser.until('as the system', `return getComputedStyle(document.documentElement).backgroundColor === arguments[0]`, light);
    for (const theme of ['light', 'dark']) {
      await browser.cdp('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
      await browser.go(`${base}/ui/inbox`);
      const poor = await browser.run(CONTRAST);
      assert.deepEqual(poor, [], `contrast of at least 4.5 in ${theme}`);
    }
    await browser.cdp('Emulation.setEmulatedMedia', { features: [] });
  },

  async 'fits a phone'() {
    await browser.size(390, 800);
    for (const path of ['/ui', '/ui/live', '/ui/inbox', '/ui/conversations', '/ui/conversations/talk-1', '/ui/tasks', '/ui/reservations', '/ui/agents', '/ui/agents/ann', '/ui/search?q=fox', '/ui/write', '/ui/settings']) {
      await browser.go(base + path);
      const width = await browser.run('return document.documentElement.scrollWidth');
      assert.ok(width <= 390, `${path} is ${width} wide`);
    }
    const rail = await browser.run('const box = document.querySelector("#rail").getBoundingClientRect(); return [box.top, box.width]');
    assert.deepEqual(rail, [748, 390], 'the rail is a bar at the bottom');
    await browser.size(1280, 860);
  },

  async 'works without script'() {
    await browser.cdp('Emulation.setScriptExecutionDisabled', { value: true });
    try {
      await browser.go(`${base}/ui/inbox?agent=bob`);
      await browser.click('.row a.open');
      await browser.find('#drawer article');
      await browser.click('#drawer .close');
      await browser.go(`${base}/ui/write?to=bob`);
      await browser.type('textarea', 'No script was needed');
      await browser.click('form.composer button.primary');
      await browser.find('.receipts li');
      assert.match(await browser.text('article .body'), /No script was needed/);
    } finally {
      await browser.cdp('Emulation.setScriptExecutionDisabled', { value: false });
    }
  },

  async 'a lost connection is taken up again without a gap'() {
    await browser.go(`${base}/ui/live?kind=message.sent`);
    await browser.until('following', 'return document.querySelector("#livestate").textContent === "following"');
    await browser.cdp('Network.enable');
    await browser.cdp('Network.emulateNetworkConditions', { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    await send('ann', 'bob', 'While away', 'offline');
    await browser.cdp('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    await send('ann', 'bob', 'Back again', 'online');
    await browser.until('both messages', 'const text = document.querySelector("#live").textContent; return text.includes("While away") && text.includes("Back again")');
    const seqs = await browser.run('return [...document.querySelectorAll("#live .row")].map((row) => Number(row.dataset.seq))');
    assert.deepEqual(seqs, [...new Set(seqs)].sort((a, b) => a - b), 'in order, none twice');
    await browser.logs(); // being offline is logged by the browser itself
  },
};

// Every piece of text against what is behind it, as WCAG reckons.
const CONTRAST = `
  const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const lum = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > .99) return c; } return [255, 255, 255, 1]; };
  const poor = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || e.closest('svg')) continue;
    const a = lum(parse(getComputedStyle(e).color)), b = lum(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.add(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2));
  }
  return [...poor];`;

let failed = 0;
try {
  await fresh();
    const chosen = Object.entries(tests).filter(([name]) => name.startsWith('sign in') || name.includes(only));
  for (const [name, test] of chosen) {
    try {
      await test();
      await clean();
      console.log(`ok    ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name}\n      ${error.stack}\n      at ${await browser.at()}: ${(await browser.run('return document.body.innerText')).slice(0, 600)}`);
      await fresh();
      await signIn();
    }
  }
} finally {
  if (browser) await browser.close();
  server.kill();
  await new Promise((done) => server.on('exit', done));
  await rm(data, { recursive: true, force: true });
}
console.log(`${Object.keys(tests).length} tests, ${failed} failed`);
process.exit(failed ? 1 : 0);
