#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Peers in other processes, spoken to by tests/peer_driver.py as the harness does: the example of kernels/README.md, and
# the Python libraries as far as they are installed (make peers).

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# The Python that the harness starts peers with.
peer_python=$root/build/peers/venv/bin/python
[ -x "$peer_python" ] || peer_python=python3

once() {
  [ "$MODE" = release ] || skip "not under a sanitizer: nothing here is compiled"
}

drive() { # KERNEL CHECK [OPTION...] -- COMMAND...
  once
  LIMIT=300 attempt python3 "$root/tests/peer_driver.py" "$@"
}

example() { # CHECK [OPTION...]
  drive example "$@" -- python3 "${example:-$root/tests/peer_example.py}"
}

# Skips, visibly, where the library is not there; every other answer must be a greeting.
library() { # KERNEL CHECK [OPTION...]
  local kernel=$1 check=$2
  shift 2
  drive "$kernel" hello -- "$peer_python" "$root/scripts/peers/$kernel.py"
  [ "$status" != 3 ] || skip "$out"
  expect_status 0
  drive "$kernel" "$check" "$@" -- "$peer_python" "$root/scripts/peers/$kernel.py"
  expect_status 0
}

mutated() { # SED: the example with one line changed
  example=$work/peer.py
  sed "$1" "$root/tests/peer_example.py" >"$example"
  ! cmp -s "$example" "$root/tests/peer_example.py" || tell "the example has no such line"
}

# ---- the example, and that the driver sees faults --------------------------------------------------------------------

@test "the example of the README is the one that is tested" {
  once
  "$(command -v python3)" - "$root" <<'PY'
import sys
root = sys.argv[1]
text = open(root + "/kernels/README.md").read()
example = open(root + "/tests/peer_example.py").read()
sys.exit(0 if "```python\n" + example + "```" in text else "kernels/README.md does not quote tests/peer_example.py")
PY
}

@test "the example: every problem that it takes is right, the others are refused with a reason" {
  example problems --must 'plain;batch;bshd;rows without keys;grouped heads;lengths, causal;window;one buffer'
  expect_status 0
  expect_out "mask: refused: f32 on one thread"
}

@test "the example keeps the promises of a turn" {
  example turns
  expect_status 0
}

@test "the example answers what goes wrong, and goes on" {
  example failures
  expect_status 0
}

@test "the example ends with its stdin" {
  example end
  expect_status 0
}

@test "a causal line that is one key off is seen" {
  mutated 's/j - at <= p\["right"\]/j - at <= p["right"] + 1/'
  example problems
  expect_status 1
  expect_out "top left: example 1: off by"
}

@test "the key head of another query head is seen" {
  mutated 's/h \* p\["H_kv"\] \/\/ p\["H"\]/h % p["H_kv"]/'
  example problems
  expect_status 1
  expect_out "grouped heads: example 1: off by"
}

@test "a word on the protocol's stdout is seen" {
  mutated 's/^def run(q, k, v):/&\n    answers.write("library 1.0\\n")/'
  example problems
  expect_status 1
  expect_out "no JSON on stdout: 'library 1.0"
}

@test "inputs that are not read anew are seen" {
  mutated 's/if op == "load":/if op == "load" and not copies[0]:/'
  example turns
  expect_status 1
  expect_out "the inputs of the second load did not arrive"
}

@test "a peer that does not end is seen" {
  once
  mutated 's/^    answers.flush()/&\ntime.sleep(60)/'
  example end
  expect_status 1
  expect_out "still running 10 s after the end of stdin"
}

# ---- the part that Python peers share --------------------------------------------------------------------------------

# A library that prints wherever it can, beside a peer of its name.
noisy_peer() {
  once
  "$peer_python" -c 'import numpy' 2>/dev/null || skip "the Python module numpy is not installed (make peers)"
  mkdir modules peers
  cat >modules/noisy.py <<'PY'
import os, sys
print("noisy: loaded")
os.write(1, b"noisy: by descriptor\n")
os.system("echo noisy: by another process")
def attend(q, k, v, scale, out, allowed, keyless):
    import numpy
    print("noisy: at work", flush=True)
    scores = scale * (q.astype("f8") @ numpy.repeat(k, q.shape[1] // k.shape[1], 1).transpose(0, 1, 3, 2))
    if allowed is not None:
        scores = numpy.where(allowed, scores, -numpy.inf)
    with numpy.errstate(all="ignore"):
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        out[...] = weights / weights.sum(-1, keepdims=True) @ numpy.repeat(v, q.shape[1] // v.shape[1], 1)
    if keyless is not None:
        out[keyless] = 0
PY
  cp "$root"/scripts/peers/attnbench_peer*.py peers
  cat >peers/noisy.py <<'PY'
import sys
sys.dont_write_bytecode = True
import attnbench_peer

class Call:
    source = "noisy 1"
    def __init__(self, problem, threads):
        import noisy
        self.noisy, self.problem = noisy, problem
        if problem.has_bias or problem.softcap or problem.dtype != "f32":
            raise attnbench_peer.Refusal("no bias, no softcap, f32 alone")
    def bind(self, copy):
        return lambda: self.noisy.attend(copy.q, copy.k, copy.v, self.problem.scale, copy.out, copy.allowed, copy.keyless)

attnbench_peer.serve({"name": "noisy", "summary": "prints", "dtypes": ["f32"]}, "noisy", Call)
PY
  export PYTHONPATH=$work/modules
}

@test "a library that prints on stdout disturbs nothing, and is not taken for its peer" {
  noisy_peer
  drive noisy problems --must 'plain;batch;bshd;rows without keys;grouped heads;lengths;mask;mask a key;one buffer' \
    -- "$peer_python" peers/noisy.py
  expect_status 0
  [[ $err == *"noisy: by descriptor"*"noisy: at work"* ]] || tell "what the library printed should be on stderr"
  drive noisy turns -- "$peer_python" peers/noisy.py
  expect_status 0
  [ ! -e peers/__pycache__ ] || tell "a peer left files beside itself"
}

@test "a module that is missing is a refusal that says how to get it" {
  noisy_peer
  rm modules/noisy.py
  drive noisy hello -- "$peer_python" peers/noisy.py
  expect_status 3
  expect_out "the Python module noisy is not installed (make peers)"
}

@test "an error in a library is an event, and the next problem goes well" {
  noisy_peer
  sed -i 's/^def attend.*/&\n    if q.shape[0] == 3: raise RuntimeError("three\\nis too many")/' modules/noisy.py
  drive noisy problems -- "$peer_python" peers/noisy.py
  expect_status 1
  expect_out "'failed', 'reason': 'turn: RuntimeError: three'"
  drive noisy failures -- "$peer_python" peers/noisy.py
  expect_status 0
}

# ---- the libraries ---------------------------------------------------------------------------------------------------

@test "torch: every f32 and bf16 problem is right" {
  library torch problems --must 'plain;batch;bshd;top left;causal;bottom right;rows without keys;grouped heads;grouped, causal;decode;decode, grouped;lengths;lengths, causal;length 0;window;mask;bias;grouped, bias;softcap;bf16;bf16, causal'
}

@test "torch: turns, failures, refusals" {
  library torch turns
  library torch failures
  library torch refusals
}

@test "onnxruntime: every f32 problem is right" {
  library onnxruntime problems --must 'plain;batch;bshd;top left;causal;bottom right;rows without keys;grouped heads;grouped, causal;decode;decode, grouped;lengths;lengths, causal;length 0;window;mask;bias;grouped, bias;softcap'
  expect_out "bf16: refused: onnxruntime" "MultiHeadAttention" "GroupQueryAttention"
}

@test "onnxruntime: turns, failures, refusals" {
  library onnxruntime turns
  library onnxruntime failures
  library onnxruntime refusals
}

@test "openvino: every f32 problem is right" {
  library openvino problems --must 'plain;batch;bshd;top left;causal;bottom right;rows without keys;grouped heads;grouped, causal;decode;decode, grouped;lengths;lengths, causal;length 0;window;mask;bias;grouped, bias'
  expect_out "softcap: refused: openvino"
}

@test "openvino: turns, failures, refusals" {
  library openvino turns
  library openvino failures
  library openvino refusals
}

# ---- their installation ----------------------------------------------------------------------------------------------

@test "install-peers: the list, and names that it does not know" {
  once
  attempt "$root/scripts/install-peers" --check --only torch,openvino
  expect_out "peers: torch " "peers: openvino "
  [[ $out != *onnxruntime* ]] || tell "only what was asked for"
  attempt "$root/scripts/install-peers" --only torch,tensorflow
  expect_refusal 2 tensorflow onnxruntime
  attempt "$root/scripts/install-peers" --dance
  expect_refusal 2 --dance
}
