/* SPDX-License-Identifier: Apache-2.0
 * The report's script: the table of records (sorting, filtering, pages, details, copying) and the texts that appear
 * where something is pointed at. Texts from results files only ever become text nodes. */
(function () {
  'use strict';

  var element = document.getElementById('data');
  var data = element ? JSON.parse(element.textContent) : { count: 0, columns: [], commands: { values: [], texts: [] }, phases: {} };
  var columns = {};
  data.columns.forEach(function (column) { columns[column.key] = column; });

  /* ---- values as the terminal shows them ---- */

  function significant(value, digits) {
    if (value === 0) return '0';
    var decimals = Math.min(3, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
    if (Math.abs(value) >= 1e9 || Math.abs(value) < 0.0005) return value.toExponential(1);
    return value.toFixed(decimals);
  }
  function time(ns) {
    var units = ['ns', 'µs', 'ms', 's'], unit = 0;
    for (; unit < 3 && ns >= 999.95; unit++) ns /= 1000;
    return significant(ns, 4) + ' ' + units[unit];
  }
  function percent(fraction) {
    var value = 100 * fraction;
    return value.toFixed(value < 9.95 ? 1 : 0) + '%';
  }
  function raw(column, index) {
    var value = column.values[index];
    return value === null || value === undefined ? null : column.kind === 'text' ? column.texts[value] : value;
  }
  function shown(column, index) {
    var value = raw(column, index);
    if (value === null || value === '') return '-';
    switch (column.kind) {
      case 'time': return time(value);
      case 'percent': return percent(value);
      case 'number': return significant(value, 4);
      case 'rough': return significant(value, 2);
      default: return String(value);
    }
  }
  function get(key, index) { return columns[key] ? shown(columns[key], index) : '-'; }
  function command(index) {
    return data.commands.values[index].map(function (piece) { return data.commands.texts[piece]; }).join(' ');
  }
  function status(index) { return columns.status ? raw(columns.status, index) : 'ok'; }

  function make(tag, text, attributes) {
    var node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    for (var name in attributes || {}) node.setAttribute(name, attributes[name]);
    return node;
  }

  /* ---- the table ---- */

  var state = { sort: null, down: false, page: 0, size: 50, order: [], opened: {} };
  var filters = {};
  var words = '';
  var body = document.getElementById('rows'), controls = document.getElementById('controls');
  var pager = document.getElementById('pager'), table = document.getElementById('table');
  var visible = data.columns.filter(function (column) { return column.shown > 0; });

  /* Ranks of a column's texts in the order of the alphabet, numbers by their value. */
  function ranks(column) {
    if (!column.ranks) {
      var collator = new Intl.Collator('en', { numeric: true });
      var order = column.texts.map(function (text, i) { return i; });
      order.sort(function (a, b) { return collator.compare(column.texts[a], column.texts[b]); });
      column.ranks = [];
      order.forEach(function (text, rank) { column.ranks[text] = rank; });
    }
    return column.ranks;
  }
  function sorted(order) {
    var column = columns[state.sort];
    if (!column) return order;
    var rank = column.kind === 'text' ? ranks(column) : null, sign = state.down ? -1 : 1;
    return order.sort(function (a, b) {
      var x = column.values[a], y = column.values[b];
      if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1; /* unknown ones come last */
      if (rank) { x = rank[x]; y = rank[y]; }
      return x === y ? a - b : sign * (x < y ? -1 : 1);
    });
  }

  /* "S 512" looks for that size, other words anywhere in a record's texts. */
  function tokens() {
    var found = words.toLowerCase().match(/(?:^|\b)(?:b|h|kv-heads|s|s_q|s_kv|d|d_v|m|n|k)\s+\d+\b|\S+/g) || [];
    return found.map(function (word) { return /\s/.test(word) ? ' ' + word.replace(/\s+/, ' ') + ' ' : word; });
  }
  var hay = null;
  function haystacks() {
    if (hay) return hay;
    var texts = data.columns.filter(function (column) { return column.kind === 'text'; });
    hay = [];
    for (var i = 0; i < data.count; i++) {
      var parts = texts.map(function (column) { return raw(column, i) || ''; });
      hay.push((' ' + parts.join(' ') + ' ' + command(i) + ' ').toLowerCase().replace(/\s+/g, ' '));
    }
    return hay;
  }
  function matches(index, wanted) {
    for (var key in filters) {
      if (filters[key] !== '' && raw(columns[key], index) !== filters[key]) return false;
    }
    return wanted.every(function (word) { return haystacks()[index].indexOf(word) >= 0; });
  }
  function update() {
    var order = [], wanted = tokens();
    for (var i = 0; i < data.count; i++) if (matches(i, wanted)) order.push(i);
    state.order = sorted(order);
    state.page = 0;
    render();
  }

  function copyButton(text, code) {
    var button = make('button', 'Copy', { type: 'button', 'aria-label': 'Copy the command' });
    button.addEventListener('click', function () {
      function done(ok) {
        button.textContent = ok ? 'Copied' : 'Press Ctrl+C';
        setTimeout(function () { button.textContent = 'Copy'; }, 1500);
      }
      function select() {
        var range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        done(document.execCommand('copy'));
      }
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(function () { done(true); }, select);
      else select();
    });
    return button;
  }
  function commandInto(cell, index) {
    var text = command(index);
    if (!text) { cell.textContent = '-'; return; }
    var code = make('code', text, { title: text });
    cell.append(copyButton(text, code), code);
  }

  function detailsRow(index) {
    var row = make('tr', null, { 'class': 'detail' });
    var cell = make('td', null, { 'class': 'details', colspan: visible.length + 2 });
    var line = make('p');
    commandInto(line, index);
    var facts = make('dl', null, { 'class': 'facts' });
    function add(name, text) {
      var item = make('div');
      item.append(make('dt', name), make('dd', text));
      facts.append(item);
    }
    var narrow = matchMedia('(max-width: 45rem)').matches;
    data.columns.forEach(function (column) {
      if (raw(column, index) === null || column.shown === 2 || (column.shown === 1 && !narrow) || /^ci95/.test(column.key)) return;
      add(column.title, shown(column, index));
    });
    if (columns.ci95_low_ns && raw(columns.ci95_low_ns, index) !== null)
      add('95 % interval of the median', get('ci95_low_ns', index) + ' to ' + get('ci95_high_ns', index));
    var phases = data.phases[index];
    if (phases) {
      var names = Object.keys(phases), whole = names.reduce(function (sum, name) { return sum + phases[name]; }, 0);
      add('Phases', names.map(function (name) {
        return name + ' ' + time(phases[name]) + (whole > 0 ? ' (' + percent(phases[name] / whole) + ')' : '');
      }).join(', '));
    }
    cell.append(line, facts);
    row.append(cell);
    return row;
  }
  function recordRow(index) {
    var row = make('tr', null, { 'class': status(index), id: 'record-' + index });
    var opener = make('td'), open = !!state.opened[index];
    var button = make('button', open ? '▾' : '▸', { type: 'button', 'class': 'open', 'aria-expanded': String(open), 'aria-label': 'Details of ' + get('kernel', index) + ', ' + get('problem', index) });
    button.addEventListener('click', function () {
      state.opened[index] = !state.opened[index];
      button.setAttribute('aria-expanded', String(state.opened[index]));
      button.textContent = state.opened[index] ? '▾' : '▸';
      if (state.opened[index]) row.after(detailsRow(index));
      else row.nextSibling.remove();
    });
    opener.append(button);
    row.append(opener);
    visible.forEach(function (column) {
      row.append(make('td', column.key === 'problem' ? shown(column, index).replace(/(\S) (?=\S)/g, '$1\u00a0') : shown(column, index), { 'class': (column.kind === 'text' ? '' : 'figure') + (column.shown === 1 ? ' roomy' : '') + (column.key === 'problem' ? ' long' : column.key === 'label' ? '' : ' short') }));
    });
    var cell = make('td', null, { 'class': 'command' });
    commandInto(cell, index);
    row.append(cell);
    return row;
  }
  function render() {
    var from = state.page * state.size, to = Math.min(state.order.length, from + state.size), fragment = document.createDocumentFragment();
    for (var i = from; i < to; i++) {
      fragment.append(recordRow(state.order[i]));
      if (state.opened[state.order[i]]) fragment.append(detailsRow(state.order[i]));
    }
    body.replaceChildren(fragment);
    document.getElementById('shown').textContent = state.order.length === data.count ? data.count + ' in all' : state.order.length + ' of ' + data.count;
    var pages = Math.max(1, Math.ceil(state.order.length / state.size));
    pager.children[0].disabled = state.page === 0;
    pager.children[1].textContent = 'Page ' + (state.page + 1) + ' of ' + pages;
    pager.children[2].disabled = state.page + 1 >= pages;
    pager.hidden = state.order.length <= 50;
  }

  function sortBy(key) {
    state.down = state.sort === key ? !state.down : false;
    state.sort = key;
    table.querySelectorAll('th[data-key]').forEach(function (head) {
      head.setAttribute('aria-sort', head.dataset.key === key ? (state.down ? 'descending' : 'ascending') : 'none');
    });
    update();
  }
  function field(name, input) {
    var box = make('div'), label = make('label', name, { 'for': input.id });
    box.append(label, input);
    controls.append(box);
  }
  function buildControls() {
    var search = make('input', null, { type: 'search', id: 'filter', placeholder: 'avx2 S 512 causal', autocomplete: 'off' }), timer;
    search.addEventListener('input', function () {
      clearTimeout(timer);
      timer = setTimeout(function () { words = search.value; update(); }, 120);
    });
    field('Filter by words', search);
    ['label', 'rule', 'dtype', 'kernel', 'schedule', 'placement', 'status'].forEach(function (key) {
      if (!columns[key] || (columns[key].texts.length < 2 && key !== 'kernel' && key !== 'status')) return;
      var select = make('select', null, { id: 'filter-' + key });
      select.append(make('option', 'all', { value: '' }));
      columns[key].texts.forEach(function (text) { select.append(make('option', text, { value: text })); });
      select.addEventListener('change', function () { filters[key] = select.value; update(); });
      filters[key] = '';
      field(columns[key].title, select);
    });
    var reset = make('button', 'Show all', { type: 'button', id: 'reset' });
    reset.addEventListener('click', function () { clearFilters(); update(); });
    controls.append(reset);
    controls.hidden = false;
  }
  function clearFilters() {
    words = document.getElementById('filter').value = '';
    for (var key in filters) filters[key] = document.getElementById('filter-' + key).value = '';
  }
  function turn(step) {
    state.page += step;
    render();
    table.scrollIntoView({ block: 'start' });
  }
  function buildPager() {
    var back = make('button', 'Back', { type: 'button' }), next = make('button', 'Next', { type: 'button' });
    var size = make('select', null, { 'aria-label': 'Rows a page' });
    back.addEventListener('click', function () { turn(-1); });
    next.addEventListener('click', function () { turn(1); });
    [50, 200, 1000].forEach(function (rows) { size.append(make('option', rows + ' rows', { value: rows })); });
    size.addEventListener('change', function () { state.size = Number(size.value); state.page = 0; render(); });
    pager.append(back, make('span', '', { 'aria-live': 'polite' }), next, size);
  }
  function buildHead() {
    table.querySelectorAll('th[data-key]').forEach(function (head) {
      var button = make('button', head.textContent, { type: 'button' });
      button.addEventListener('click', function () { sortBy(head.dataset.key); });
      head.replaceChildren(button);
      head.setAttribute('aria-sort', 'none');
    });
    document.getElementById('shown').setAttribute('aria-live', 'polite');
  }
  function showRecord(index) {
    clearFilters();
    state.opened[index] = true;
    update();
    state.page = Math.floor(state.order.indexOf(index) / state.size);
    render();
    var row = document.getElementById('record-' + index);
    row.scrollIntoView({ block: 'center' });
    row.querySelector('button').focus({ preventScroll: true });
  }

  if (table) {
    buildControls();
    buildPager();
    buildHead();
    update();
    document.querySelectorAll('a[data-filter]').forEach(function (link) {
      link.addEventListener('click', function () {
        clearFilters();
        filters.status = document.getElementById('filter-status').value = link.dataset.filter;
        update();
      });
    });
    var before = null;
    addEventListener('beforeprint', function () { before = [state.page, state.size]; state.page = 0; state.size = 500; render(); });
    addEventListener('afterprint', function () { if (before) { state.page = before[0]; state.size = before[1]; render(); } });
  }

  /* ---- texts where something is pointed at ---- */

  var tip = document.getElementById('tip'), owner = null;

  function recordText(index) {
    var who = get('kernel', index) + ' ' + get('schedule', index) + ', ' + get('threads', index) + ' threads, ' + get('placement', index);
    var lines = [columns.label ? get('label', index) : '', columns.rule ? get('rule', index) : '', get('problem', index), who];
    if (status(index) === 'ok' || status(index) === 'noisy') {
      lines.push(get('median_ns', index) + ', ' + get('gflops', index) + ' GFLOP/s, ' + get('gb_per_s', index) + ' GB/s');
      lines.push(get('roof_fraction', index) + ' of the roof (' + get('roof_bound', index) + '); held back by: ' + get('cause', index));
      if (status(index) === 'noisy') lines.push('~ noisy');
    } else {
      lines.push(status(index) + ': ' + get('reason', index));
    }
    return lines.filter(Boolean).join('\n');
  }
  /* The mark under the pointer and what it says. A title becomes data-tip, so that the browser does not show it too. */
  function markOf(node) {
    for (; node && node.nodeType === 1 && node.tagName.toLowerCase() !== 'svg'; node = node.parentNode) {
      if (node.dataset && (node.dataset.r !== undefined || node.dataset.tip !== undefined)) return node;
      var title = node instanceof SVGElement ? node.querySelector(':scope > title') : null;
      if (title) {
        node.dataset.tip = title.textContent;
        title.remove();
        return node;
      }
    }
    return null;
  }
  function textOf(mark) {
    if (mark.dataset.tip !== undefined) return mark.dataset.tip;
    return columns.status && Number(mark.dataset.r) < data.count ? recordText(Number(mark.dataset.r)) : '';
  }
  function hide() {
    tip.hidden = true;
    owner = null;
  }
  function show(mark, x, y) {
    tip.textContent = textOf(mark);
    tip.hidden = tip.textContent === '';
    owner = mark;
    var box = tip.getBoundingClientRect(), width = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(x + 14, width - box.width - 4)) + 'px';
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + 'px';
  }
  document.addEventListener('pointermove', function (event) {
    var mark = markOf(event.target);
    if (mark) show(mark, event.clientX, event.clientY);
    else if (owner && event.pointerType !== 'touch') hide();
  });
  function showBelow(mark) {
    var box = mark.getBoundingClientRect();
    show(mark, box.left, box.bottom - 18);
  }
  document.addEventListener('focusin', function (event) {
    var mark = markOf(event.target);
    if (mark) showBelow(mark);
    else hide();
  });
  document.addEventListener('keydown', function (event) {
    if (event.key === 'Escape') hide();
    if (event.key === 'Enter' && event.target.dataset && event.target.dataset.r !== undefined && table) showRecord(Number(event.target.dataset.r));
  });
  /* A finger has no hover: the first touch tells what a mark is, the second one goes to its row. */
  var touched = null;
  document.addEventListener('click', function (event) {
    var mark = markOf(event.target);
    if (!mark) { hide(); touched = null; return; }
    if (event.pointerType === 'touch' && touched !== mark) {
      show(mark, event.clientX, event.clientY);
      touched = mark;
    } else if (mark.dataset.r !== undefined && table) {
      hide();
      showRecord(Number(mark.dataset.r));
    }
  });
  /* Taking the focus may scroll by itself: then the text goes along. */
  document.addEventListener('scroll', function () {
    if (owner && owner === document.activeElement) showBelow(owner);
    else hide();
  }, { passive: true, capture: true });

  /* A map is one stop of the Tab key; arrows go from cell to cell. */
  var steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  document.querySelectorAll('.heat').forEach(function (map) {
    var first = map.querySelector('td[data-r]');
    if (first) first.tabIndex = 0;
    map.addEventListener('keydown', function (event) {
      var step = steps[event.key], cell = event.target, row = cell.parentNode, at = cell.cellIndex;
      if (!step || cell.dataset.r === undefined) return;
      do {
        at += step[0];
        row = step[1] > 0 ? row.nextElementSibling : step[1] < 0 ? row.previousElementSibling : row;
      } while (row && row.cells[at] && row.cells[at].dataset.r === undefined);
      event.preventDefault();
      if (!row || !row.cells[at]) return;
      cell.tabIndex = -1;
      row.cells[at].tabIndex = 0;
      row.cells[at].focus();
    });
  });
})();
