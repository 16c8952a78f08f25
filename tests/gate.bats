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
    and p["confirmation"]["p"] < 0.01 and p["p_fixed"] <= p["p_adjusted"] <= 0.05)(d["points"][0])'
  json_holds g.json 'd["gate"]["exit_code"] == 3 and d["points"][1]["outcome"] == "same"'
  json_holds j.jsonl 'sorted(l["kernel"] for l in lines[1:]) == ["changed", "steady"]'
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

@test "--max-time: points that were not reached are listed, exit 4" {
  GITHUB_ACTIONS=true gate base --max-time 0.01s --json g.json
  expect_status 4
  expect_out "inconclusive: 2 unreached" "--max-time was over" "of at most 0 s" "::warning title=attnbench gate%3A unreached::"
  json_holds g.json '[p["outcome"] for p in d["points"]] == ["unreached"] * 2 and d["gate"]["max_time_s"] == 0.01'
}

@test "an interrupt ends it with what there is: 130" {
  ATTNBENCH_DUET_SECONDS=1s "$ATTNBENCH" gate "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --out j.jsonl \
    >"$work/stdout" 2>"$work/stderr" &
  local program=$! status=0
  until [ -s j.jsonl ]; do sleep 0.1; done
  sleep 1
  kill -INT "$program" || true
  wait "$program" || status=$?
  [ "$status" = 130 ] || { cat stdout stderr; return 1; }
  grep -q '^interrupted: ' stdout
  json_holds j.jsonl '(lines or [d])[0]["schema"] == "attnbench.context/1"'
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
  expect_out "BASE.so [NEW.so]" "beside the program" --junit --markdown --tau "3 regression"
  gate base --kernel steady --max-time 0.01s --json nosuch/g.json
  expect_status 5
}
