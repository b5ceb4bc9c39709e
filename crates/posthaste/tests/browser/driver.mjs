// A browser on a wire: chromedriver's WebDriver protocol by hand, with nothing to install but Chromium itself.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Browser {
  static async start({ width = 1280, height = 860, dark = false } = {}) {
    const browser = new Browser();
    browser.profile = await mkdtemp(join(tmpdir(), 'posthaste-browser-'));
    browser.driver = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const port = await new Promise((found, failed) => {
      let text = '';
      browser.driver.stdout.on('data', (chunk) => {
        text += chunk;
        const match = text.match(/started successfully on port (\d+)/);
        if (match) found(match[1]);
      });
      browser.driver.on('exit', () => failed(new Error('chromedriver ended: ' + text)));
    });
    browser.base = `http://127.0.0.1:${port}/session`;
    const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--disable-background-networking', '--no-first-run', `--user-data-dir=${browser.profile}`, `--window-size=${width},${height}`];
    if (dark) args.push('--blink-settings=preferredColorScheme=0');
    const alwaysMatch = { browserName: 'chrome', 'goog:chromeOptions': { args }, 'goog:loggingPrefs': { browser: 'ALL', performance: 'ALL' } };
    const made = await browser.ask('POST', '', { capabilities: { alwaysMatch } });
    browser.base += `/${made.sessionId}`;
    await browser.size(width, height);
    return browser;
  }

  async ask(method, path, body) {
    const answer = await fetch(this.base + path, { method, body: body === undefined ? undefined : JSON.stringify(body) });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
    return value;
  }

  /// The page's own width, whatever frame the window has.
  async size(width, height) {
    await this.ask('POST', '/goog/cdp/execute', { cmd: 'Emulation.setDeviceMetricsOverride', params: { width, height, deviceScaleFactor: 1, mobile: width < 700 } });
  }

  cdp(cmd, params = {}) { return this.ask('POST', '/goog/cdp/execute', { cmd, params }); }
  go(address) { return this.ask('POST', '/url', { url: address }); }
  at() { return this.ask('GET', '/url'); }
  title() { return this.ask('GET', '/title'); }
  run(script, ...args) { return this.ask('POST', '/execute/sync', { script, args }); }
  cookies() { return this.ask('GET', '/cookie'); }

  async find(selector, wait = 5000) {
    const end = Date.now() + wait;
    for (;;) {
      try {
        return (await this.ask('POST', '/element', { using: 'css selector', value: selector }))[ELEMENT];
      } catch (error) {
        if (Date.now() > end) throw error;
        await pause(50);
      }
    }
  }

  async click(selector) { await this.ask('POST', `/element/${await this.find(selector)}/click`, {}); }
  async type(selector, text) { await this.ask('POST', `/element/${await this.find(selector)}/value`, { text }); }
  async text(selector) { return this.ask('GET', `/element/${await this.find(selector)}/text`); }
  count(selector) { return this.run('return document.querySelectorAll(arguments[0]).length', selector); }

  /// Keys for whatever has the focus.
  async press(...keys) {
    const actions = keys.flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]);
    await this.ask('POST', '/actions', { actions: [{ type: 'key', id: 'keys', actions }] });
  }

  /// Presses keys until the script says yes, as people do: a browser drops what is pressed before it has painted the page.
  async pressUntil(keys, what, script, ...args) {
    const end = Date.now() + 8000;
    while (Date.now() < end) {
      await this.press(...keys);
      for (const again = Date.now() + 1500; Date.now() < again; await pause(50)) {
        const got = await this.run(script, ...args);
        if (got) return got;
      }
    }
    throw new Error(`not in time: ${what}`);
  }

  /// Waits until the script says yes.
  async until(what, script, ...args) {
    const end = Date.now() + 8000;
    for (;;) {
      const got = await this.run(script, ...args);
      if (got) return got;
      if (Date.now() > end) throw new Error(`not in time: ${what}`);
      await pause(50);
    }
  }

  async shot(full = false) {
    if (!full) return Buffer.from(await this.ask('GET', '/screenshot'), 'base64');
    const { data } = await this.cdp('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true });
    return Buffer.from(data, 'base64');
  }

  /// What was logged to the console since the last look, and every address that was asked for.
  async logs() {
    const console = await this.ask('POST', '/se/log', { type: 'browser' });
    const performance = await this.ask('POST', '/se/log', { type: 'performance' });
    const requests = performance
      .map((entry) => JSON.parse(entry.message).message)
      .filter((message) => message.method === 'Network.requestWillBeSent')
      .map((message) => message.params.request.url);
    return { console: console.map((entry) => `${entry.level} ${entry.message}`), requests };
  }

  async close() {
    try { await this.ask('DELETE', ''); } catch { /* it may be gone */ }
    this.driver.kill();
    await rm(this.profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}
