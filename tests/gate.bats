#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# gate: exit codes on planted changes, what CI services get to read, and the scripts around it. The decision itself is
# tested on made-up records in check_gate.c.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/gate.bash
. "$BATS_TEST_DIRNAME/gate.bash"

setup_file() {
  build_libraries base "slow -DEXTRA=70" "wrong -DWRONG" "crash -DCRASHES" "newer -DNEWER" "alone -DALONE" \
    "shifty -DSHIFTY"
}

gate() { # NEW FLAG...: against base.so
  local new=$1
  shift
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/$new.so" "${tiny[@]}" "$@"
}

@test "the same code passes, with its controls; files for every reader; the journal goes into a history" {
  GITHUB_STEP_SUMMARY=$work/summary gate base --max-time 10m --out j.jsonl --json g.json --markdown g.md --junit g.xml
  expect_status 0
  expect_out "no regression: 2 same" "control compute (" "of at most 600 s"
  json_holds g.json '(d["gate"]["exit_code"], d["gate"]["counts"]["same"], d["gate"]["counts"]["regression"]) == (0, 2, 0)'
  json_holds g.json '[p["outcome"] for p in d["points"]] == ["same"] * 2 and d["gate"]["controls"][0]["class"] == "compute"'
  json_holds g.json '(lambda c: c["b"].startswith("a copy of ") and c["a"] in c["b"])(d["gate"]["controls"][0]["first"])'
  json_holds j.jsonl '[l["schema"] for l in lines] == ["attnbench.context/1"] + ["attnbench.duet/1"] * 2'
  json_holds j.jsonl '[(l["outcome"], l["note"], "provisional" in l) for l in lines[1:]] == [("same", None, False)] * 2'
  grep -q '^## attnbench gate: no regression' g.md
  cmp g.md summary
  python3 -c 'import sys, xml.etree.ElementTree as x; s = x.parse("g.xml").getroot().find("testsuite")
assert (s.get("tests"), s.get("failures"), s.get("errors"), s.get("skipped")) == ("2", "0", "0", "0"), s.attrib
assert len({(c.get("classname"), c.get("name")) for c in s.findall("testcase")}) == 2'
  attempt "$ATTNBENCH" history import --db h.db j.jsonl
  expect_status 0
  [ "$(python3 -c 'import sqlite3; print(sqlite3.connect("h.db").execute("select count(*) from ratio").fetchone()[0])')" = 2 ]
}

@test "a slowdown is confirmed, named, and exit 3; everywhere it is told" {
  GITHUB_ACTIONS=true gate slow --json g.json --markdown g.md --junit g.xml --out j.jsonl
  expect_status 3
  expect_out "regression: 1 regression, 1 same" "again in 12 fresh processes" "this point alone: " \
    "::error title=attnbench gate%3A regression::changed auto 1 thr"
  [ "$(grep -c '^::' "$work/stdout")" = 1 ] || tell "one annotation expected"
  local flags
  read -r -a flags < <(sed -n 's/^ *this point alone: //p' "$work/stdout")
  json_holds g.json '(lambda p: p["kernel"] == "changed" and p["outcome"] == "regression" and p["flagged"] is True and
    p["processes"] == 24 and len(p["log_ratios_cpu"]) == 24 and p["ratio"] > 1.2 and p["confirmation"]["processes"] == 12
    and p["confirmation"]["p"] < 0.01 and p["p_spent"] <= p["p_adjusted"] <= 0.05)(d["points"][0])'
  json_holds g.json 'd["gate"]["exit_code"] == 3 and d["points"][1]["outcome"] == "same"'
  json_holds j.jsonl 'sorted((l["kernel"], l.get("provisional", False), l["outcome"]) for l in lines[1:]) ==
    [("changed", False, "regression"), ("changed", True, "inconclusive"), ("steady", False, "same")]'
  json_holds j.jsonl '(lambda at: at[True] < at[False])({l.get("provisional", False): i for i, l in enumerate(lines)
    if l.get("kernel") == "changed"})'
  json_holds g.json 'not any("provisional" in p for p in d["points"])'
  # a history takes the last line of a point
  python3 -c 'import json
lines = [json.loads(line) for line in open("j.jsonl")]
print([l["log_ratio"] for l in lines if l.get("kernel") == "changed" and "provisional" not in l][0])' >last
  attempt "$ATTNBENCH" history import --db h.db j.jsonl
  expect_status 0
  python3 -c 'import sqlite3
told = dict(sqlite3.connect("h.db").execute("select kernel, log_ratio from ratio join series on series.id = series"))
assert sorted(told) == ["changed", "steady"] and told["changed"] == float(open("last").read()), told'
  grep -q '^| regression | +' g.md
  python3 -c 'import xml.etree.ElementTree as x; s = x.parse("g.xml").getroot().find("testsuite")
assert s.get("failures") == "1", s.attrib
[case] = [c for c in s.findall("testcase") if c.find("failure") is not None]
assert "changed" in case.get("name") and case.find("failure").get("type") == "regression"'
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/wrong.so" "${flags[@]}"
  expect_status 1
  expect_out "1 wrong (" "this point alone: ${flags[*]}"
}

@test "a speed-up is told, and passes" {
  attempt "$ATTNBENCH" gate "$libraries/slow.so" "$libraries/base.so" "${tiny[@]}" --kernel changed -o json
  expect_status 0
  json_holds "$work/stdout" '[p["outcome"] for p in d["points"]] == ["improvement"] and d["points"][0]["ratio"] < 0.8'
}

@test "wrong results and crashes are exit 1, on whichever side" {
  GITHUB_ACTIONS=true gate wrong --kernel changed -o json
  expect_status 1
  json_holds "$work/stdout" 'd["points"][0]["outcome"] == "wrong" and d["gate"]["headline"] == "wrong results"'
  [[ $err == *"::error title=attnbench gate%3A wrong::changed"* ]] || tell "annotation on stderr expected"
  gate crash --junit g.xml --kernel changed
  expect_status 1
  expect_out "failed: 1 failed" crash.so:changed
  grep -q '<error type="failed"' g.xml
  attempt "$ATTNBENCH" gate "$libraries/crash.so" "$libraries/base.so" "${tiny[@]}" --kernel changed
  expect_status 1
  # the base itself is wrong: its control is, too
  GITHUB_ACTIONS=true attempt "$ATTNBENCH" gate "$libraries/wrong.so" "$libraries/base.so" "${tiny[@]}" --kernel changed \
    --junit c.xml --json c.json
  expect_status 1
  expect_out "::error title=attnbench gate%3A controls::compute (changed): wrong"
  json_holds c.json 'd["gate"]["headline"] == "wrong results"'
  python3 -c 'import xml.etree.ElementTree as x; s = x.parse("c.xml").getroot().find("testsuite")
assert (s.get("tests"), s.get("failures")) == ("2", "2"), s.attrib
assert s.find("testcase[@classname=\"control\"]/failure").get("type") == "wrong"'
}

@test "another ABI is not comparable; a kernel that one side lacks is skipped; nothing in common is 77" {
  gate newer
  expect_refusal 4 "not comparable" newer.so ABI
  gate alone -o json
  expect_status 0
  json_holds "$work/stdout" '[(p["kernel"], p["outcome"]) for p in d["points"]] == [("steady", "same"), ("changed", "skipped")]'
  attempt "$ATTNBENCH" gate "$libraries/alone.so" "$libraries/base.so" "${tiny[@]}" --json g.json
  expect_status 0
  [[ $err == *"alone.so has nothing to compare these with: changed"* ]] || tell "what is new should be told"
  json_holds g.json 'd["gate"]["only_in_new"] == "changed" and [p["kernel"] for p in d["points"]] == ["steady"]'
  gate base --dtype f16
  expect_status 77
  expect_out "nothing could run here: 2 skipped"
}

@test "what NEW lost passes, but is listed, noted and warned of" {
  GITHUB_ACTIONS=true gate alone --json g.json --markdown g.md
  expect_status 0
  expect_out "no regression: 1 same, 1 skipped" "lost: BASE does it; " "alone.so:changed: it has no kernel" \
    "::warning title=attnbench gate%3A lost::BASE does what NEW does not: 1 point of changed"
  [ "$(grep -c '^::' "$work/stdout")" = 1 ] || tell "one annotation expected"
  [[ $err == *"alone.so has nothing to compare these with: changed"* ]] || tell "what is gone should be told"
  json_holds g.json 'd["gate"]["only_in_base"] == "changed" and "only_in_new" not in d["gate"]'
  json_holds g.json '[(p["kernel"], p.get("lost")) for p in d["points"]] == [("steady", None), ("changed", True)]'
  grep -q '^| skipped .*lost' g.md
  # what neither side does is no loss
  GITHUB_ACTIONS=true gate base --dtype f16 --json g.json
  expect_status 77
  [[ $out != *lost* ]] || tell "nothing is lost"
  json_holds g.json '[(p["reason"], p.get("lost")) for p in d["points"]] ==
    [("steady does not do dtype f16", None), ("changed does not do dtype f16", None)]'
}

@test "a control for compute and one for memory; identical code that differs takes every change's verdict" {
  printf 'name: two\nsweeps:\n  - {S: 48, D: 16}\n  - {q-len: 1, kv-len: 256, H: 4, kv-heads: 1, D: 16}\n' >two.yaml
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" --config two.yaml --threads 1 --tau 20% --kernel steady \
    -o json
  expect_status 0
  json_holds "$work/stdout" '[(c["class"], c["first"]["S_q"]) for c in d["gate"]["controls"]] == [("compute", 48), ("memory", 1)]'
  GITHUB_ACTIONS=true attempt "$ATTNBENCH" gate "$libraries/shifty.so" "$libraries/slow.so" "${tiny[@]}" --kernel changed \
    --json g.json
  expect_status 4
  expect_out "inconclusive: 1 inconclusive" "; repeated: slower" "identical code differs" "::warning title=attnbench gate%3A controls"
  json_holds g.json 'd["gate"]["tainted"] is True and d["points"][0]["confirmation"]["p"] < 0.01 and
    "identical code differs" in d["points"][0]["note"]'
}

@test "each clock that judges has a control of its own" {
  [ "$(nproc)" -ge 2 ] || skip "one CPU"
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --threads 1,2 --kernel steady \
    --max-time 0.01s --json g.json
  expect_status 4
  expect_out "control compute (steady): unreached" "control compute (steady, by wall time): unreached"
  json_holds g.json '[(c["class"], c["judged_by"], c["first"]["threads"]) for c in d["gate"]["controls"]] ==
    [("compute", "cpu", 1), ("compute", "wall", 2)]'
  json_holds g.json '[(p["class"], p["judged_by"]) for p in d["points"]] == [("compute", "cpu"), ("compute", "wall")]'
}

@test "a control that its kernel refuses gives way to the next" {
  "${CC:-gcc}" -std=c11 -O2 -fPIC -shared -I "$root/kernels" -o mine.so "$root/tests/plugin/mine.c" -lm
  attempt "$ATTNBENCH" gate ./mine.so ./mine.so "${tiny[@]}" --softcap none,30 -o json
  expect_status 0
  json_holds "$work/stdout" '[c["first"]["softcap"] for c in d["gate"]["controls"]] == [None]'
  json_holds "$work/stdout" '{p["softcap"]: p["outcome"] for p in d["points"]} == {None: "same", 30: "skipped"}'
}

@test "--memory-limit: a point that needs more is skipped, and is no control" {
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" -S 48,2048 --kernel steady \
    --memory-limit 200k -o json
  expect_status 0
  json_holds "$work/stdout" '{p["S_q"]: p["outcome"] for p in d["points"]} == {48: "same", 2048: "skipped"}'
  json_holds "$work/stdout" '"--memory-limit allows" in [p["reason"] for p in d["points"] if p["S_q"] == 2048][0]'
  json_holds "$work/stdout" '[c["first"]["S_q"] for c in d["gate"]["controls"]] == [48]'
}

@test "the slowdown that matters is a sweep's own, or the config's; --tau is above both" {
  printf 'name: own\ndefaults: {tau: 20%%}\nsweeps:\n  - {S: 48, D: 16}\n  - {S: 40, D: 16, tau: 95%%}\n' >own.yaml
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/slow.so" --config own.yaml --threads 1 --kernel changed \
    --json g.json
  expect_status 3
  expect_out "a slowdown counts from 20 to 95 % on, as the config says of each point"
  json_holds g.json '{p["S_q"]: (p["tau"], p["outcome"]) for p in d["points"]} == {48: (0.2, "regression"), 40: (0.95, "same")}'
  json_holds g.json '(d["gate"]["tau"], d["gate"]["tau_most"]) == (0.2, 0.95)'
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" --config own.yaml --threads 1 --kernel steady --tau 30% \
    -o json
  expect_status 0
  json_holds "$work/stdout" '[p["tau"] for p in d["points"]] == [0.3, 0.3]'
  sed -i 's/95%/0/' own.yaml
  attempt "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" --config own.yaml
  expect_refusal 2 "own.yaml:5:" "key 'tau'"
}

@test "a library with a long path is loaded from a copy, too" {
  # Only a copy's mapping tells side B, which this one is slower as.
  local far
  far=$work/$(printf '%0200d' 0)/$(printf '%0200d' 1)
  mkdir -p "$far"
  cp "$libraries/shifty.so" "$far/"
  attempt "$ATTNBENCH" duet "$far/shifty.so" "$far/shifty.so" "${tiny[@]}" --kernel changed -o json
  expect_status 0
  json_holds "$work/stdout" '[p["verdict"] for p in d["points"]] == ["slower"]'
}

@test "a library is known by the end of its own name, whatever its folder is called" {
  mkdir my.software
  cp "$libraries/base.so" my.software/my.solver.so
  cp "$libraries/base.so" my.software/base.so.1
  attempt "$ATTNBENCH" gate my.software/my.solver.so my.software/base.so.1 "${tiny[@]}" --kernel steady -o json
  expect_status 0
  json_holds "$work/stdout" '[p["outcome"] for p in d["points"]] == ["same"]'
  attempt "$ATTNBENCH" duet my.software/my.solver.so:steady my.software/base.so.1:changed "${tiny[@]}" -o json
  expect_status 0
  json_holds "$work/stdout" '[(p["a"], p["b"]) for p in d["points"]] ==
    [("my.software/my.solver.so:steady", "my.software/base.so.1:changed")]'
  refused gate my.software/base my.software/base.so.1 -- my.software/base "is not FILE.so"
}

@test "--max-time: points that were not reached are listed, exit 4" {
  GITHUB_ACTIONS=true gate base --max-time 0.01s --json g.json
  expect_status 4
  expect_out "inconclusive: 2 unreached" "--max-time was over" "of at most 0 s" "::warning title=attnbench gate%3A unreached::"
  json_holds g.json '[p["outcome"] for p in d["points"]] == ["unreached"] * 2 and d["gate"]["max_time_s"] == 0.01'
}

@test "an interrupt ends it with what there is: 130, and what was not met is told everywhere" {
  ATTNBENCH_DUET_SECONDS=1s "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --out j.jsonl \
    --markdown g.md --junit g.xml >"$work/stdout" 2>"$work/stderr" &
  local program=$! status=0
  until [ -s j.jsonl ]; do sleep 0.1; done
  sleep 1
  kill -INT "$program" || true
  wait "$program" || status=$?
  [ "$status" = 130 ] || { cat stdout stderr; return 1; }
  grep -q '^interrupted: ' stdout
  json_holds j.jsonl '(lines or [d])[0]["schema"] == "attnbench.context/1"'
  grep -q '^0 of 2 points were met$' stdout
  grep -q '^- 0 of 2 points were met$' g.md
  python3 -c 'import xml.etree.ElementTree as x; s = x.parse("g.xml").getroot().find("testsuite")
assert (s.get("tests"), s.get("failures"), s.get("errors"), s.get("skipped")) == ("1", "0", "0", "1"), s.attrib
assert s.find("testcase/skipped").get("message") == "interrupted: 0 of 2 points were met"'
}

@test "the journal of a gate that was killed has its suspects as far as they were known, and a history takes them" {
  ATTNBENCH_DUET_SECONDS=0.3s "$ATTNBENCH" gate "$libraries/base.so" "$libraries/slow.so" "${tiny[@]}" --kernel changed \
    --out j.jsonl >"$work/stdout" 2>"$work/stderr" 3>&- &
  local program=$! status=0
  while kill -0 "$program" 2>/dev/null && ! grep -qs '"suspected"' j.jsonl; do sleep 0.1; done
  kill -KILL "$program" || true
  wait "$program" || status=$?
  [ "$status" = 137 ] || { cat stdout stderr; return 1; }
  json_holds j.jsonl '[(l["kernel"], l["suspected"], l["outcome"], l["provisional"]) for l in lines[1:]] ==
    [("changed", "slower", "inconclusive", True)]'
  attempt "$ATTNBENCH" history import --db h.db j.jsonl
  expect_status 0
  [ "$(python3 -c 'import sqlite3; print(sqlite3.connect("h.db").execute("select count(*) from ratio").fetchone()[0])')" = 0 ]
}

@test "a journal that cannot be written to its end takes nobody's verdict: it is told, and exit 5" {
  mkfifo journal
  timeout 100 head -n 1 journal >context 3>&- &
  GITHUB_STEP_SUMMARY=$work/summary gate slow --kernel changed --out journal --json g.json --junit g.xml
  expect_status 5
  expect_out "regression: 1 regression" "again in 12 fresh processes"
  [[ $err == *"results file journal: cannot write"* ]] || tell "what could not be written should be told"
  json_holds g.json 'd["gate"]["exit_code"] == 3 and [p["outcome"] for p in d["points"]] == ["regression"]'
  grep -q '<failure type="regression"' g.xml
  grep -q '^| regression ' summary
  json_holds context 'd["schema"] == "attnbench.context/1"'
}

@test "outputs that cannot be made are refused before anything is measured" {
  local flag
  for flag in --json --markdown --junit; do
    gate slow "$flag" nosuch/file --out j.jsonl
    expect_refusal 5 nosuch/file
    gate slow "$flag" "$libraries" --out j.jsonl
    expect_refusal 5 "$libraries"
  done
  GITHUB_STEP_SUMMARY=nosuch/summary gate slow --out j.jsonl
  expect_refusal 5 GITHUB_STEP_SUMMARY nosuch/summary
  [ ! -e j.jsonl ] || tell "a journal was begun"
  gate slow --out j.jsonl --json j.jsonl
  expect_refusal 5 "j.jsonl: a run is writing to it"
}

@test "an output that fails at last keeps no other back: exit 5" {
  [ -w /dev/full ] || skip "no /dev/full here"
  GITHUB_STEP_SUMMARY=$work/summary gate base --max-time 0.01s --json /dev/full --markdown g.md --junit g.xml
  expect_status 5
  expect_out "inconclusive: 2 unreached"
  [[ $err == *"/dev/full could not be written"* ]] || tell "what could not be written should be told"
  cmp g.md summary
  grep -q 'tests="2"' g.xml
  # the first of two is told
  attempt bash -c '"$@" >/dev/full' bash "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" \
    --max-time 0.01s --json h.json --markdown /dev/full --junit h.xml
  expect_status 5
  [[ $err == *"verdicts could not be written"* && $err != *"/dev/full could"* ]] || tell "the first error expected"
  json_holds h.json '[p["outcome"] for p in d["points"]] == ["unreached"] * 2'
  grep -q 'tests="2"' h.xml
  [ -z "$(find . -name '?.*.*')" ] || tell "a file is left behind"
}

@test "NEW left out is the library beside the program" {
  mkdir bin
  cp "$ATTNBENCH" bin/attnbench
  attempt bin/attnbench gate "$libraries/base.so" "${tiny[@]}"
  expect_refusal 2 bin/libattnkernels.so "NEW was left out"
  cp "$libraries/wrong.so" bin/libattnkernels.so
  attempt bin/attnbench gate "$libraries/base.so" "${tiny[@]}" --kernel changed
  expect_status 1
  expect_out bin/libattnkernels.so:changed
}

@test "usage errors name what is wrong; a file that cannot be written is exit 5" {
  refused gate -- "what is to be compared"
  refused gate naive tiled.so -- naive "is not FILE.so"
  refused gate nosuch.so "$libraries/base.so" -- nosuch.so
  refused gate "$libraries/base.so" "$libraries/base.so" -o md -- "neither table nor json"
  attempt "$ATTNBENCH" gate --help
  expect_status 0
  expect_out "BASE.so [NEW.so]" "beside the program" --junit --markdown --tau "3 regression" --max-time --memory-limit
  [[ $out != *--samples* ]] || tell "a flag that does nothing"
  local flag # how much is measured follows from the rule of stopping
  for flag in --min-time=1s --samples=3 --launches=2 --quick-check --counters=none; do
    refused gate "$libraries/base.so" "$libraries/base.so" "$flag" -- "unknown flag" "${flag%%=*}"
    refused duet naive tiled "$flag" -- "unknown flag" "${flag%%=*}"
  done
  gate base --kernel steady --max-time 0.01s --json nosuch/g.json
  expect_status 5
}
