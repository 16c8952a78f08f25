#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a report as its readers do: in a headless Chromium, from disk.

report_page.py CHECK PAGE.html [SHOTS]    exit 0: as it should be; 1: what is wrong is printed; 77: no browser here

  look     opens without a complaint and without asking for anything; sections, widths, colours; screenshots into SHOTS
  table    sorting, filtering, pages, details, the command
  hover    marks of plots and cells of the map say what they are, to mouse, keyboard and finger
  hostile  nothing that a results file says runs
  static   what is there without JavaScript
  large    how long a large page takes to open
"""
import os
import sys

import browser

SECTIONS = ["headline", "roofline", "shapes", "scaling", "rivals", "correctness", "records", "method"]
OPEN_SECONDS = 3.0

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def expect_equal(value, wanted, what):
    expect(value == wanted, f"{what}: {value!r}, not {wanted!r}")


# ---- look ------------------------------------------------------------------------------------------------------------

# Smallest contrast (WCAG 2) of text against what is behind it, and where.
CONTRAST = """(function () {
  function parse(color) {
    var m = color.match(/[\\d.]+/g).map(Number);
    return { rgb: m.slice(0, 3), alpha: m.length > 3 ? m[3] : 1 };
  }
  function luminance(rgb) {
    var c = rgb.map(function (v) { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  }
  function behind(node) {
    for (; node; node = node.parentElement) {
      var color = parse(getComputedStyle(node).backgroundColor);
      if (color.alpha > 0) return color.rgb;
    }
    return [255, 255, 255];
  }
  function contrast(a, b) {
    var x = luminance(a), y = luminance(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }
  var least = [99, 'nothing'], seen = 0;
  document.querySelectorAll('body *').forEach(function (node) {
    var own = Array.prototype.some.call(node.childNodes, function (child) { return child.nodeType === 3 && child.data.trim(); });
    if (!own || node.closest('svg, script, style, [hidden], button:disabled') || !node.getClientRects().length) return;
    seen++;
    var value = contrast(parse(getComputedStyle(node).color).rgb, behind(node));
    if (value < least[0]) least = [value, node.tagName + '.' + node.className + ': ' + node.textContent.slice(0, 40)];
  });
  var paper = behind(document.body), series = 99, probe = document.createElement('span');
  document.body.append(probe);
  for (var i = 0; i < 8; i++) {
    probe.style.color = 'var(--s' + i + ')';
    series = Math.min(series, contrast(parse(getComputedStyle(probe).color).rgb, paper));
  }
  probe.remove();
  return { text: least, series: series, seen: seen, dark: luminance(paper) < 0.5 };
})()"""


def look(page, chrome, shots):
    has_several = "sources" in chrome_sections(page, chrome)
    wanted = SECTIONS[:5] + (["sources"] if has_several else []) + SECTIONS[5:]
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        chrome.size(width, 844, mobile=width < 600)
        chrome.media(scheme)
        chrome.open(page)
        where = f"{width} pixels, {scheme}"
        expect_equal(chrome.complaints(), [], f"complaints at {where}")
        expect_equal(sections(chrome), wanted, f"sections at {where}")
        expect(chrome.run("Array.from(document.querySelectorAll('section')).every(s => s.querySelector('h2').innerText &&"
                          " s.getBoundingClientRect().height > 60)"), f"an empty section at {where}")
        expect_equal(chrome.run("Array.from(document.querySelectorAll('nav a')).filter(a =>"
                                " !document.querySelector(a.getAttribute('href'))).length"), 0, "dead links in the contents")
        # Not innerWidth: a phone zooms out until a page that is too wide fits.
        sideways = chrome.run("document.documentElement.scrollWidth") - width
        expect(sideways <= 0, f"{sideways} pixels too wide at {where}")
        colors = chrome.run(CONTRAST)
        expect_equal(colors["dark"], scheme == "dark", f"dark at {where}")
        expect(colors["seen"] > 50, f"only {colors['seen']} texts looked at")
        expect(colors["text"][0] >= 4.5, f"contrast {colors['text'][0]:.2f} at {where}: {colors['text'][1]}")
        expect(colors["series"] >= 3, f"a series has contrast {colors['series']:.2f} at {where}")
        if shots:
            os.makedirs(shots, exist_ok=True)
            chrome.screenshot(os.path.join(shots, f"{width}-{scheme}.png"), whole=True)
    expect_equal(chrome.run("Array.from(document.querySelectorAll('svg[role=img]')).filter(s =>"
                            " !s.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)"
                            ".textContent)).length"), 0, "drawings without a title")
    expect_equal(chrome.run("Array.from(document.querySelectorAll('table')).filter(t => !t.caption ||"
                            " !t.caption.textContent.trim()).length"), 0, "tables without a caption")
    expect_equal(chrome.run("(function () { var ids = Array.from(document.querySelectorAll('[id]')).map(e => e.id);"
                            " return ids.filter((id, i) => ids.indexOf(id) !== i); })()"), [], "ids used twice")
    chrome.media("light", "print")
    expect_equal(chrome.run("getComputedStyle(document.querySelector('nav')).display"), "none", "the contents in print")


def sections(chrome):
    return chrome.run("Array.from(document.querySelectorAll('section')).map(s => s.id)")


def chrome_sections(page, chrome):
    chrome.open(page)
    return sections(chrome)


# ---- table -----------------------------------------------------------------------------------------------------------

ROWS = "Array.from(document.querySelectorAll('#rows > tr:not(.detail)'))"


def column(chrome, key):
    """Texts of one column's cells as they are shown."""
    return chrome.run(f"(function () {{ var heads = Array.from(document.querySelectorAll('#table thead th'));"
                      f" var at = heads.findIndex(h => h.dataset.key === '{key}');"
                      f" return {ROWS}.map(r => r.cells[at].textContent.replace(/\\u00a0/g, ' ')); }})()")


def nanoseconds(text):
    units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    if text == "-":
        return float("inf")
    value, unit = text.split(" ")
    return float(value) * units[unit]


def shown_count(chrome):
    return chrome.run("document.getElementById('shown').textContent")


def sort_state(chrome, key):
    return chrome.run(f"document.querySelector('#table th[data-key={key}]').getAttribute('aria-sort')")


def check_sorting(chrome):
    head = "#table th[data-key=median_ns] button"
    expect_equal(sort_state(chrome, "median_ns"), "none", "aria-sort at first")
    chrome.click(head)
    times = [nanoseconds(text) for text in column(chrome, "median_ns")]
    expect(len(times) > 3 and times == sorted(times), f"not ascending by time: {times[:9]}")
    expect_equal(sort_state(chrome, "median_ns"), "ascending", "aria-sort after a click")
    chrome.click(head)
    times = [nanoseconds(text) for text in column(chrome, "median_ns")]
    known = [time for time in times if time != float("inf")]
    expect(known == sorted(known, reverse=True) and times[:len(known)] == known, f"not descending by time: {times[:9]}")
    expect_equal(sort_state(chrome, "median_ns"), "descending", "aria-sort after two clicks")
    chrome.run("document.querySelector('#table th[data-key=kernel] button').focus()")
    chrome.key("Enter", 13, "\r")
    kernels = column(chrome, "kernel")
    expect(len(kernels) > 3 and kernels == sorted(kernels), f"not sorted by kernel with the keyboard: {kernels[:9]}")
    expect_equal(sort_state(chrome, "kernel"), "ascending", "aria-sort after a key")
    expect_equal(sort_state(chrome, "median_ns"), "none", "aria-sort of the column before")


def choose(chrome, key, value):
    chrome.run(f"(function () {{ var s = document.getElementById('filter-{key}'); s.value = '{value}';"
               " s.dispatchEvent(new Event('change', {bubbles: true})); })()")


def check_filtering(chrome):
    whole = shown_count(chrome)
    chrome.click("#filter")
    chrome.write("avx512 s 512")
    chrome.wait_for(f"document.getElementById('shown').textContent !== '{whole}'")
    found = list(zip(column(chrome, "kernel"), column(chrome, "problem")))
    expect(found and all(kernel == "avx512" and " S 512 " in f" {problem} ".replace("  ", " ")
                         for kernel, problem in found), f"found by words: {found[:5]}")
    chrome.click("#reset")
    expect_equal(shown_count(chrome), whole, "rows after Show all")
    choose(chrome, "kernel", "avx2")
    expect_equal(set(column(chrome, "kernel")), {"avx2"}, "kernels after choosing one")
    choose(chrome, "status", "ok")
    expect_equal(set(column(chrome, "status")), {"ok"}, "status after choosing one")
    chrome.click("#reset")
    chrome.click("#filter")
    chrome.write("no such word")
    chrome.wait_for("document.getElementById('shown').textContent.startsWith('0 of')")
    expect_equal(chrome.run(f"{ROWS}.length"), 0, "rows for a word that is nowhere")
    chrome.click("#reset")
    if chrome.run("!!document.querySelector('a[data-filter=noisy]')"):
        chrome.click("a[data-filter=noisy]")
        expect_equal(set(column(chrome, "status")), {"noisy"}, "rows behind the warning about noise")
        chrome.click("#reset")


def check_details(chrome):
    chrome.click("#rows .open")
    expect_equal(chrome.run("document.querySelector('#rows .open').getAttribute('aria-expanded')"), "true", "aria-expanded")
    text = chrome.run("document.querySelector('#rows .details').textContent")
    expect("attnbench run " in text and "Rows checked" in text, f"details: {text[:300]}")
    beyond = chrome.run("Math.max(...Array.from(document.querySelectorAll('#rows .details > *')).map(e =>"
                        " e.getBoundingClientRect().right)) - document.querySelector('#table').parentNode"
                        ".getBoundingClientRect().right")
    expect(beyond <= 0, f"details reach {beyond} pixels beyond the table's box")
    command = chrome.run("document.querySelector('#rows .details code').textContent")
    expect("--kernel" in command and "\n" not in command, f"command: {command}")
    chrome.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    chrome.click("#rows .details button")
    chrome.wait_for("document.querySelector('#rows .details button').textContent === 'Copied'")
    chrome.click("#rows .open")
    expect_equal(chrome.run("document.querySelectorAll('#rows .details').length"), 0, "details after closing")


def check_pages(chrome):
    pages = chrome.run("document.getElementById('pager').hidden ? 1 : Number(document.querySelector('#pager span')"
                       ".textContent.split(' ').pop())")
    if pages == 1:
        return
    first = chrome.run(f"{ROWS}[0].id")
    chrome.click("#pager button:nth-of-type(2)")
    expect(chrome.run(f"{ROWS}[0].id") != first, "the next page begins as the first one does")
    chrome.click("#pager button:nth-of-type(1)")
    expect_equal(chrome.run(f"{ROWS}[0].id"), first, "first row after going back")


def table(page, chrome, _):
    chrome.size(1280, 900)
    chrome.open(page)
    check_sorting(chrome)
    check_filtering(chrome)
    check_details(chrome)
    check_pages(chrome)
    expect_equal(chrome.complaints(), [], "complaints")


# ---- hover -----------------------------------------------------------------------------------------------------------

def tip(chrome):
    return chrome.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")


def hover(page, chrome, _):
    chrome.size(1280, 900)
    chrome.open(page)
    cell = ".heat td[data-r]"
    chrome.hover(cell)
    expect("of the roof" in tip(chrome), f"a cell of the map says: {tip(chrome)!r}")
    chrome.hover("h1")
    expect_equal(tip(chrome), "", "text beside any mark")
    plots = chrome.run("document.querySelectorAll('.plot svg[role=img]').length")
    expect(plots > 3, f"the page has {plots} plots")
    for index in range(plots):
        spot = mark_spot(chrome, index)
        expect(spot, f"plot {index} has no mark in sight that says what it is")
        if spot:
            chrome.call("Input.dispatchMouseEvent", type="mouseMoved", x=spot[0], y=spot[1])
            expect(len(tip(chrome)) > 10, f"a mark of plot {index} says {tip(chrome)!r}")
    chrome.run(f"document.querySelector('{cell}').focus()")
    expect("of the roof" in tip(chrome), "a cell with the keyboard's focus says nothing")
    chrome.key("ArrowRight", 39)
    expect_equal(chrome.run("document.activeElement.cellIndex + ' ' + document.querySelectorAll('.heat [tabindex=\"0\"]')"
                            ".length"), "2 1", "column and stops of the Tab key after an arrow")
    chrome.key("Escape", 27)
    expect_equal(tip(chrome), "", "text after Escape")
    chrome.key("Enter", 13, "\r")
    expect(chrome.run("document.activeElement.closest('#rows') !== null"), "Enter on a cell does not go to its record")
    chrome.size(390, 844, mobile=True)
    chrome.open(page)
    chrome.tap(cell)
    expect("of the roof" in tip(chrome), "a finger on a cell shows nothing")
    expect_equal(chrome.run("document.querySelectorAll('.detail').length"), 0, "details opened by the first touch")
    chrome.tap(cell)
    expect_equal(chrome.run("document.querySelectorAll('.detail').length"), 1, "details opened by the second touch")
    expect_equal(chrome.complaints(), [], "complaints")


def mark_spot(chrome, index):
    """Where a mark of a plot is painted, over which no other one lies: the middle of its box may be empty."""
    return chrome.run(f"(async function () {{ var svg = document.querySelectorAll('.plot svg[role=img]')[{index}];"
                      " svg.scrollIntoView({block: 'center', behavior: 'instant'});"
                      " await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));"
                      " var marks = Array.from(svg.querySelectorAll('[data-r]'));"
                      " svg.querySelectorAll('title').forEach(t => { if (t.parentNode !== svg) marks.push(t.parentNode); });"
                      " for (var m of marks) { var b = m.getBoundingClientRect();"
                      " for (var y = 1; y < 8; y++) for (var x = 1; x < 8; x++) {"
                      " var p = [b.left + b.width * x / 8, b.top + b.height * y / 8];"
                      " var e = document.elementFromPoint(p[0], p[1]);"
                      " if (e && m.contains(e)) return p; } } return null; })()")


# ---- the others ------------------------------------------------------------------------------------------------------

def hostile(page, chrome, _):
    chrome.size(1280, 900)
    chrome.open(page)
    for button in range(chrome.run("document.querySelectorAll('#rows .open').length")):
        chrome.run(f"document.querySelectorAll('#rows .open')[{button}].click()")
    chrome.hover(".heat td[data-r]")
    expect("<script>" in tip(chrome), f"text of a cell: {tip(chrome)!r}")
    expect_equal(chrome.run("typeof window.hostile"), "undefined", "a script of the results file ran")
    expect_equal(chrome.run("document.scripts.length"), 2, "script elements")
    for where in ("h1", "#headline", ".heat", "#correctness", "#rows", "#method"):
        expect("<script>window.hostile = 1</script>" in chrome.run(f"document.querySelector('{where}').textContent")
               .replace("\u00a0", " "), f"{where} does not show the text")
    expect_equal(chrome.complaints(), [], "complaints")


def static(page, chrome, _):
    chrome.scripting(False)
    chrome.open(page)
    chrome.screenshot(os.devnull)  # waits for the layout
    document = chrome.call("DOM.getDocument", depth=-1)["root"]["nodeId"]

    def count(selector):
        return len(chrome.call("DOM.querySelectorAll", nodeId=document, selector=selector)["nodeIds"])

    expect(count("#rows tr") > 3, "no rows without JavaScript")
    expect(count("#rows td.command code") > 3, "no commands without JavaScript")
    expect(count(".heat td.h") > 3, "no map without JavaScript")
    expect(count(".sentences li") >= 3, "no sentences without JavaScript")
    expect(count("noscript p") == 1, "no word about the rows that need JavaScript")
    chrome.scripting(True)


def large(page, chrome, _):
    chrome.size(1280, 900)
    seconds = min(chrome.open(page) for _ in range(3))
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"# {os.path.getsize(page) / 1e6:.2f} MB open in {seconds:.2f} s (load {load:.1f} on {cores} CPUs)")
    expect(chrome.run(f"{ROWS}.length") == 50, "not 50 rows on the first page")
    expect_equal(chrome.complaints(), [], "complaints")
    expect(seconds < OPEN_SECONDS or load > cores, f"opening took {seconds:.2f} s")
    check_sorting(chrome)
    check_pages(chrome)


CHECKS = {"look": look, "table": table, "hover": hover, "hostile": hostile, "static": static, "large": large}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    program = browser.find()
    if not program:
        print("no Chromium here")
        return 77
    try:
        chrome = browser.Browser(program)
    except browser.Broken as broken:
        print(f"{program} does not start here: {broken}")
        return 77
    with chrome:
        CHECKS[sys.argv[1]](sys.argv[2], chrome, sys.argv[3] if len(sys.argv) > 3 else None)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
