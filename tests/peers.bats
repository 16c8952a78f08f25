#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Libraries and programs as kernels of run, verify and list: those that are installed, in turn with ours, each in a
# process of its own; what is not installed is skipped visibly. (Their results are held against the oracle in
# check_peers and peers_python.bats.)

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# needs KERNEL...: skips the test where one of them cannot run here, with the reason that list gives.
needs() {
  local kernel reason
  for kernel in "$@"; do
    reason=$("$ATTNBENCH" list kernels --json | python -c '
import json, sys
[kernel] = [k for k in json.load(sys.stdin)["kernels"] if k["name"] == sys.argv[1]]
print("" if kernel["runs_here"] else kernel["reason"])' "$kernel")
    [ -z "$reason" ] || skip "$kernel: $reason"
  done
}

# fields FILE EXPRESSION: the value of a Python expression over r, the list of its records.
fields() {
  python - "$1" "$2" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    r = [record for record in map(json.loads, file) if record["schema"].startswith("attnbench.result")]
print(eval(sys.argv[2]))
END
}

@test "each library: verified rows on one and two threads, on the CPUs of the placement, its file in the record" {
  local kernel threads
  for kernel in openblas blis onednn mkl; do
    "$ATTNBENCH" list kernels --json | python -c '
import json, sys
sys.exit(not any(k["name"] == sys.argv[1] and k["runs_here"] for k in json.load(sys.stdin)["kernels"]))' "$kernel" ||
      { echo "# not here: $kernel" >&3; continue; }
    tested=1
    threads=1,2
    [ "$(nproc)" -ge 2 ] || threads=1
    attempt "$ATTNBENCH" run --kernel "naive,$kernel" -H 3 --kv-heads 1 -S 40 -D 24 --causal bottom_right \
      --schedule auto,own --threads $threads "${cheap[@]}" --out "$work/$kernel.jsonl"
    expect_status 0
    [ "$(fields "$work/$kernel.jsonl" '{(x["status"], x["verified"]) for x in r if x["kernel"] != "naive" and x["status"] != "skipped"}')" = \
      "{('ok', 'full')}" ] || tell "$kernel should be verified"
    [ "$(fields "$work/$kernel.jsonl" 'all(len(x["cpus"]) == x["threads"] == len(set(x["cpus"])) for x in r if x["status"] == "ok" and x["kernel"] != "naive")')" = True ] ||
      tell "$kernel: one CPU a thread expected"
    [ "$(fields "$work/$kernel.jsonl" 'all(".so" in x["source"] and "/" in x["source"] and x["peak_rss_bytes"] > 1e6 for x in r if x["status"] == "ok" and x["kernel"] != "naive")')" = True ] ||
      tell "$kernel: its file, version and memory expected"
  done
  [ -n "${tested:-}" ] || skip "none of openblas, blis, onednn, mkl is installed"
}

@test "a library takes part only where it is named, or matched" {
  attempt "$ATTNBENCH" run -S 16 -D 8 --dry-run -o json
  expect_status 0
  [[ $out != *openblas* && $out != *torch* ]] || tell "no peer expected"
  attempt "$ATTNBENCH" run -S 16 -D 8 --kernel '*blas,naive' --dry-run -o json
  expect_status 0
  expect_out '"kernel":"openblas"' '"source":"peer"'
}

@test "what is not installed, and what it cannot do, is skipped with the library's own reason" {
  # Neither folder has a library, and the loader's own names are hidden by an empty one.
  attempt env ATTNBENCH_PEER_PATH=/nonexistent PATH="$PATH" "$ATTNBENCH" run --kernel naive,mkl -S 16 -D 8 "${cheap[@]}" \
    --out "$work/a.jsonl"
  if [ "$(fields "$work/a.jsonl" '[x["status"] for x in r if x["kernel"] == "mkl"]')" = "['ok']" ]; then
    skip "oneMKL is among the system's own libraries"
  fi
  expect_status 0
  [ "$(fields "$work/a.jsonl" '[(x["status"], "libmkl_rt" in x["reason"]) for x in r if x["kernel"] == "mkl"]')" = \
    "[('skipped', True)]" ] || tell "a skip that names libmkl_rt expected"
  attempt "$ATTNBENCH" run --kernel naive,torch --rule multi_head --model-dim 16 -H 2 -S 8 "${cheap[@]}" --out "$work/b.jsonl"
  expect_status 0
  [ "$(fields "$work/b.jsonl" '[x["reason"] for x in r if x["kernel"] == "torch"]')" = \
    "['torch does not do rule multi_head']" ] || tell "a reason expected"
}

@test "the layers are put together on a library's attention" {
  needs openblas
  attempt "$ATTNBENCH" run --kernel openblas --rule multi_head --model-dim 32 -H 2 -S 24 "${cheap[@]}" --out "$work/a.jsonl"
  expect_status 0
  [ "$(fields "$work/a.jsonl" '[(x["status"], x["verified"], sorted(x["phases_ns"])) for x in r]')" = \
    "[('ok', 'full', ['attention', 'output', 'projections'])]" ] || tell "phases expected"
}

@test "a program that speaks the protocol is a kernel by --plugin" {
  local python
  python=$(command -v python3)
  printf '#!/bin/sh\nexec %s %s\n' "$python" "$root/tests/peer_example.py" >"$work/example"
  chmod +x "$work/example"
  attempt "$ATTNBENCH" run --plugin ./example --kernel 'naive,ex*' -S 12 -D 4 --threads 1 "${cheap[@]}" --out "$work/a.jsonl"
  expect_status 0
  [ "$(fields "$work/a.jsonl" '[(x["status"], x["schedule"]) for x in r if x["kernel"] != "naive"]')" = \
    "[('ok', 'own')]" ] || tell "its row expected"
}

@test "while others have their turn a peer does not run" {
  local python
  python=$(command -v python3)
  # The example, and a thread beside it that never rests.
  { printf 'import threading\n'
    printf 'threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()\n'
    cat "$root/tests/peer_example.py"; } >"$work/restless.py"
  printf '#!/bin/sh\nexec %s %s\n' "$python" "$work/restless.py" >"$work/restless"
  chmod +x "$work/restless"
  attempt "$ATTNBENCH" run --plugin ./restless --kernel 'naive,ex*' -S 64 -D 16 --threads 1 --samples 40 --min-time 0.2s \
    --out "$work/a.jsonl" &
  local runner=$! stopped=0 running=0 pid state
  while kill -0 $runner 2>/dev/null; do
    pid=$(pgrep -f "$work/restless.py" | head -1) || { sleep 0.02; continue; }
    state=$(sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null) || continue
    if [ "$state" = T ]; then stopped=$((stopped + 1)); else running=$((running + 1)); fi
    sleep 0.005
  done
  wait $runner
  [ "$stopped" -gt 0 ] || { echo "never seen stopped ($running times running)"; return 1; }
}

@test "a limit of memory is told" {
  attempt "$ATTNBENCH" run --kernel naive -S 4096 -H 8 --memory-limit 1m "${cheap[@]}" --out "$work/a.jsonl"
  [ "$(fields "$work/a.jsonl" '[(x["status"], "--memory-limit allows" in x["reason"]) for x in r]')" = \
    "[('skipped', True)]" ] || tell "a skip by the limit expected"
  attempt "$ATTNBENCH" run --memory-limit 0 -S 8
  expect_refusal 2 '--memory-limit' "'0'"
}
