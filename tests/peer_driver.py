# SPDX-License-Identifier: Apache-2.0
"""Speaks the peer protocol as the harness does, and holds what a peer computes against attention in plain float64.

    peer_driver.py KERNEL CHECK [--must 'CASE;...'] -- COMMAND...

hello       the greeting; exit 3 and the reason if the peer refuses to be here
problems    every case below; a refusal is a result, told with its reason, but not of the cases after --must ("all")
turns       clock, batches, warm-up, several copies, poison: what a turn promises
failures    what goes wrong is an event with a reason, and the peer goes on
refusals    another kernel, another rule, weights: a reason each; not every peer looks at what its greeting says
end         the end of stdin ends the process

Only the standard library: it runs where no peer's modules are.
"""
import json
import math
import mmap
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading

SIZE = {"f32": 4, "bf16": 2, "f16": 2, "u8": 1}
# On values of at most 1: far above each dtype's own rounding, far below one key or one rounding to the next dtype.
TOLERANCE = {"f32": 1e-5, "bf16": 1.5e-2, "f16": 2e-3}
PLAIN = {"B": 1, "H": 2, "H_kv": 2, "S_q": 9, "S_kv": 9, "D": 16, "D_v": 16, "dtype": "f32"}
INFINITE = float("inf")


def cases():
    """Name and problem; what `order`, `aliased` say is about where the tensors lie."""
    yield "plain", {}
    yield "batch", {"B": 3, "H": 3, "H_kv": 3, "S_q": 17, "S_kv": 31}
    yield "bshd", {"B": 2, "S_q": 5, "S_kv": 12, "order": "BSHD"}
    yield "value width", {"D": 16, "D_v": 32}
    yield "scale", {"scale": 1.5}
    yield "top left", {"causal": "top_left", "S_q": 7, "S_kv": 12, "right": 0}
    yield "causal", {"causal": "bottom_right", "S_q": 33, "S_kv": 33, "right": 0}
    yield "bottom right", {"causal": "bottom_right", "S_q": 7, "S_kv": 12, "right": 0, "diag": [5]}
    yield "rows without keys", {"causal": "bottom_right", "S_q": 12, "S_kv": 7, "right": 0, "diag": [-5]}
    yield "grouped heads", {"H": 6, "H_kv": 2, "S_q": 8, "S_kv": 12}
    yield "grouped, causal", {"H": 6, "H_kv": 2, "S_q": 12, "S_kv": 12, "causal": "bottom_right", "right": 0}
    yield "decode", {"S_q": 1, "S_kv": 40}
    yield "decode, grouped", {"B": 2, "H": 8, "H_kv": 2, "S_q": 1, "S_kv": 40}
    yield "lengths", {"B": 3, "S_kv": 12, "kv_len": [12, 5, 1]}
    yield "lengths, causal", {"B": 2, "S_kv": 12, "S_q": 4, "kv_len": [12, 6], "causal": "bottom_right_valid", "right": 0,
                              "diag": [8, 2]}
    yield "length 0", {"B": 2, "kv_len": [0, 9]}
    yield "window", {"S_q": 14, "S_kv": 14, "left": 3, "right": 0, "causal": "bottom_right"}
    yield "window of both sides", {"S_q": 14, "S_kv": 14, "left": 3, "right": 2}
    yield "mask", {"mask": "full", "B": 2}
    yield "mask a key", {"mask": "keys", "B": 2}
    yield "bias", {"bias": True}
    yield "bias, mask, causal", {"bias": True, "mask": "full", "causal": "top_left", "right": 0}
    yield "grouped, bias", {"H": 6, "H_kv": 2, "S_q": 5, "S_kv": 12, "bias": True, "right": 0, "causal": "top_left"}
    yield "softcap", {"softcap": 2.0, "scale": 1.0}
    yield "one buffer", {"alias": "kv"}
    yield "scale 0", {"scale": 0.0}
    yield "scale 0, decode", {"scale": 0.0, "H": 4, "S_q": 1}
    yield "tiny", {"B": 2, "S_q": 2, "S_kv": 3, "D": 5, "D_v": 3, "kv_len": [3, 0]}
    yield "odd head", {"D": 17, "D_v": 17, "causal": "bottom_right", "right": 0}
    yield "bf16", {"dtype": "bf16", "S_q": 17, "S_kv": 20}
    yield "bf16, causal", {"dtype": "bf16", "S_q": 17, "S_kv": 17, "causal": "bottom_right", "right": 0}
    yield "bf16, tiny", {"dtype": "bf16", "S_q": 2, "S_kv": 2, "D": 5, "D_v": 3}
    yield "bf16, scale 0", {"dtype": "bf16", "S_q": 17, "S_kv": 20, "scale": 0.0}
    yield "f16, bias", {"dtype": "f16", "H": 4, "bias": True}
    yield "f16", {"dtype": "f16", "S_q": 17, "S_kv": 20}


def encode(value, dtype):
    if dtype == "f32":
        return struct.pack("<f", value)
    if dtype == "f16":
        return struct.pack("<e", value)
    if dtype == "u8":
        return struct.pack("<B", int(value))
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if math.isnan(value):
        return struct.pack("<H", 0x7FC0)
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def decode(data, dtype):
    if dtype == "bf16":
        return struct.unpack("<f", b"\0\0" + data)[0]
    return float(struct.unpack({"f32": "<f", "f16": "<e", "u8": "<B"}[dtype], data)[0])


class Tensor:
    def __init__(self, offset, dtype, shape, order="BHSD", repeated=()):
        self.offset, self.dtype, self.shape = offset, dtype, shape
        self.strides = [0] * 4
        step = 1
        for axis in reversed(order):
            place = "BHSD".index(axis)
            if place not in repeated:
                self.strides[place] = step
                step *= shape[place]
        self.bytes = step * SIZE[dtype]

    def told(self):
        return {"offset": self.offset, "dtype": self.dtype, "shape": self.shape, "strides": self.strides}


class Memory:
    """A problem's tensors in a file, as the harness shares them."""

    def __init__(self, case, seed=1):
        case = dict(case)
        order = case.pop("order", "BHSD")
        mask, bias = case.pop("mask", None), case.pop("bias", None)
        p = {**PLAIN, "rule": "scaled_dot_product", "softcap": 0.0, "causal": "none", "kv_len": None, "diag": None,
             "left": None, "right": None, "weights": False, "alias": "none", **case}
        p.setdefault("scale", 1 / math.sqrt(p["D"]))
        p["scale"] = decode(encode(p["scale"], "f32"), "f32")
        p["mask"], p["bias"] = mask is not None, bias is not None
        self.problem = p
        shapes = {"q": [p["B"], p["H"], p["S_q"], p["D"]], "k": [p["B"], p["H_kv"], p["S_kv"], p["D"]],
                  "v": [p["B"], p["H_kv"], p["S_kv"], p["D_v"]], "out": [p["B"], p["H"], p["S_q"], p["D_v"]]}
        pairs = [p["B"], p["H"], p["S_q"], p["S_kv"]]
        self.tensors, end = {}, 0
        for name, shape in shapes.items():
            offset = self.tensors["k"].offset if name == "v" and p["alias"] == "kv" else end
            self.tensors[name] = Tensor(offset, p["dtype"], shape, order)
            end = max(end, offset + -(-self.tensors[name].bytes // 4096) * 4096)
        if mask:
            self.tensors["mask"] = Tensor(end, "u8", pairs, repeated=(1, 2) if mask == "keys" else (0, 1))
            end += -(-self.tensors["mask"].bytes // 4096) * 4096
        if bias:
            self.tensors["bias"] = Tensor(end, "f32", pairs, repeated=(0,))
            end += -(-self.tensors["bias"].bytes // 4096) * 4096
        self.file = tempfile.NamedTemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.file.truncate(end)
        self.bytes = mmap.mmap(self.file.fileno(), end)
        self.fill(seed)

    def fill(self, seed):
        """New inputs. Keys that no query sees are NaN; the output is what no kernel computes."""
        numbers = random.Random(seed)
        for name in ("q", "k", "v"):
            for index in self.indices(name):
                self.put(name, index, numbers.uniform(-1, 1))
        if "mask" in self.tensors:
            for index in self.indices("mask"):
                self.put("mask", index, numbers.random() < 0.7)
        if "bias" in self.tensors:
            for index in self.indices("bias"):
                self.put("bias", index, numbers.uniform(-1, 1))
        for index in self.indices("out"):
            self.put("out", index, 7.0)
        p = self.problem
        for b in range(p["B"]):
            for h in range(p["H_kv"]):
                heads = range(h * p["H"] // p["H_kv"], (h + 1) * p["H"] // p["H_kv"])
                for j in range(p["S_kv"]):
                    if any(self.allowed(b, head, i, j) for head in heads for i in range(p["S_q"])):
                        continue
                    for name in ("k", "v"):
                        for d in range(self.tensors[name].shape[3]):
                            self.put(name, (b, h, j, d), math.nan)

    def indices(self, name):
        b, h, s, d = self.tensors[name].shape
        return ((w, x, y, z) for w in range(b) for x in range(h) for y in range(s) for z in range(d))

    def place(self, name, index):
        tensor = self.tensors[name]
        return tensor.offset + SIZE[tensor.dtype] * sum(i * s for i, s in zip(index, tensor.strides))

    def put(self, name, index, value):
        at, data = self.place(name, index), encode(value, self.tensors[name].dtype)
        self.bytes[at:at + len(data)] = data

    def get(self, name, index):
        at, dtype = self.place(name, index), self.tensors[name].dtype
        return decode(self.bytes[at:at + SIZE[dtype]], dtype)

    def allowed(self, b, h, i, j):
        p = self.problem
        distance = j - (i + (p["diag"][b] if p["diag"] else 0))
        return (j < (p["kv_len"][b] if p["kv_len"] else p["S_kv"]) and
                (p["left"] is None or distance > -p["left"]) and (p["right"] is None or distance <= p["right"]) and
                ("mask" not in self.tensors or self.get("mask", (b, h, i, j)) != 0))

    def expected(self, b, h, i):
        """One row of the output by the definition of kernels/attn.h."""
        p = self.problem
        kv = h * p["H_kv"] // p["H"]
        q = [self.get("q", (b, h, i, d)) for d in range(p["D"])]
        scores = {}
        for j in range(p["S_kv"]):
            if self.allowed(b, h, i, j):
                score = p["scale"] * math.fsum(x * self.get("k", (b, kv, j, d)) for d, x in enumerate(q))
                if p["softcap"] > 0:
                    score = p["softcap"] * math.tanh(score / p["softcap"])
                scores[j] = score + (self.get("bias", (b, h, i, j)) if "bias" in self.tensors else 0)
        if not scores:
            return [0.0] * p["D_v"]
        most = max(scores.values())
        weights = {j: math.exp(score - most) for j, score in scores.items()}
        total = math.fsum(weights.values())
        return [math.fsum(w * self.get("v", (b, kv, j, d)) for j, w in weights.items()) / total for d in range(p["D_v"])]

    def worst(self):
        """The largest error of the output, and where; NaN counts as infinite."""
        worst, where, p = 0.0, None, self.problem
        for b in range(p["B"]):
            for h in range(p["H"]):
                for i in range(p["S_q"]):
                    for d, value in enumerate(self.expected(b, h, i)):
                        error = abs(self.get("out", (b, h, i, d)) - value)
                        error = INFINITE if math.isnan(error) else error
                        if error > worst:
                            worst, where = error, (b, h, i, d)
        return worst, where

    def told(self):
        return {"path": self.file.name, "bytes": len(self.bytes),
                "tensors": {name: tensor.told() for name, tensor in self.tensors.items()}}


class Peer:
    def __init__(self, kernel, command):
        self.kernel = kernel
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
        # A peer that hangs must not hang the tests.
        self.timer = threading.Timer(240, self.process.kill)
        self.timer.daemon = True
        self.timer.start()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            fail(f"no answer to {line[:200]}: the peer ended, exit {self.process.wait()}")
        try:
            return json.loads(answer)
        except ValueError:
            fail(f"no JSON on stdout: {answer!r}")

    def ask(self, op, **request):
        return self.say(json.dumps({"op": op, **request}))

    def open(self, tensors, copies=1, **changes):
        return self.ask("open", **{**{
            "kernel": self.kernel, "schedule": "own", "threads": 1, "cpus": None, "copies": copies, "guarded": False,
            "llc_bytes": 1 << 22, "cache": "cold" if copies > 1 else "warm", "seed": 1, "problem": tensors.problem,
            "spec": {}, "memory": tensors.told()}, **changes})

    def turn(self, samples=1, warm_ns=0, calls=1, aim_ns=0, last=True):
        return self.ask("turn", warm_ns=warm_ns, samples=samples, calls_per_sample=calls, aim_ns=aim_ns, last=last)

    def end(self):
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("still running 10 s after the end of stdin")
        left = self.process.stdout.read()
        self.timer.cancel()
        if code != 0 or left:
            fail(f"after the end of stdin: exit {code}, stdout {left[:200]!r}")


def fail(*words):
    print("peer_driver:", *words)
    sys.exit(1)


def expect(condition, *words):
    if not condition:
        fail(*words)


def expect_event(answer, event):
    expect(answer.get("event") == event, f"'{event}' expected, not {answer}")
    return answer


def check_hello(peer):
    answer = peer.ask("hello")
    if answer.get("event") == "refused":
        print(answer["reason"])
        sys.exit(3)
    expect_event(answer, "hello")
    expect(answer["protocol"] == 1, "another protocol:", answer)
    expect(peer.kernel in [kernel["name"] for kernel in answer["kernels"]], "the kernel is not among", answer)
    print(answer["source"])


def check_problems(peer, must):
    done = 0
    names = [name for name, case in cases()]
    expect(must == ["all"] or set(must) <= set(names), "no such case among", must)
    for name, case in cases():
        memory = Memory(case)
        answer = peer.open(memory)
        if answer["event"] == "refused":
            expect(must != ["all"] and name not in must, f"{name}: refused: {answer['reason']}")
            expect(len(answer["reason"]) > 5 and "\n" not in answer["reason"], f"{name}: no reason: {answer}")
            print(f"{name}: refused: {answer['reason']}")
            continue
        expect_event(answer, "opened")
        expect(answer["threads"] == 1 and answer["source"], f"{name}:", answer)
        expect_event(peer.ask("load"), "loaded")
        source = expect_event(peer.turn(), "turn").get("source", answer["source"])
        worst, where = memory.worst()
        limit = TOLERANCE[memory.problem["dtype"]]
        expect(worst <= limit, f"{name}: {source}: off by {worst} at {where}")
        expect_event(peer.ask("close"), "closed")
        print(f"{name}: {worst:.1e}, {source}")
        done += 1
    expect(done > 0, "every case was refused")


def check_turns(peer, must):
    memory = Memory({"S_q": 40, "S_kv": 40, "D": 32, "D_v": 32})
    expect_event(peer.open(memory, copies=3), "opened")
    expect_event(peer.ask("load"), "loaded")
    answer = expect_event(peer.turn(samples=5, warm_ns=3000000, calls=0, aim_ns=2000000, last=False), "turn")
    calls = answer["calls_per_sample"]
    expect(len(answer["samples_ns"]) == 5 and all(ns > 0 for ns in answer["samples_ns"]), answer)
    expect(answer["call_ns"] > 0 and calls >= 1, answer)
    # Of one call, not of the sample; and calls chosen from the warm ones. Wide: the machine may be busy.
    expect(0.02 * 2e6 < calls * min(answer["samples_ns"]) < 50 * 2e6, "a sample of another length than asked:", answer)
    expect(memory.get("out", (0, 0, 0, 0)) == 7.0, "the output was written before the last turn")
    answer = expect_event(peer.turn(samples=2, calls=4), "turn")
    expect(answer["calls_per_sample"] == 4, "another number of calls than asked:", answer)
    clocked = 4 * sum(answer["samples_ns"])
    for busy in answer.get("busy_ns", []):  # on the wall, and so no longer than the samples
        expect(0 < busy < 1.01 * clocked + 1e6, "a thread was busy for another time than was clocked:", answer)
    if len(answer.get("busy_ns", [])) == 1 and "cpu_ns" in answer:
        expect(answer["busy_ns"][0] > 0.99 * clocked, "one thread is busy all the time that is clocked:", answer)
        expect(answer["cpu_ns"] >= 0, "CPU time is negative:", answer)
    expect(answer.get("page_mode") in (None, "2m", "4k", "mixed"), "no such pages:", answer)
    expect(memory.worst()[0] < 1e-5, "wrong after several copies:", memory.worst())
    # New inputs in the same memory: what is clocked last is what comes out, of whichever copy.
    memory.fill(2)
    expect_event(peer.ask("load"), "loaded")
    expect_event(peer.turn(samples=1, calls=2), "turn")
    expect(memory.worst()[0] < 1e-5, "the inputs of the second load did not arrive:", memory.worst())
    expect(expect_event(peer.turn(calls=0, aim_ns=1e6), "turn")["calls_per_sample"] == 1, "1 call where nothing is warm")
    expect_event(peer.ask("close"), "closed")


def check_failures(peer, must):
    memory = Memory({})

    def expect_reason(answer, event):
        expect_event(answer, event)
        expect(answer.get("reason") and "\n" not in answer["reason"], f"no reason in one line: {answer}")
        print(f"{answer['event']}: {answer['reason']}")

    expect_reason(peer.ask("load"), "failed")
    expect_reason(peer.turn(), "failed")
    expect_reason(peer.say("no JSON"), "failed")
    expect_reason(peer.ask("dance"), "failed")
    expect_reason(peer.open(memory, memory={**memory.told(), "path": "/nonexistent/memory"}), "failed")
    expect_reason(peer.ask("load"), "failed")
    expect_reason(peer.open(memory, problem={**memory.problem, "weights": True}), "refused")
    expect_event(peer.open(memory), "opened")
    expect_event(peer.open(memory), "opened")
    expect_event(peer.ask("load"), "loaded")
    expect_event(peer.turn(), "turn")
    expect(memory.worst()[0] < 1e-5, "wrong after failures:", memory.worst())
    expect_event(peer.ask("close"), "closed")


def check_refusals(peer, must):
    memory = Memory({})
    for changes in ({"problem": {**memory.problem, "rule": "additive"}}, {"kernel": "another"},
                    {"problem": {**memory.problem, "weights": True}}):
        answer = expect_event(peer.open(memory, **changes), "refused")
        expect(answer.get("reason") and "\n" not in answer["reason"], f"no reason in one line: {answer}")
        print(f"refused: {answer['reason']}")
        expect_event(peer.ask("load"), "failed")


def main():
    split = sys.argv.index("--")
    kernel, check = sys.argv[1:3]
    options = sys.argv[3:split]
    must = options[1].split(";") if options[:1] == ["--must"] else []
    peer = Peer(kernel, sys.argv[split + 1:])
    if check in ("hello", "end"):
        check_hello(peer)
    else:
        {"problems": check_problems, "turns": check_turns, "failures": check_failures,
         "refusals": check_refusals}[check](peer, must)
    peer.end()


main()
