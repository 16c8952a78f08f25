#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# attnbench report: what the page holds, what is refused, and how the page behaves in a browser.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

data() { # KIND [COUNT]: a made-up results file in $work/KIND.jsonl
  python3 "$BATS_TEST_DIRNAME/report_data.py" "$@" >"$work/$1.jsonl"
}

report() { # ARGUMENTS...
  attempt "$ATTNBENCH" report "$@"
}

page_holds() { # PAGE STRING...: every fixed string stands in the page
  local text page=$1
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$page" || tell "$page should hold '$text'"
  done
}

page_lacks() { # PAGE STRING...: none of the fixed strings stands in it
  local text page=$1
  shift
  for text in "$@"; do
    if grep -qF -- "$text" "$page"; then tell "$page should not hold '$text'"; fi
  done
}

in_browser() { # CHECK PAGE: see report_page.py
  local code=0
  PYTHONDONTWRITEBYTECODE=1 timeout -k 5 300 python3 "$BATS_TEST_DIRNAME/report_page.py" "$@" >"$work/seen" 2>&1 || code=$?
  [ "$code" != 77 ] || skip "$(head -n 1 "$work/seen")"
  grep '^#' "$work/seen" >&3 || true
  [ "$code" = 0 ] || {
    cat "$work/seen"
    return 1
  }
}

needs_gnuplot() {
  command -v gnuplot >/dev/null || skip "no gnuplot here"
}

# A PATH with what the program and this file need but gnuplot.
path_without_gnuplot() {
  mkdir "$work/bin"
  ln -s "$(command -v timeout)" "$work/bin/timeout"
  echo "$work/bin"
}

@test "the made-up files are results files" {
  local kind
  for kind in many none skipped wrong failed layers mixed; do
    data "$kind" 20
    valid_journal "$kind.jsonl"
  done
}

@test "help, and refusals that name what is wrong" {
  report --help
  expect_status 0
  expect_out "-o OUT" "gnuplot" "peak --json"
  data none
  refused report -- "which results files"
  refused report --no-such none.jsonl -- "--no-such"
  refused report missing.jsonl -o page.html -- "missing.jsonl" "No such file"
  refused report -o "" none.jsonl -- "-o"
  [ ! -e page.html ]
}

@test "a file that breaks the schema is refused by file, line and field" {
  data mixed
  : >empty.jsonl
  refused report empty.jsonl -o page.html -- "empty.jsonl" "empty"
  sed '3s/^{/{{/' mixed.jsonl >broken.jsonl
  refused report mixed.jsonl broken.jsonl -o page.html -- "broken.jsonl:3:" "not JSON"
  sed '4s/"median_ns": [0-9.e+]*/"median_ns": "fast"/' mixed.jsonl >text.jsonl
  refused report text.jsonl -o page.html -- "text.jsonl:4:" "median_ns" "fast"
  sed '2s/"kernel": "[a-z0-9]*"/"kernel": 7/' mixed.jsonl >number.jsonl
  refused report number.jsonl -o page.html -- "number.jsonl:2:" "kernel"
  sed '2s/"noise": {[^}]*}/"noise": [1]/' mixed.jsonl >list.jsonl
  refused report list.jsonl -o page.html -- "list.jsonl:2:" "noise"
  sed '1s/"topology": {/"topology": 1, "was": {/' mixed.jsonl >context.jsonl
  refused report context.jsonl -o page.html -- "context.jsonl:1:" "topology"
  tail -n +2 mixed.jsonl >headless.jsonl
  refused report headless.jsonl -o page.html -- "headless.jsonl:1:"
  [ ! -e page.html ]
}

@test "the page goes where it is told, or beside the file" {
  data mixed
  mkdir there
  cp mixed.jsonl there/one.jsonl
  report there/one.jsonl
  expect_status 0
  [ -z "$out" ]
  [[ $err == *"report: there/one.html (6 records)"* ]]
  page_holds there/one.html "</html>"
  report --quiet mixed.jsonl there/one.jsonl
  expect_status 0
  page_holds report.html "2 sources compared"
  report mixed.jsonl -o -
  expect_status 0
  [[ $out == "<!DOCTYPE html>"*"</html>" ]]
  report - -o piped.html < /dev/null
  expect_status 2
  "$ATTNBENCH" report - -o piped.html <mixed.jsonl
  page_holds piped.html "</html>"
}

@test "a page that cannot be written is exit 5, and no file is overwritten by its own page" {
  data mixed
  report mixed.jsonl -o missing/page.html
  expect_refusal 5 "missing/page.html"
  report mixed.jsonl -o /dev/full
  expect_refusal 5 "/dev/full"
  status=0
  "$ATTNBENCH" report mixed.jsonl -o - >/dev/full 2>stderr || status=$?
  [ "$status" = 5 ]
  cp mixed.jsonl before
  refused report mixed.jsonl -o mixed.jsonl -- "mixed.jsonl"
  cmp before mixed.jsonl
}

@test "sections in order, asking for nothing" {
  data mixed
  report mixed.jsonl -o page.html
  expect_status 0
  [ "$(grep -o '<section id="[a-z]*"' page.html | cut -d'"' -f2 | xargs)" = \
    "headline roofline shapes scaling rivals correctness records method" ]
  page_holds page.html "avx512 for prefill" "<strong>1 point</strong> noisy" "<strong>1 point</strong> gave wrong results" \
    "<strong>1 point</strong> failed" "<strong>1 point</strong> skipped" "needs H divisible by 3" "died of signal 11" \
    "2.5 times the bound" "Made-up CPU" "seed 1" "attnbench run -B 1"
  # Nothing but the page's own parts is linked, loaded or imported.
  if grep -oE '(src|href|action|data)="[^"]*"|url\([^)]*\)|@import[^;]*' page.html | grep -vE '="(#[a-z]+|data:,)"'; then
    tell "the page asks for these"
  fi
}

@test "every point's command stands in the page, on one line" {
  data mixed
  sed -i '2s/"repro": "attnbench run/"repro": "attnbench\\nrm x run/' mixed.jsonl
  report mixed.jsonl -o page.html
  expect_status 0
  python3 - page.html mixed.jsonl <<'PY'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
wanted = [line["repro"].replace("\n", " ") for line in map(json.loads, open(sys.argv[2])) if "repro" in line]
found = [" ".join(data["commands"]["texts"][i] for i in pieces) for pieces in data["commands"]["values"]]
assert found == wanted, (found, wanted)
columns = {column["key"]: column for column in data["columns"]}
records = [line for line in map(json.loads, open(sys.argv[2])) if "kernel" in line]
for key in ("kernel", "schedule", "placement", "cause", "point_id", "reason"):
    texts = [None if i is None else columns[key]["texts"][i] for i in columns[key]["values"]]
    assert texts == [record.get(key) for record in records], (key, texts)
for key in ("median_ns", "gflops", "roof_fraction", "threads", "err_over_bound"):
    for value, record in zip(columns[key]["values"], records):
        exact = record.get(key)
        assert value == exact or abs(value - exact) <= 1e-5 * abs(exact), (key, value, exact)
PY
}

@test "text from a file stays text" {
  data hostile
  data mixed
  report hostile.jsonl -o hostile.html
  expect_status 0
  report mixed.jsonl -o plain.html
  [ "$(grep -o '<script' hostile.html | wc -l)" = "$(grep -o '<script' plain.html | wc -l)" ]
  page_holds hostile.html '&lt;script&gt;window.hostile = 1&lt;/script&gt;&quot;&#39;&amp;'
  page_lacks hostile.html '<script>window'
}

@test "files without a record, and with skipped, wrong or failed ones alone" {
  data none
  report none.jsonl -o none.html
  expect_status 0
  page_holds none.html "0 points" "There is no record" "nothing to compare" "nothing to check"
  data skipped 3
  report skipped.jsonl -o skipped.html
  expect_status 0
  page_holds skipped.html "3 skipped" "3 × needs H divisible by 3" "nothing to compare" "nothing to check"
  data wrong 60
  report wrong.jsonl -o wrong.html
  expect_status 0
  page_holds wrong.html "<strong>60 points</strong> gave wrong results" "and 54 more" "row 49 of the output" \
    "10 more wrong results" "nothing to compare"
  data failed 2
  report failed.jsonl -o failed.html
  expect_status 0
  page_holds failed.html "<strong>2 points</strong> failed" "nothing to check"
}

@test "without gnuplot the page has its figures and says why it has no plots" {
  data mixed
  PATH=$(path_without_gnuplot) report mixed.jsonl -o page.html
  expect_status 0
  [[ $err == *"gnuplot is not installed"* ]]
  page_holds page.html "This page has no plots"
  page_lacks page.html '<svg'
  [ "$(grep -c '<section id=' page.html)" = 8 ]
}

@test "a gnuplot that does not work is as good as none" {
  data mixed
  mkdir bin
  printf '#!/bin/sh\necho gnuplot 4.0\n' >bin/gnuplot
  chmod +x bin/gnuplot
  PATH=$work/bin:$PATH report mixed.jsonl -o page.html
  expect_status 0
  [[ $err == *"no plots"* ]]
  page_holds page.html "This page has no plots"
}

@test "plots are drawings inside the page" {
  needs_gnuplot
  data many 60
  report many.jsonl -o page.html
  expect_status 0
  [ "$(grep -c '<svg' page.html)" -ge 4 ]
  page_lacks page.html "no plots"
}

@test "several files: told apart by build, machine or name, and compared" {
  data many 24
  sed 's/"build_commit": "0000000/"build_commit": "fedcba9/; s/run-1/run-2/' many.jsonl >other.jsonl
  report many.jsonl other.jsonl -o builds.html
  expect_status 0
  page_holds builds.html "build 0000000" "build fedcba9" '<section id="sources"' "one after the other, not interleaved"
  sed 's/"host": "bench"/"host": "second"/; s/0123456789abcdef/fedcba9876543210/; s/run-1/run-2/' many.jsonl >machine.jsonl
  report many.jsonl machine.jsonl -o machines.html
  expect_status 0
  page_holds machines.html '<h3>bench</h3>' '<h3>second</h3>'
  cp many.jsonl again.jsonl
  report many.jsonl again.jsonl -o files.html
  expect_status 0
  page_holds files.html '<h3>many</h3>' '<h3>again</h3>' "1.00"
  report many.jsonl many.jsonl -o twice.html
  expect_status 0
  page_holds twice.html '<h3>no. 1</h3>' '<h3>no. 2</h3>'
}

@test "a merged file is several sources" {
  data many 24
  sed 's/"host": "bench"/"host": "second"/; s/0123456789abcdef/fedcba9876543210/; s/run-1/run-2/' many.jsonl >machine.jsonl
  "$ATTNBENCH" merge many.jsonl machine.jsonl -o merged.jsonl
  report merged.jsonl -o page.html
  expect_status 0
  page_holds page.html "2 sources compared" '<h3>bench</h3>' '<h3>second</h3>' "48 points"
}

@test "a failure that was made good later is left out, a torn last line is told" {
  data mixed
  local point
  point=$(tail -n 1 mixed.jsonl | grep -o '"point_id": "[0-9a-f]*"')
  {
    head -n 1 mixed.jsonl
    tail -n 1 mixed.jsonl
    sed -n "2s/\"point_id\": \"[0-9a-f]*\"/$point/p" mixed.jsonl
    printf '{"schema": "attnbench.res'
  } >again.jsonl
  report again.jsonl -o page.html
  expect_status 0
  [[ $err == *"again.jsonl: the last line is torn"* ]]
  page_holds page.html "1 point of" "1 ok, 0 skipped, 0 wrong, 0 failed"
}

@test "layers are grouped by rule, with their phases" {
  data layers
  report layers.jsonl -o page.html
  expect_status 0
  page_holds page.html "avx2 for multi_head prefill" "Where the time of layers goes" "projections 60%" "output 10%"
}

@test "the headline spells out few classes of problems, and sums up many" {
  data rules
  report rules.jsonl -o page.html
  expect_status 0
  page_holds page.html "avx2 on 4 of 5 problems and avx512 on 1; class by class" \
    "from 50% in scaled_dot_product prefill to 90% in self_attention prefill"
}

@test "a run of the program itself, with what peak measured" {
  attempt "$ATTNBENCH" run -B 1,2 -H 2 -S 64 -D 16 --kernel naive,tiled --threads 1 "${cheap[@]}" --out run.jsonl
  expect_status 0
  "$ATTNBENCH" peak --json --threads 1 >peak.json || [ "$?" = 1 ]
  report run.jsonl peak.json
  expect_status 0
  page_holds run.html "4 points of 2 kernels on 2 problems" "</html>"
  refused report peak.json -o page.html -- "no results file"
}

@test "10,000 points stay below 5 MB" {
  data many 10000
  LIMIT=300 report many.jsonl -o page.html
  expect_status 0
  size=$(stat -c %s page.html)
  echo "# 10,000 points: $size bytes" >&3
  [ "$size" -lt 5000000 ]
  in_browser large page.html
}

@test "in a browser: complaints, sections, widths, contrast, titles" {
  data mixed
  data layers
  report mixed.jsonl -o mixed.html
  report mixed.jsonl layers.jsonl -o several.html
  in_browser look mixed.html
  in_browser look several.html
}

@test "in a browser: pages without results" {
  data none
  report none.jsonl
  in_browser look none.html
  data skipped
  report skipped.jsonl
  in_browser look skipped.html
  data wrong
  report wrong.jsonl
  in_browser look wrong.html
}

@test "in a browser: sorting, filtering, details, pages" {
  data many 200
  report many.jsonl
  in_browser table many.html
}

@test "in a browser: hover, keyboard and finger" {
  needs_gnuplot
  data many 200
  report many.jsonl
  in_browser hover many.html
}

@test "in a browser: nothing that a file says runs" {
  data hostile
  report hostile.jsonl
  in_browser hostile hostile.html
}

@test "in a browser: without JavaScript" {
  data many 40
  report many.jsonl
  in_browser static many.html
}
