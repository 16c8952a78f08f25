#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small case folder for `attnbench verify --case`, whole or spoilt in one way. Needs no numpy.

make_case.py DIR [--nan q|padding] [--break WHAT]
"""
import argparse
import json
import math
import os
import random
import struct

BATCH, HEADS, KV_HEADS, Q_LEN, KV_LEN, DIM = 1, 2, 1, 3, 5, 4


def npy(values, shape, descr="<f4", fortran=False):
    """The bytes of a version 1.0 .npy file."""
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, tuple(shape))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    code = {"<f4": "<%df", "<f8": "<%dd", "<c8": "<%df"}[descr]
    count = len(values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(code % count, *values)


def attention(q, k, v, valid):
    """Plain attention in double precision: lists in BHSD order, keys below `valid` only."""
    out = []
    for head in range(HEADS):
        for i in range(Q_LEN):
            row = q[(head * Q_LEN + i) * DIM:][:DIM]
            scores = [sum(a * b for a, b in zip(row, k[j * DIM:][:DIM])) / math.sqrt(DIM) for j in range(valid)]
            top = max(scores)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            out += [sum(w * v[j * DIM + d] for j, w in enumerate(weights)) / total for d in range(DIM)]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--nan", choices=["q", "padding"])
    parser.add_argument("--break", dest="spoil", default="")
    options = parser.parse_args()
    spoil = options.spoil

    def single(value):
        return struct.unpack("<f", struct.pack("<f", value))[0]

    generator = random.Random(1)
    shapes = {"q": [BATCH, HEADS, Q_LEN, DIM], "k": [BATCH, KV_HEADS, KV_LEN, DIM], "v": [BATCH, KV_HEADS, KV_LEN, DIM]}
    arrays = {name: [single(generator.gauss(0, 1)) for _ in range(math.prod(shape))] for name, shape in shapes.items()}
    valid = 3 if options.nan == "padding" else KV_LEN
    expected = None if options.nan == "q" else attention(arrays["q"], arrays["k"], arrays["v"], valid)
    if options.nan == "q":
        arrays["q"][0] = math.nan
    if options.nan == "padding":
        for name in ("k", "v"):
            arrays[name][valid * DIM:] = [math.nan] * ((KV_LEN - valid) * DIM)
    if spoil == "expect":
        expected[7] += 0.25

    files = {name + ".npy": npy(arrays[name], shapes[name]) for name in arrays}
    case = {
        "name": "made", "note": "", "rule": "scaled_dot_product", "layout": "BHSD", "batch": BATCH, "heads": HEADS,
        "kv_heads": KV_HEADS, "q_len": Q_LEN, "kv_len": KV_LEN, "head_dim": DIM, "value_dim": DIM,
        "scale": 1 / math.sqrt(DIM), "causal": "none", "window": None, "softcap": None,
        "kv_lengths": [valid] if valid < KV_LEN else None,
        "inputs": {name: {"file": name + ".npy", "dtype": "float32", "shape": shapes[name]} for name in arrays},
        "expect": {},
    }
    if expected is not None:
        shape = [BATCH, HEADS, Q_LEN, DIM]
        case["expect"]["out"] = {"file": "expect_out.npy", "dtype": "float64", "shape": shape}
        files["expect_out.npy"] = npy(expected, shape, "<f8")

    good = files["k.npy"]
    if spoil == "no-inputs":
        del case["inputs"]
    elif spoil == "json-type":
        case["heads"] = "two"
    elif spoil == "heads":
        case["heads"], case["kv_heads"] = 3, 2
    elif spoil == "rule":
        case["rule"] = "frobnicate"
    elif spoil == "no-npy":
        del files["k.npy"]
    elif spoil == "npy-magic":
        files["k.npy"] = b"NOTNUMPY" + good[8:]
    elif spoil == "npy-short":
        files["k.npy"] = good[:-8]
    elif spoil == "npy-header":
        files["k.npy"] = good[:40]
    elif spoil == "npy-shape":
        files["k.npy"] = npy(arrays["k"][:KV_LEN * 3], [BATCH, KV_HEADS, KV_LEN, 3])
    elif spoil == "npy-type":
        files["k.npy"] = npy(arrays["k"] * 2, shapes["k"], "<c8")
    elif spoil == "npy-fortran":
        files["k.npy"] = npy(arrays["k"], shapes["k"], fortran=True)
    elif spoil == "npy-huge":
        files["k.npy"] = npy(arrays["k"], [1 << 31, 1 << 31, 1 << 31, 4])
    elif spoil not in ("", "expect", "no-json", "json-syntax"):
        parser.error("unknown way to break: " + spoil)

    os.makedirs(options.directory, exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(options.directory, name), "wb") as file:
            file.write(data)
    text = json.dumps(case, indent=1)
    if spoil == "json-syntax":
        text = text[:len(text) // 2]
    if spoil != "no-json":
        with open(os.path.join(options.directory, "case.json"), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
