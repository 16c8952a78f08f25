#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# duet: verdicts on changes that are planted, what it refuses, and what it writes. Figures are not tested.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/gate.bash
. "$BATS_TEST_DIRNAME/gate.bash"

setup_file() {
  build_libraries base "slow -DEXTRA=70" "wrong -DWRONG" "crash -DCRASHES" "newer -DNEWER" "alone -DALONE"
}

@test "the same code is the same, whichever way it is named" {
  attempt "$ATTNBENCH" duet "$libraries/base.so:steady" "$libraries/base.so:changed" "${tiny[@]}" -o json --out "$work/j.jsonl"
  expect_status 0
  json_holds "$work/stdout" 'd["schema"] == "attnbench.duet/1" and [p["verdict"] for p in d["points"]] == ["same"]'
  json_holds "$work/stdout" '(lambda p: p["judged_by"] == "cpu" and len(p["log_ratios_cpu"]) == p["processes"] >= 8 and
    p["ratio_low"] <= p["ratio"] <= p["ratio_high"] and p["a"].endswith("base.so:steady"))(d["points"][0])'
  json_holds "$work/j.jsonl" '[l["schema"] for l in lines] == ["attnbench.context/1", "attnbench.duet/1"]'
}

@test "a side is known by what its file holds, wherever it lies; pages and memory are told: the history goes by them" {
  local build n=0
  for build in base base slow; do
    n=$((n + 1))
    mkdir "$n"
    cp "$libraries/$build.so" anchor.so
    [ "$n" != 2 ] || cp anchor.so 2/moved.so
    attempt "$ATTNBENCH" duet "$([ "$n" = 2 ] && echo 2/moved.so || echo ./anchor.so):steady" "$libraries/base.so:steady" \
      "${tiny[@]}" --processes 3 --out "$n.jsonl"
    json_holds "$n.jsonl" '(lambda p: len(p["a_digest"]) == 16 and p["mem"] == "local" and
      p["page_mode"] in ("4k", "2m", "mixed") and len(p["log_ratios_cpu"]) == 3)(lines[1])'
    sed -i 's/"page_mode":"[^"]*"/"page_mode":"2m"/' "$n.jsonl" # which pages there are is chance
  done
  json_holds 1.jsonl 'lines[1]["a_digest"] == lines[1]["b_digest"]'
  json_holds 3.jsonl 'lines[1]["a_digest"] != lines[1]["b_digest"]'
  attempt "$ATTNBENCH" history import --db h.db 1.jsonl 2.jsonl 3.jsonl
  expect_status 0
  attempt "$ATTNBENCH" history list --db h.db -o json
  json_holds "$work/stdout" 'sorted(s["points"] for s in d) == [1, 2] and all(s["anchor"].startswith("steady@") for s in d)'
}

@test "slower and faster are told of B, and are no failure" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/slow.so" "${tiny[@]}" --kernel changed
  expect_status 0
  expect_out slower changed
  attempt "$ATTNBENCH" duet "$libraries/slow.so" "$libraries/base.so" "${tiny[@]}" --kernel changed -o json
  expect_status 0
  json_holds "$work/stdout" '[p["verdict"] for p in d["points"]] == ["faster"] and d["points"][0]["ratio"] < 0.8'
}

@test "files alone stand for their kernels, each once; what a side lacks is skipped with the reason" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/alone.so" "${tiny[@]}" -o json
  expect_status 0
  json_holds "$work/stdout" '[(p["kernel"], p["status"]) for p in d["points"]] == [("steady", "ok"), ("changed", "skipped")]
    and "no kernel of this name" in d["points"][1]["reason"]'
}

@test "two kernels of this build" {
  attempt "$ATTNBENCH" duet naive tiled -S 16 -D 8 --threads 1 --processes 3 -o json
  json_holds "$work/stdout" '(lambda p: p["a_digest"] and p["a_digest"] == p["b_digest"])(d["points"][0])'
  json_holds "$work/stdout" '[(p["a"], p["b"]) for p in d["points"]] == [("naive", "tiled")] and
    len(d["points"][0]["log_ratios_cpu"]) == 3'
}

@test "a wrong result and a crash are exit 1, and name the side" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/wrong.so" "${tiny[@]}" --kernel changed
  expect_status 1
  expect_out wrong wrong.so:changed
  attempt "$ATTNBENCH" duet "$libraries/crash.so" "$libraries/base.so" "${tiny[@]}" --kernel changed
  expect_status 1
  expect_out failed crash.so:changed "signal 4"
}

@test "what cannot be compared or read is refused in one line" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/newer.so" "${tiny[@]}"
  expect_refusal 4 newer.so "ABI"
  refused duet naive -- "what is to be compared"
  refused duet naive nosuch -- "nosuch"
  refused duet naive "$libraries/base.so:nosuch" -- "has no kernel" "nosuch"
  refused duet "$libraries/base.so" "$libraries/nosuch.so" -- nosuch.so
  refused duet naive tiled -o csv -- "neither table nor json"
  refused duet naive tiled --tau 0 -- "--tau"
  refused duet "$libraries/base.so" "$libraries/base.so" --kernel nosuch -- "no kernel matches 'nosuch'" "steady, changed"
  ATTNBENCH_DUET_SECONDS=never refused duet naive tiled -- ATTNBENCH_DUET_SECONDS never
}

@test "--max-time: what was not reached is told, exit 4" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --max-time 0.01s
  expect_status 4
  expect_out unreached "--max-time was over"
}

@test "nothing that can run: 77" {
  attempt "$ATTNBENCH" duet "$libraries/base.so" "$libraries/base.so" "${tiny[@]}" --dtype f16
  expect_status 77
  expect_out skipped f16
}
