#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Two results files point by point: what is compared, what is refused, what is told, and the exit codes.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

data() { python "$BATS_TEST_DIRNAME/compare_data.py" "$@"; }

edit() { data edit "$@"; } # IN OUT CODE

compare() { attempt "$ATTNBENCH" compare "$@"; }

two() { # CODE: a.jsonl, and b.jsonl, which is a.jsonl changed
  data base >a.jsonl
  edit a.jsonl b.jsonl "$1"
}

# True if the Python expression holds for the comparison as JSON: `d`, `points` by kernel and size.
says() {
  python - stdout "$1" <<'PY'
import json, sys

d = json.load(open(sys.argv[1]))
points = {(p["kernel"], p["problem"].split("/S:")[1].split("/")[0]): p for p in d["points"]}
if not eval(sys.argv[2]):
    print("does not hold:", sys.argv[2])
    print(json.dumps(d, indent=1)[:3000])
    sys.exit(1)
PY
}

@test "the table is marked as no verdict, and points to duet and gate" {
  two 'r and n == 2 and scale(r, 1.5)'
  compare a.jsonl b.jsonl
  expect_status 0
  [[ $out == "sequential, not interleaved: no verdict"* ]] || tell "the mark should come first"
  expect_out "87 %" "over 5 %" "attnbench duet" "attnbench gate" "8 compared: 1 slower and 0 faster" a.jsonl b.jsonl
  [ "$(awk 'length > 80' stdout)" = "" ] || tell "too wide"
  [ -z "$err" ] || tell "nothing on stderr expected"
  for format in json csv md; do
    compare a.jsonl b.jsonl -o "$format"
    expect_status 0
    expect_out "sequential, not interleaved: no verdict"
  done
}

# By hand: the 2nd and 10th of 11 samples are 101 and 109 (times 3 for point 2): 454.5 / 327 and 490.5 / 303.
@test "ratio, interval and roof of both, largest change first" {
  two 'if r and n == 2: scale(r, 1.5); r["roof_fraction"] = 0.333
if r and n == 4: scale(r, 0.95)'
  compare a.jsonl b.jsonl
  local lines
  mapfile -t lines < <(grep -E '^ +[01]\.[0-9]{3} ' stdout)
  [[ ${lines[0]} == *"1.500"*"1.390..1.619"*"315.0 ns"*"472.5 ns"*"50%"*"33%"*"tiled auto"* ]] || tell "first: ${lines[0]}"
  [[ ${lines[1]} == *"0.950"*"avx2 auto"* ]] || tell "second: ${lines[1]}"
  [ "${#lines[@]}" = 8 ] || tell "eight points expected"
  compare a.jsonl b.jsonl -o json
  says 'd["schema"] == "attnbench.compare/1" and d["counts"]["compared"] == 8 and d["why"]'
  says 'abs(points["tiled", "64"]["ratio"] - 1.5) < 1e-12 and points["tiled", "64"]["stands_out"] is True'
  says 'abs(points["tiled", "64"]["ratio_low"] - 454.5 / 327) < 1e-12 and abs(points["tiled", "64"]["ratio_high"] - 490.5 / 303) < 1e-12'
  says '[p["kernel"] for p in d["points"]][:2] == ["tiled", "avx2"] and points["avx2", "64"]["stands_out"] is False'
}

@test "csv and Markdown have the same figures" {
  two 'r and n == 2 and scale(r, 1.5)
if r and n == 3: r["status"], r["reason"] = "failed", "signal 9, \"killed\" | gone"'
  compare a.jsonl b.jsonl -o csv
  python -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert len(rows) == 8 and float(rows[0]["ratio"]) == 1.5 and rows[0]["kernel"] == "tiled", rows[0]
assert rows[7]["kind"] == "status_changed" and rows[7]["ratio"] == "" and "\"killed\"" in rows[7]["reason_b"], rows[7]' stdout
  compare a.jsonl b.jsonl -o md
  [ "$(grep -c '^| 1.500 | 1.390 | 1.619 | 315.0 ns | 472.5 ns | 50% | 50% | slower | tiled/auto' stdout)" = 1 ] || tell "a row expected"
  grep -q '^| ok -> failed: signal 9, "killed" \\| gone |' stdout || tell "the pipe should be escaped"
}

@test "md: GitHub's reader finds the tables, and text from the file stays text" {
  # shellcheck disable=SC2016 # Markdown's backquotes
  two 'if r and n == 0: r["status"], r["reason"] = "wrong", "<b> | \\ `code` *x* & #1 ~~"
if r and n == 1: drop()'
  compare a.jsonl b.jsonl -o md
  expect_status 0
  markdown_tables stdout >tables.json
  python - <<'PY'
import json

tables = json.load(open("tables.json"))
assert [len(table) for table in tables] == [7, 2, 2], tables
assert all(len(row) == len(table[0]) > 1 for table in tables for row in table), tables
assert tables[1][1][0] == "ok -> wrong: <b> | \\ `code` *x* & #1 ~~", tables[1]
PY
}

@test "the samples of 2 to 5 launches are not pooled into an interval" {
  two 'if r and n == 2: scale(r, 3)
if r: r["ci_scope"] = r["ci95_low_ns"] = r["ci95_high_ns"] = None'
  compare a.jsonl b.jsonl -o json
  says 'all(p["ratio_low"] is None and p["ratio_high"] is None and not p["stands_out"] for p in d["points"])'
  says 'points["tiled", "64"]["ratio"] == 3'
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 4
}

@test "a file whose name is no text" {
  two ''
  cp a.jsonl $'a\xff.jsonl'
  local format
  for format in table csv md json; do
    compare $'a\xff.jsonl' b.jsonl -o "$format"
    expect_status 0
  done
  says 'd["a"]["file"] == "a?.jsonl" and d["b"]["file"] == "b.jsonl" and d["counts"]["compared"] == 8'
}

@test "a noisy difference is marked, never coloured" {
  two 'r and scale(r, 1.5)
if r and n == 0: r["noise"]["quality"] = "noisy"'
  compare a.jsonl b.jsonl --color always
  [ "$(grep -c $'^\e\\[31m.*auto' stdout)" = 7 ] || tell "seven coloured points expected"
  grep -q '^  *1\.500 .* ~ naive auto' stdout || tell "the noisy one should be plain, and marked"
  # Its interval is the whole range of B's samples over the interval of A's: 150 / 109 and 165 / 101.
  compare a.jsonl b.jsonl -o json
  says 'abs(points["naive", "64"]["ratio_low"] - 150 / 109) < 1e-12 and abs(points["naive", "64"]["ratio_high"] - 165 / 101) < 1e-12'
  says 'points["naive", "64"]["noisy"] is True and points["naive", "64"]["stands_out"] is False and points["naive", "64"]["noise_b"]["quality"] == "noisy"'
  NO_COLOR=1 compare a.jsonl b.jsonl
  [[ $out != *$'\e['* ]] || tell "no colour expected"
}

@test "a faster point is another colour; one within its interval none" {
  two 'if r and n == 0: scale(r, 0.5)
if r and n == 1: scale(r, 1.03)'
  compare a.jsonl b.jsonl --color=always
  grep -q $'^\e\\[32m  *0\\.500 ' stdout || tell "green expected"
  grep -q '^  *1\.030 ' stdout || tell "plain expected"
}

@test "missing and added points and other statuses are listed" {
  two 'if r and n == 0: r["status"], r["reason"] = "wrong", "17 x its bound"
if r and n == 1: r["status"], r["reason"] = "skipped", "no such thing here"
if r and n == 2: drop()
if r and n == 3: r["kernel"] = "newcomer"'
  compare a.jsonl b.jsonl
  expect_status 0
  expect_out "4 compared" "Of another status in B (2)" "ok -> wrong: 17 x its bound" "ok -> skipped: no such thing here" \
    "Missing from B (2)" "Added in B (1)" newcomer
  compare a.jsonl b.jsonl -o json
  says 'd["counts"] == {"compared": 4, "status_changed": 2, "not_measured": 0, "missing": 2, "added": 1}'
  compare b.jsonl b.jsonl -o json
  says 'd["counts"] == {"compared": 5, "status_changed": 0, "not_measured": 2, "missing": 0, "added": 0}'
}

@test "points are the same whatever run, source and ID" {
  two 'x = c or r
x["run_id"] = "run-2"
if r: r["point_id"], r["source"], r["schedule"] = "f" * 15 + str(n), "plugin:other.so", "serial"'
  compare a.jsonl b.jsonl
  expect_status 0
  expect_out "8 compared" "0 missing from B, 0 added in B"
}

@test "of several records of a point the latest that is ok counts, or a wrong one after it" {
  two ''
  edit a.jsonl more.jsonl 'if c: drop()
scale(r, 2)
if n == 0: r["status"], r["reason"] = "failed", "crash"
if n == 1: r["status"], r["reason"] = "wrong", "17 x its bound"'
  cat a.jsonl more.jsonl >b.jsonl
  compare a.jsonl b.jsonl -o json
  says 'points["naive", "64"]["ratio"] == 1 and points["tiled", "64"]["ratio"] == 2'
  says 'points["naive", "128"]["kind"] == "status_changed" and points["naive", "128"]["status_b"] == "wrong"'
  says 'len(d["points"]) == 8'
}

@test "other machines, compilers, flags, Linux releases, page modes, dtypes and seeds are not comparable; --force warns" {
  local change
  for change in 'c["machine_key"]' 'c["compiler"]' 'c["flags"]' 'c["kernel_release"]' 'r["page_mode"]' 'r["dtype"]' 'r["seed"]'; do
    local line=${change:0:1} field=${change:3:-2} value='"bf16"'
    [ "$field" != seed ] || value=5
    two "if $line: $change = $value"
    compare a.jsonl b.jsonl
    expect_refusal 4 "not comparable: $field is" --force "8 points"
    compare a.jsonl b.jsonl --force
    expect_status 0
    expect_out "8 compared"
    [[ $err == *"warning: not comparable: $field is"* ]] || tell "$field: a warning expected"
  done
  two 'if c: c["microcode"] = "0x2"'
  compare a.jsonl b.jsonl
  expect_status 0
  [[ $err == "warning: microcode is 0x1 in A, 0x2 in B (8 points)" ]] || tell "a warning expected"
  two 'if r: r["kernel"] += "_other"'
  compare a.jsonl b.jsonl --force
  expect_refusal 4 "no point stands in both"
}

@test "--fail-on: 3 for a clean point slower by more, its interval too" {
  two 'r and n == 2 and scale(r, 1.5)'
  compare a.jsonl b.jsonl --fail-on 38
  expect_status 3
  [[ $err == *"1 slower by more than that"* ]] || tell "the count expected"
  # 454.5 / 327 = 1.38991: the interval still holds a slowdown by 39 %.
  compare a.jsonl b.jsonl --fail-on 39%
  expect_status 0
  [[ $err == *"0 slower by more than that, 1 more within their intervals"* ]] || tell "the count expected"
  compare b.jsonl a.jsonl --fail-on 5
  expect_status 0
  compare a.jsonl b.jsonl
  expect_status 0
}

@test "--fail-on: a noisy point does not fail; where all are noisy, 4" {
  two 'if r and n == 2: scale(r, 3); r["noise"]["quality"] = "noisy"'
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 0
  [[ $err == *"0 slower by more than that, 1 more within their intervals or their noise"* ]] || tell "the count expected"
  two 'if r: r["noise"]["quality"] = "noisy"'
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 4
  two 'if r: r["samples_ns"] = r["samples_ns"][:5]'
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 4
}

@test "--fail-on: 1 for a point that became wrong or failed, not for one that was" {
  local status
  for status in wrong failed; do
    two "if r and n == 2: scale(r, 1.5)
if r and n == 3: r['status'], r['reason'] = '$status', 'so'"
    compare a.jsonl b.jsonl --fail-on 5
    expect_status 1
    [[ $err == *"1 now wrong or failed"* ]] || tell "the count expected"
    compare b.jsonl b.jsonl --fail-on 5
    expect_status 0
  done
}

@test "--fail-on: 1 for a new point that is wrong or failed, 4 for a missing one" {
  local status
  for status in wrong failed; do
    two "if r and n == 3: r['kernel'] = 'newcomer'; r['status'], r['reason'] = '$status', 'so'"
    compare a.jsonl b.jsonl --fail-on 5
    expect_status 1
    [[ $err == *"1 now wrong or failed; 1 missing"* ]] || tell "the counts expected"
  done
  two 'if r and n == 3: drop()'
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 4
  [[ $err == *"0 now wrong or failed; 1 missing"* ]] || tell "the counts expected"
  compare b.jsonl a.jsonl --fail-on 5
  expect_status 0
  # Slower is known whatever is missing; what A skipped is no loss.
  two 'if r and n == 2: scale(r, 1.5)
if r and n == 3: drop()'
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 3
  two 'if r and n == 3: drop()'
  edit a.jsonl skipped.jsonl 'if r and n == 3: r["status"], r["reason"] = "skipped", "so"'
  compare skipped.jsonl b.jsonl --fail-on 5
  expect_status 0
}

@test "--fail-on: 4 for a point that was ok and is skipped, which is as good as missing" {
  two "if r and n == 3: r['status'], r['reason'] = 'skipped', 'so'"
  compare a.jsonl b.jsonl --fail-on 5
  expect_status 4
  [[ $err == *"0 now wrong or failed; 1 missing from B, or skipped there"* ]] || tell "the counts expected"
  compare b.jsonl b.jsonl --fail-on 5
  expect_status 0
  compare b.jsonl a.jsonl --fail-on 5
  expect_status 0
  # What was wrong is no loss; wrong elsewhere, or slower, is known all the same.
  edit a.jsonl wrong.jsonl "if r and n == 3: r['status'], r['reason'] = 'wrong', 'so'"
  compare wrong.jsonl b.jsonl --fail-on 5
  expect_status 0
  edit b.jsonl slower.jsonl 'r and n == 2 and scale(r, 1.5)'
  compare a.jsonl slower.jsonl --fail-on 5
  expect_status 3
}

@test "one of the files may be standard input" {
  two 'r and n == 2 and scale(r, 1.5)'
  # shellcheck disable=SC2016 # the inner shell expands it
  attempt bash -c '"$0" compare - b.jsonl -o json <a.jsonl' "$ATTNBENCH"
  expect_status 0
  says 'points["tiled", "64"]["ratio"] == 1.5 and d["a"]["file"] == "-"'
  refused compare - - -- "standard input"
}

@test "the shell is offered the formats of compare alone" {
  attempt "$ATTNBENCH" @complete compare -o ''
  expect_status 0
  expect_out table json csv md
  [[ $out != *github* ]] || tell "github is no format of compare"
}

@test "bad usage and bad files are refused in one line" {
  two ''
  refused compare -- "which two results files"
  refused compare a.jsonl -- "which two results files"
  refused compare a.jsonl b.jsonl a.jsonl -- "what is a.jsonl"
  refused compare a.jsonl b.jsonl -o xml -- xml "table, json, csv, md"
  refused compare a.jsonl b.jsonl --fail-on much -- --fail-on much
  refused compare a.jsonl b.jsonl --fail-on -3 -- --fail-on -3
  refused compare a.jsonl b.jsonl --fail-on nan -- --fail-on nan
  refused compare a.jsonl missing.jsonl -- missing.jsonl
  sed '3s/.*/nonsense/' b.jsonl >broken.jsonl
  refused compare a.jsonl broken.jsonl -- broken.jsonl:3
  sed '2s/"median_ns": [0-9.]*/"median_ns": "fast"/' b.jsonl >typed.jsonl
  refused compare typed.jsonl b.jsonl -- typed.jsonl:2 median_ns
  head -c -20 b.jsonl >killed.jsonl
  compare a.jsonl killed.jsonl
  expect_status 0
  [[ $err == *"killed.jsonl: the last line is torn"* ]] || tell "should tell of the torn line"
  expect_out "7 compared" "1 missing from B"
}

@test "what a file holds can't break the table, nor the terminal" {
  two 'if r: r["kernel"] = "k\u001b[31m" + "x" * 300 + str(n // 2); r["placement"] = "\n\t" + "p" * 200'
  cp b.jsonl a.jsonl
  compare a.jsonl b.jsonl --color never
  expect_status 0
  [[ $out != *$'\e'* ]] || tell "no escape sequence expected"
  [ "$(awk 'length > 82' stdout)" = "" ] || tell "too wide"
  LC_ALL=C compare a.jsonl b.jsonl
  ! LC_ALL=C grep -q '[^ -~]' stdout || tell "ASCII alone expected"
  if [ -w /dev/full ]; then
    # shellcheck disable=SC2016
    attempt bash -c '"$0" compare a.jsonl b.jsonl >/dev/full' "$ATTNBENCH"
    expect_refusal 5 written
  fi
}

@test "--help names the flags and exit codes" {
  compare --help
  expect_status 0
  expect_out --fail-on --force -o --wide --color "Exit codes:" "no verdict"
  [ "$(awk 'length > 80' stdout)" = "" ] || tell "too wide"
  refused compare --frobnicate -- --frobnicate
}
