#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what the tests of the history import: the same points run by run, with levels that are known.

history_data.py journal RUN [KEY=VALUE...]    a results file of one run, to standard output
history_data.py duet RUN [KEY=VALUE...]       a file of a duet, one document, likewise
history_data.py duet-lines RUN [KEY=VALUE...] the same as a context and a line a point

RUN is the number of the run: its time, its id, its commit and its noise follow from it.

  points=N     points in it (default 2): kernels avx2, tiled, avx512 ... of one problem each
  scale=X      times (or ratios) are X times what they would be (default 1); scale.1=X: of point 1 alone
  commit=C     what the commit is named after instead of RUN
  machine=M    machine_key (default machine-a)
  prefix=P     what run ids begin with (default run)
  digest=D     of duet-lines: the digest of the anchor's build
  noise=X      relative noise from run to run (default 0.01), from a generator seeded by the run
"""
import json
import math
import random
import sys

KERNELS = ["avx2", "tiled", "avx512", "naive"]


def point(number, **changes):
    return {"rule": "scaled_dot_product", "dtype": "f32", "layout": "BHSD", "B": 1, "H": 8, "H_kv": 8,
            "S_q": 512 + number // len(KERNELS), "S_kv": 512, "D": 64, "D_v": 64, "scale": 0.125, "causal": "none",
            "kv_lengths": "full", "mask": None, "bias": False, "window": None, "softcap": None, "weights": False,
            "alias": "none", "fill": "normal", "seed": 1, "sizes": None, "kernel": KERNELS[number % len(KERNELS)],
            "source": "builtin", "schedule": "bhq", "schedule_requested": "auto", "threads": 2, "placement": "compact",
            "mem": "local", "cache": "warm", **changes}


def context(run, options, **changes):
    minutes = run
    return {"run_id": f"{options.get('prefix', 'run')}-{run}",
            "time_utc": f"2026-01-{1 + minutes // 1440:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:00Z",
            "command": ["attnbench", "run"], "config": "made-up", "seed": 1, "host": "bench",
            "machine_key": options.get("machine", "machine-a"), "cpu_model": "Made-up CPU", "microcode": None, "isa": {},
            "topology": {"packages": 1, "numa_nodes": 1, "l3_domains": 1, "cores": 2, "pus": 2},
            "memory_bytes": 1 << 34, "hypervisor": None, "governor": None, "turbo": None, "smt": None, "thp": None,
            "cgroup": None, "kernel_release": "6.1", "compiler": "gcc 12", "flags": "-O3",
            "build_commit": f"{int(options.get('commit', run)):012x}" + 28 * "0", "build_dirty": False, "omp": {}, "libraries": {},
            **changes}


def level(number, options, draw):
    scale = float(options.get(f"scale.{number}", options.get("scale", 1)))
    return scale * math.exp(draw.gauss(0, float(options.get("noise", 0.01))))


def record(run, number, options, draw):
    time = 1e6 * (1 + number) * level(number, options, draw)
    return {"schema": "attnbench.result/1", "run_id": context(run, options)["run_id"], "point_id": f"{number:016x}",
            "status": "ok", "reason": None, **point(number), "cpus": [0, 1], "flops_useful": 5e8, "flops_dense": 5e8,
            "tanh_count": 0.0, "bytes_min": 4e6, "verified": "full", "samples_ns": [time] * 9, "calls_per_sample": 1,
            "median_ns": time, "ci95_low_ns": 0.99 * time, "ci95_high_ns": 1.01 * time, "ci_scope": "within_process",
            "min_ns": 0.98 * time, "mad_ns": 0.005 * time, "gflops": 5e8 / time, "gb_per_s": 4e6 / time,
            "tokens_per_s": 512 / time * 1e9, "roof_bound": "compute", "roof_gflops": 200.0, "roof_fraction": 0.5,
            "isa_roof_gflops": 200.0, "page_mode": "2m", "rows_checked": 8, "max_abs_err": 1e-6, "rms_err": 1e-7,
            "err_over_bound": 0.2, "noise": {"quality": "clean"}, "counters": None}


def journal(run, options, draw):
    print(json.dumps({"schema": "attnbench.context/1", **context(run, options)}))
    for number in range(int(options.get("points", 2))):
        print(json.dumps(record(run, number, options, draw)))


def duet(run, options, draw):
    points = [{"point": point(number), "a": "base", "b": f"build {run}",
               "log_ratio": math.log(level(number, options, draw)), "se": 0.01, "processes": 8, "verdict": "pass",
               "later_field": [1]} for number in range(int(options.get("points", 2)))]
    print(json.dumps({"schema": "attnbench.duet/1", **context(run, options), "points": points}, indent=1))


def duet_lines(run, options, draw):
    print(json.dumps({"schema": "attnbench.context/1", **context(run, options)}))
    for number in range(int(options.get("points", 2))):
        here = point(number)
        pinned = {"a_digest": options["digest"]} if "digest" in options else {}
        print(json.dumps({"schema": "attnbench.duet/1", **here, "kernel": "naive", "a": "anchor.so:naive", **pinned,
                          "b": f"build/{run}.so:{here['kernel']}", "status": "ok", "verdict": "equal", "processes": 12,
                          "page_mode": "2m", "log_ratio": math.log(level(number, options, draw)), "se": 0.002, "tau": 0.02}))


def main():
    kind, run = sys.argv[1], int(sys.argv[2])
    options = dict(word.split("=", 1) for word in sys.argv[3:])
    {"journal": journal, "duet": duet, "duet-lines": duet_lines}[kind](run, options, random.Random(run))


if __name__ == "__main__":
    main()
