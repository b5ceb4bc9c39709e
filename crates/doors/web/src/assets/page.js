// What the page adds when script is on: live rows, the drawer without a reload, keys, completion. No framework.
'use strict';
(() => {
  const $ = (query, from = document) => from.querySelector(query);
  const $$ = (query, from = document) => [...from.querySelectorAll(query)];
  const root = document.body.dataset.root;
  const word = document.body.dataset.word;
  if (root === undefined) return; // the sign-in page
  const toast = (text) => {
    const box = $('#toast');
    box.textContent = text;
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => { box.textContent = ''; }, 4000);
  };
  const get = async (address) => {
    const answer = await fetch(address, { headers: { 'x-requested-by': 'page' }, credentials: 'same-origin' });
    if (answer.status === 401) { location.reload(); throw new Error('signed out'); }
    return answer.text();
  };
  const parse = (text) => new DOMParser().parseFromString(text, 'text/html');

  // Times stay true while the page is open.
  const span = (ms) => {
    const s = Math.floor(Math.max(0, ms) / 1000);
    return s < 1 ? 'now' : s < 60 ? s + ' s' : s < 3600 ? Math.floor(s / 60) + ' min' : s < 86400 ? Math.floor(s / 3600) + ' h' : Math.floor(s / 86400) + ' d';
  };
  const tick = () => {
    const now = Date.now();
    for (const time of $$('time[data-at]')) time.textContent = span(now - time.dataset.at);
    for (const time of $$('time[data-until]')) time.textContent = span(time.dataset.until - now);
  };
  setInterval(() => { if (!document.hidden) tick(); }, 5000);

  // The drawer: the same address the server would draw it for.
  let opener = null;
  const show = async (address, push) => {
    const page = parse(await get(address));
    const fresh = $('#drawer', page);
    if (!fresh) return;
    $('#drawer').replaceWith(document.adoptNode(fresh));
    if (push) history.pushState({ drawer: true }, '', address);
    tick();
    const quiet = $('#drawer form[data-quiet]');
    if (quiet) markRead(quiet);
    const close = $('#drawer .close');
    if (close) close.focus({ preventScroll: true });
  };
  const shut = () => {
    const close = $('#drawer [data-close]');
    if (!close) return false;
    history.pushState({}, '', close.href);
    $('#drawer').replaceChildren();
    if (opener && document.contains(opener)) opener.focus();
    return true;
  };
  const markRead = async (form) => {
    const id = new FormData(form).get('message');
    const answer = await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)), redirect: 'manual' });
    if (answer.type !== 'opaqueredirect' && !answer.ok) return;
    form.remove();
    for (const row of $$('li[data-id="' + CSS.escape(id) + '"]')) row.classList.remove('unread');
  };
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest('a');
    if (event.target.closest('[data-keys]')) { $('#keys').showModal(); return; }
    if (!link) return;
    if (link.hasAttribute('data-close')) { event.preventDefault(); shut(); return; }
    const message = link.dataset.message;
    if (!link.hasAttribute('data-drawer') && !message) return;
    event.preventDefault();
    opener = link;
    const address = new URL(message ? location.href : (link.href.baseVal === undefined ? link.href : link.href.baseVal), location.href);
    if (message) address.searchParams.set('message', message);
    show(address.href, true).catch(() => { location.href = address.href; });
  });
  addEventListener('popstate', () => { if (!location.hash) show(location.href, false).catch(() => location.reload()); });

  // Parts with data-refresh are fetched again, unless they are in use.
  const busy = (part) => document.hidden || part.contains(document.activeElement) && /INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName) || $('details.me[open], details.realms[open]') || $('.row.at', part);
  for (const part of $$('[data-refresh]')) {
    const places = $$('[data-refresh]');
    const place = places.indexOf(part);
    let current = part;
    setInterval(async () => {
      if (busy(current)) return;
      try {
        const fresh = $$('[data-refresh]', parse(await get(location.href)))[place];
        if (fresh && !busy(current)) { current.replaceWith(fresh); current = fresh; tick(); }
      } catch { /* the next round tries again */ }
    }, part.dataset.refresh * 1000);
  }
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const fresh = $('#pill', parse(await get(root + '/pulse')));
      if (fresh) $('#pill').replaceWith(fresh);
    } catch {
      const pill = $('#pill');
      pill.className = 'pill danger';
      pill.textContent = 'no answer from the server';
    }
  }, 5000);

  // Live: newest at the bottom; it sticks to the end until the user scrolls; a pause keeps receiving.
  const list = $('#live');
  if (list && list.dataset.stream && window.EventSource) {
    const most = 500;
    const state = $('#livestate'), pause = $('#pause'), pill = $('#fresh');
    let paused = false, held = [], away = 0;
    const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
    const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
    const add = (text) => {
      const row = document.adoptNode($('li', parse('<ol>' + text + '</ol>')));
      const quiet = $('#quiet');
      if (quiet) quiet.remove();
      row.classList.add('new');
      list.append(row);
      while (list.children.length > most) list.firstElementChild.remove();
    };
    const tell = () => {
      const count = held.length + away;
      pill.hidden = !count;
      pill.textContent = count + ' new';
    };
    const take = (text) => {
      if (paused) {
        held.push(text);
        if (held.length > most) held.shift();
      } else {
        const end = atEnd();
        add(text);
        if (end) toEnd(); else away += 1;
      }
      tell();
    };
    const flow = new EventSource(list.dataset.stream);
    flow.onopen = () => { state.textContent = paused ? 'paused' : 'following'; state.className = 'dim on'; };
    flow.onerror = () => { state.textContent = 'connection lost; trying again'; state.className = 'dim'; };
    flow.onmessage = (event) => take(event.data);
    flow.addEventListener('gap', (event) => take(event.data));
    const toggle = () => {
      paused = !paused;
      pause.textContent = paused ? 'Follow' : 'Pause';
      state.textContent = paused ? 'paused; still receiving' : 'following';
      if (!paused) { held.splice(0).forEach(add); away = 0; toEnd(); }
      tell();
    };
    pause.hidden = false;
    pause.addEventListener('click', toggle);
    pill.addEventListener('click', () => { if (paused) toggle(); away = 0; toEnd(); tell(); });
    addEventListener('scroll', () => { if (!paused && atEnd() && away) { away = 0; tell(); } }, { passive: true });
    document.addEventListener('posthaste:pause', toggle);
    addEventListener('pagehide', () => flow.close());
    toEnd();
  }

  // Addresses complete while typing; several are separated by commas.
  const offer = document.createElement('datalist');
  offer.id = 'offer';
  document.body.append(offer);
  let asked = 0;
  document.addEventListener('focusin', (event) => {
    if (event.target.dataset && event.target.dataset.complete) event.target.setAttribute('list', 'offer');
  });
  document.addEventListener('input', (event) => {
    const field = event.target;
    if (field.dataset && field.dataset.complete) {
      clearTimeout(asked);
      asked = setTimeout(async () => {
        const many = field.dataset.complete === 'addresses';
        const cut = many ? field.value.lastIndexOf(',') + 1 : 0;
        const before = field.value.slice(0, cut) + (cut ? ' ' : '');
        const names = JSON.parse(await get(root + '/complete?among=' + field.dataset.complete + '&q=' + encodeURIComponent(field.value.slice(cut).trim())));
        offer.replaceChildren(...names.map((name) => { const option = document.createElement('option'); option.value = before + name; return option; }));
      }, 120);
    }
    if (field.dataset && field.dataset.preview) {
      clearTimeout(field.timer);
      field.timer = setTimeout(async () => {
        const answer = await fetch(root + '/preview', { method: 'POST', body: new URLSearchParams({ word, text: field.value }) });
        if (answer.ok) $('#' + field.dataset.preview).replaceChildren(...parse(await answer.text()).body.childNodes);
      }, 250);
    }
  });

  // Keys.
  const rows = () => $$('#main .row').filter((row) => $('a', row));
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const now = all.findIndex((row) => row.classList.contains('at'));
    const next = all[Math.max(0, Math.min(all.length - 1, now < 0 ? (step > 0 ? 0 : all.length - 1) : now + step))];
    if (now >= 0) all[now].classList.remove('at');
    next.classList.add('at');
    ($('a.open', next) || $('a[data-message]', next) || $('a', next)).focus({ preventScroll: true });
    next.scrollIntoView({ block: 'nearest' });
    if ($('#drawer article') && $('a[data-drawer]', next)) $('a[data-drawer]', next).click();
  };
  let going = 0;
  document.addEventListener('keydown', (event) => {
    const field = /INPUT|TEXTAREA|SELECT/.test(event.target.tagName);
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.target.closest('form[method=post]')) {
      event.preventDefault();
      event.target.closest('form').requestSubmit();
      return;
    }
    if (event.key === 'Escape') {
      if (field) event.target.blur(); else if (!$('#keys').open) shut();
      return;
    }
    if (field || event.ctrlKey || event.metaKey || event.altKey || $('#keys').open) return;
    if (going && Date.now() - going < 1200) {
      going = 0;
      const link = $('#rail a[data-go="' + CSS.escape(event.key) + '"]');
      if (link) { event.preventDefault(); location.href = link.href; }
      return;
    }
    const act = {
      '/': () => $('.find input').focus(),
      j: () => move(1),
      k: () => move(-1),
      r: () => { const link = $('#drawer [data-reply]') || $('#main [data-reply]'); if (link) location.href = link.href; },
      a: () => { const form = $('#drawer form[data-ack]') || $('#main form[data-ack]'); if (form) form.requestSubmit(); else toast('Open a message that asks for an acknowledgement first'); },
      w: () => { location.href = root + '/write'; },
      g: () => { going = Date.now(); },
      p: () => document.dispatchEvent(new Event('posthaste:pause')),
      '?': () => $('#keys').showModal(),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  const quiet = $('#drawer form[data-quiet], #main form[data-quiet]');
  if (quiet) markRead(quiet);
  // What was done is not part of the address.
  const here = new URL(location.href);
  if (here.searchParams.has('done')) { here.searchParams.delete('done'); history.replaceState(history.state, '', here); }
})();
