# SPDX-License-Identifier: Apache-2.0
"""A whole peer in plain Python: slow, but right. kernels/README.md quotes it."""
import array, json, math, mmap, os, sys, time

answers = os.fdopen(os.dup(1), "w")  # the protocol's stdout; what anything else prints goes to stderr
os.dup2(2, 1)
KERNEL = {"name": "example", "summary": "plain Python", "rules": ["scaled_dot_product"], "dtypes": ["f32"],
          "own_threads": True, "spans": False, "weights": False, "partial": False, "split_keys": False, "isa": []}

def tensor(name):  # the shared memory behind each [b][h][s], as D floats; offsets count bytes, strides elements
    told = memory["tensors"][name]
    (B, H, S, D), (b, h, s, _), start = told["shape"], told["strides"], told["offset"] // 4
    places = [start + i * b + j * h + k * s for i in range(B) for j in range(H) for k in range(S)]
    return [shared[place:place + D] for place in places]

def run(q, k, v):
    out = []
    for n, row in enumerate(q):
        b, h, i = n // (p["H"] * p["S_q"]), n // p["S_q"] % p["H"], n % p["S_q"]
        first = (b * p["H_kv"] + h * p["H_kv"] // p["H"]) * p["S_kv"]  # row of the key head's first key
        at = i + (p["diag"][b] if p["diag"] else 0)
        keys = [first + j for j in range(p["kv_len"][b] if p["kv_len"] else p["S_kv"])
                if (p["left"] is None or -p["left"] < j - at) and (p["right"] is None or j - at <= p["right"])]
        scores = [p["scale"] * sum(x * y for x, y in zip(row, k[j])) for j in keys]
        weights = [math.exp(score - max(scores)) for score in scores]
        out.append([sum(w * v[j][d] for w, j in zip(weights, keys)) / sum(weights) if keys else 0.0
                    for d in range(p["D_v"])])
    return out

def clock(calls):  # nanoseconds of one call, and what the latest computed; each call takes the next copy
    start = time.perf_counter_ns()
    for _ in range(calls):
        copies.append(copies.pop(0))
        out = run(*copies[0])
    return (time.perf_counter_ns() - start) / calls, out

def turn(warm_ns, samples, calls_per_sample, aim_ns, last, **_):
    warm, end = [], time.perf_counter_ns() + warm_ns
    while warm_ns and (not warm or time.perf_counter_ns() < end):
        warm.append(clock(1)[0])
    calls = calls_per_sample or (max(1, round(aim_ns / min(warm))) if warm else 1)
    clocked = [clock(calls) for _ in range(samples)]  # each call makes a new output: none to be filled with NaN
    if last:
        for place, values in zip(tensor("out"), clocked[-1][1]):
            place[:] = array.array("f", values)
    times = [nanoseconds for nanoseconds, _ in clocked]
    return {"event": "turn", "samples_ns": times, "calls_per_sample": calls, "call_ns": min(warm or times)}

def answer(request):
    global p, memory, shared, copies
    op = request["op"]
    if op == "hello":
        return {"event": "hello", "protocol": 1, "source": "example 1", "kernels": [KERNEL]}
    if op == "open":
        p, memory = request["problem"], request["memory"]
        if p["dtype"] != "f32" or p["mask"] or p["bias"] or p["weights"] or p["softcap"] or request["threads"] > 1:
            return {"event": "refused", "reason": "f32 on one thread; no mask, bias, softcap or weights"}
        with open(memory["path"], "r+b") as file:
            shared = memoryview(mmap.mmap(file.fileno(), memory["bytes"])).cast("f")
        copies = [None] * request["copies"]
        return {"event": "opened", "schedule": "own", "source": "example 1", "workspace_bytes": 0, "threads": 1}
    if op == "load":
        copies[:] = [[[list(row) for row in tensor(name)] for name in "qkv"] for _ in copies]
    return turn(**request) if op == "turn" else {"event": {"load": "loaded", "close": "closed"}[op]}

for line in sys.stdin:
    try:
        reply = answer(json.loads(line))
    except Exception as error:
        reply = {"event": "failed", "reason": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(reply) + "\n")
    answers.flush()
