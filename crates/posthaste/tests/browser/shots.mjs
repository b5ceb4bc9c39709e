// Pictures of every page, for the eye and for the README: node shots.mjs URL TOKEN-FILE DIRECTORY
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Browser } from './driver.mjs';

const [base, key, out] = process.argv.slice(2);
const token = (await readFile(key, 'utf8')).trim();
await mkdir(out, { recursive: true });

async function shoot(looks, dark, width, height, tag) {
  const browser = await Browser.start({ width, height, dark });
  try {
    await browser.go(`${base}/ui/sign-in`);
    await writeFile(join(out, `sign-in${tag}.png`), await browser.shot());
    await browser.type('#token', token);
    await browser.click('.sign button');
    await browser.find('#rail');
    for (const [name, path] of looks) {
      let address = path;
      if (typeof path === 'function') address = await path(browser);
      await browser.go(base + address);
      await new Promise((done) => setTimeout(done, 400));
      await writeFile(join(out, `${name}${tag}.png`), await browser.shot());
    }
    const { console: said } = await browser.logs();
    for (const line of said) console.log(line);
  } finally {
    await browser.close();
  }
}

const first = (list, link) => async (browser) => {
  await browser.go(base + list);
  const href = await browser.run('const a = document.querySelector(arguments[0]); return a && a.getAttribute("href")', link);
  return href.replace(/^\/r\/[^/]+/, '');
};
const looks = [
  ['overview', '/ui'],
  ['live', '/ui/live'],
  ['inbox', '/ui/inbox?agent=reviewer'],
  ['inbox-mine', '/ui/inbox'],
  ['message', first('/ui/inbox?agent=reviewer', '.row a.open')],
  ['conversations', '/ui/conversations'],
  ['conversation', first('/ui/conversations?status=active', '.row:nth-child(2) a.open')],
  ['tasks', '/ui/tasks'],
  ['task', first('/ui/tasks?status=completed', '.row a.open')],
  ['reservations', '/ui/reservations'],
  ['agents', '/ui/agents'],
  ['agents-tree', '/ui/agents?look=tree'],
  ['agents-graph', '/ui/agents?look=graph'],
  ['agent', '/ui/agents/builder-north'],
  ['search', '/ui/search?q=retry'],
  ['write', '/ui/write?to=reviewer'],
  ['settings', '/ui/settings'],
  ['history', '/ui/reservations?ended=1'],
];
const want = process.argv[5] || 'all';
if (want === 'all' || want === 'light') await shoot(looks, false, 1280, 860, '');
if (want === 'all' || want === 'dark') await shoot(looks.slice(0, 10), true, 1280, 860, '-dark');
if (want === 'all' || want === 'phone') await shoot(looks, false, 390, 800, '-phone');
