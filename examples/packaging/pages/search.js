// SPDX-License-Identifier: MIT OR 0BSD
// The search over searchIndex, whose entries are [name, page#anchor, title of the page, text]. A
// page is found if its name or text has all words; names that begin with the words come first.
'use strict';
const input = document.getElementById('search');
const list = document.getElementById('found');
const MOST = 20;
let chosen = 0;

function rank([name, , , text], words) {
  const low = name.toLowerCase(), all = low + ' ' + text.toLowerCase();
  if (!words.every(w => all.includes(w))) return -1;
  const first = words.join('_');
  if (low === first) return 0;
  if (low.startsWith(first) || low.startsWith('volt_' + first)) return 1;
  if (words.every(w => low.includes(w))) return 2;
  return 3;
}

function search(text) {
  const words = text.toLowerCase().split(/[\s_]+/).filter(w => w);
  if (!words.length) return [];
  return searchIndex.map(entry => [rank(entry, words), entry]).filter(([r]) => r >= 0)
    .sort(([r, a], [s, b]) => r - s || a[0].length - b[0].length || (a[0] < b[0] ? -1 : 1))
    .slice(0, MOST).map(([, entry]) => entry);
}

function choose(n) {
  const rows = [...list.querySelectorAll('li[role=option]')];
  if (!rows.length) return;
  chosen = (n + rows.length) % rows.length;
  rows.forEach((row, i) => row.setAttribute('aria-selected', String(i === chosen)));
  input.setAttribute('aria-activedescendant', rows[chosen].id);
  rows[chosen].scrollIntoView({ block: 'nearest' });
}

function show() {
  const found = search(input.value);
  list.replaceChildren(...found.map(([name, target, place, text], i) => {
    const row = document.createElement('li'), link = document.createElement('a');
    const note = document.createElement('small');
    row.id = 'found-' + i;
    row.setAttribute('role', 'option');
    link.href = up + target;
    link.textContent = name;
    note.textContent = text ? place + ': ' + text : place;
    link.append(note);
    row.append(link);
    return row;
  }));
  if (!found.length) {
    const row = document.createElement('li');
    row.className = 'none';
    row.textContent = 'Nothing found';
    list.append(row);
  }
  list.hidden = !input.value.trim();
  input.setAttribute('aria-expanded', String(!list.hidden));
  input.removeAttribute('aria-activedescendant');
  choose(0);
}

input.addEventListener('input', show);
input.addEventListener('keydown', e => {
  if (e.key === 'ArrowDown') choose(chosen + 1);
  else if (e.key === 'ArrowUp') choose(chosen - 1);
  else if (e.key === 'Escape') { input.value = ''; show(); }
  else if (e.key === 'Enter') list.querySelector('li[aria-selected=true] a')?.click();
  else return;
  e.preventDefault();
});
list.addEventListener('click', () => { list.hidden = true; });
document.addEventListener('keydown', e => {
  if (e.key === '/' && document.activeElement !== input) {
    input.focus();
    e.preventDefault();
  }
});
