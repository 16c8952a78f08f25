#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes results files for the tests of the report: what no run of some seconds would write.

report_data.py KIND [COUNT]    to standard output

  many     COUNT ok records over kernels, shapes, threads and placements, some of them noisy
  hostile  a context and records with <script> in every field that may hold text
  none     a context alone
  skipped  COUNT skipped records alone
  wrong    COUNT wrong records alone
  failed   COUNT failed records alone
  layers   records of the other rules, with the times of their phases
  mixed    one record of each status, and a noisy one
"""
import json
import random
import sys

KERNELS = ["naive", "tiled", "avx2", "avx512"]
SPEED = {"naive": 4.0, "tiled": 30.0, "avx2": 90.0, "avx512": 98.0}
HOSTILE = "<script>window.hostile = 1</script>\"'&"


def context(**changes):
    cpus = list(range(4))
    return {
        "schema": "attnbench.context/1", "run_id": "run-1", "time_utc": "2026-01-02T03:04:05Z",
        "command": ["attnbench", "run", "--config", "made-up"], "config": "made-up", "seed": 1, "host": "bench",
        "machine_key": "0123456789abcdef", "cpu_model": "Made-up CPU", "microcode": "0x1",
        "isa": {"avx2": {"cpu": True, "os": True}, "avx512f": {"cpu": True, "os": True}},
        "topology": {
            "packages": 1, "numa_nodes": 1, "l3_domains": 1, "cores": 2, "pus": 4, "allowed_pus": cpus,
            "caches": [{"level": 1, "type": "data", "size": 32768, "count": 2, "shared_by": 2},
                       {"level": 2, "type": "unified", "size": 1 << 20, "count": 2, "shared_by": 2},
                       {"level": 3, "type": "unified", "size": 1 << 25, "count": 1, "shared_by": 4}],
            "sockets": [{"cpus": cpus, "cores": 2, "l3_domains": 1, "l3_bytes": 1 << 25}],
            "numa": [{"node": 0, "cpus": cpus, "cores": 2, "memory_bytes": 1 << 34}],
            "l3": [{"cpus": cpus, "cores": 2, "size": 1 << 25}]},
        "memory_bytes": 1 << 34, "hypervisor": None, "governor": "performance", "turbo": True, "smt": True,
        "thp": "madvise", "cgroup": None, "kernel_release": "6.1", "compiler": "gcc 12", "flags": "-O3",
        "build_commit": "0" * 40, "build_dirty": False, "omp": {}, "libraries": {"hwloc": "2.9"}, **changes}


def record(number, kernel="avx2", shape=(1, 8, 512, 512, 64), threads=1, quality="clean", **changes):
    batch, heads, queries, keys, depth = shape
    flops = 4.0 * batch * heads * queries * keys * depth
    least = 4.0 * batch * heads * (2 * queries + 2 * keys) * depth
    rate = SPEED[kernel] * threads ** 0.9
    time = flops / rate * (1 + 0.01 * (number % 7))
    return {
        "schema": "attnbench.result/1", "run_id": "run-1", "point_id": f"{number:016x}", "status": "ok", "reason": None,
        "rule": "scaled_dot_product", "dtype": "f32", "layout": "BHSD", "B": batch, "H": heads, "H_kv": heads,
        "S_q": queries, "S_kv": keys, "D": depth, "D_v": depth, "scale": depth ** -0.5, "causal": "none",
        "kv_lengths": "full", "mask": None, "bias": False, "window": None, "softcap": None, "weights": False,
        "alias": "none", "fill": "normal", "sizes": None, "kernel": kernel, "source": "builtin",
        "schedule": "serial" if threads == 1 else "bhq", "schedule_requested": "auto", "threads": threads,
        "placement": "compact", "mem": "local", "cpus": list(range(threads)), "cache": "warm", "flops_useful": flops,
        "flops_dense": flops, "bytes_min": least, "verified": "full", "rows_checked": batch * heads * queries,
        "samples_ns": [time] * 7, "calls_per_sample": 1, "median_ns": time, "ci95_low_ns": 0.99 * time,
        "ci95_high_ns": 1.02 * time, "ci_scope": "within_process", "min_ns": 0.98 * time, "mad_ns": 0.01 * time,
        "gflops": flops / time, "gb_per_s": least / time, "tokens_per_s": batch * queries / time * 1e9,
        "roof_bound": "compute", "roof_gflops": 120.0 * threads, "roof_fraction": flops / time / (120 * threads),
        "isa_roof_gflops": 120.0 * threads, "phases_ns": None, "cause": "kernel", "max_abs_err": 1e-6, "rms_err": 1e-7,
        "err_over_bound": 0.2, "workspace_bytes": 0, "page_mode": "2m", "joules_per_call": None, "counters": None,
        "parallel_efficiency": 0.9,
        "noise": {"quality": quality, "wall_over_cpu": 1.0, "steal_ns": 0.0, "involuntary_switches": 0, "migrations": 0,
                  "throttled_ns": 0.0, "clock_drift": None},
        "repro": f"attnbench run -B {batch} -H {heads} --q-len {queries} --kv-len {keys} -D {depth} --kernel {kernel} "
                 f"--threads {threads}",
        **changes}


def without_rates(number, status, reason, **changes):
    rates = ["median_ns", "ci95_low_ns", "ci95_high_ns", "ci_scope", "min_ns", "mad_ns", "gflops", "gb_per_s",
             "tokens_per_s", "roof_bound", "roof_gflops", "roof_fraction", "isa_roof_gflops", "cause", "noise",
             "parallel_efficiency", "calls_per_sample"]
    return record(number, status=status, reason=reason, samples_ns=[], **{**dict.fromkeys(rates), **changes})


def skipped(count):
    return [without_rates(i, "skipped", "needs H divisible by 3", verified="off", schedule="none", cpus=[], rows_checked=None,
                          max_abs_err=None, rms_err=None, err_over_bound=None) for i in range(count)]


def wrong(count):
    return [without_rates(i, "wrong", f"row {i} of the output: 2.5 times the bound", err_over_bound=2.5)
            for i in range(count)]


def failed(count):
    return [without_rates(i, "failed", "the worker died of signal 11", verified="off", rows_checked=None,
                          err_over_bound=None) for i in range(count)]


def many(count):
    draw = random.Random(1)
    shapes = [(batch, heads, queries, keys, depth) for queries, keys in ((64, 64), (512, 512), (1, 2048), (2048, 2048))
              for batch in (1, 2, 4, 8, 16, 32, 64, 128) for heads in (1, 8, 12, 16, 32, 48, 64, 96)
              for depth in (32, 64, 80, 96, 128, 256)]
    draw.shuffle(shapes)
    points = [(kernel, shape, threads) for shape in shapes for threads in (1, 2, 4) for kernel in KERNELS]
    return [record(number, kernel, shape, threads, "noisy" if draw.random() < 0.03 else "clean",
                   ci95_low_ns=None if draw.random() < 0.1 else 1e5 * (1 + draw.random()),
                   err_over_bound=draw.random() / 2, point_id=f"{draw.getrandbits(64):016x}",
                   roof_fraction=min(1.0, SPEED[kernel] / 120 * (0.8 + 0.2 * draw.random())))
            for number, (kernel, shape, threads) in enumerate(points[:count])]


def layers():
    phases = {"projections": 6e5, "attention": 3e5, "output": 1e5}
    return [record(i, kernel, threads=threads, rule=rule, phases_ns=phases, sizes={"model_dim": 512}, median_ns=1e6,
                   ci95_low_ns=9.9e5, ci95_high_ns=1.02e6)
            for i, (rule, kernel, threads) in enumerate(
                (rule, kernel, threads) for rule in ("scaled_dot_product", "multi_head", "self_attention", "additive")
                for kernel in ("avx2", "avx512") for threads in (1, 2))]


def rules():
    """Five classes of problems: one more than the headline spells out. avx2 is the fastest on four of them."""
    names = ("scaled_dot_product", "additive", "concat", "multi_head", "self_attention")
    fast = [("avx512" if rule == "additive" else "avx2", rule, 0.5 + number / 10) for number, rule in enumerate(names)]
    return [record(2 * number + behind, "tiled" if behind else kernel, rule=rule, median_ns=(1 + behind) * 1e6,
                   ci95_low_ns=(1 + behind) * 9.9e5, ci95_high_ns=(1 + behind) * 1.02e6, roof_fraction=roof)
            for number, (kernel, rule, roof) in enumerate(fast) for behind in (False, True)]


def mixed():
    return [record(0), record(1, "avx512"), record(2, "tiled", quality="noisy"), *skipped(4)[3:], *wrong(5)[4:],
            *failed(6)[5:]]


def poisoned(value):
    """Every text but the schema turned hostile."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    if isinstance(value, dict):
        return {key: item if key == "schema" else poisoned(item) for key, item in value.items()}
    return value


def hostile():
    words = {"isa": {HOSTILE: {"cpu": True, "os": True}}, "libraries": {HOSTILE: "1"}, "omp": {HOSTILE: "1"}}
    texts = {"phases_ns": {HOSTILE: 1e5}, "reason": "x", "mask": "x", "window": "x"}
    return [poisoned(context(**words)), {**poisoned(record(1, "avx512", **texts)), "status": "ok"},
            {**poisoned(wrong(3)[2]), "status": "wrong"}, {**poisoned(skipped(4)[3]), "status": "skipped"},
            poisoned(record(0, **texts))]


def main():
    kind, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    makers = {"many": lambda: many(count), "none": list, "skipped": lambda: skipped(count), "wrong": lambda: wrong(count),
              "failed": lambda: failed(count), "layers": layers, "mixed": mixed, "rules": rules}
    lines = hostile() if kind == "hostile" else [context(), *makers[kind]()]
    if kind == "many" and len(lines) != count + 1:
        sys.exit(f"{len(lines) - 1} records, not {count}")
    for line in lines:
        print(json.dumps(line))


if __name__ == "__main__":
    main()
