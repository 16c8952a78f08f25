# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a peer: scaled_dot_product_attention where the version has it, else bmm + softmax + bmm.

scaled_dot_product_attention takes whichever of its two CPU paths it chooses itself (flash or math: `source` tells). Its
is_causal means the top left line; any other restriction goes in as a mask. bmm + softmax + bmm writes all scores, into
buffers that are allocated once; the query heads that share a key head are rows of one product, so that nothing is repeated.
"""
import ctypes
import os
import re
import sys

sys.dont_write_bytecode = True
import attnbench_peer
from attnbench_peer import Refusal


# OpenBLAS's core types without AVX2, in small letters.
OLD_CORES = {"prescott", "core2", "penryn", "dunnington", "nehalem", "sandybridge", "atom", "opteron", "opteron_sse3",
             "barcelona", "bobcat", "bulldozer", "piledriver", "steamroller", "nano", "northwood", "generic"}


def core_hint(core):
    """What would serve this CPU better than a core type that OpenBLAS fell back to, in words; or nothing."""
    forced = os.environ.get("OPENBLAS_CORETYPE")
    if forced:
        return f", {'forced by' if forced.lower() == core.lower() else 'in spite of'} OPENBLAS_CORETYPE={forced}"
    if core.lower() not in OLD_CORES:
        return ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(next((line for line in file if line.startswith("flags")), "").split())
    better = ("SKYLAKEX" if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags
              else "HASWELL" if {"avx2", "fma"} <= flags else None)
    return f": OpenBLAS does not know this CPU, OPENBLAS_CORETYPE={better} would serve it" if better else ""


def blas_name():
    """The BLAS behind this torch, by what the process has mapped, and the CPU that it takes this one for: OpenBLAS falls
    back to an old one where it does not know the model."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1] for line in maps if "/" in line}
    for name in ("mkl", "openblas", "blis", "atlas"):
        for file in files:
            if not re.search(f"(lib|/){name}", file):
                continue
            try:
                corename = ctypes.CDLL(file).openblas_get_corename
            except (OSError, AttributeError):
                return name
            corename.restype = ctypes.c_char_p
            core, l2 = corename().decode(), os.environ.get("OPENBLAS_L2_SIZE")
            return f"{name}, core type {core}{core_hint(core)}" + (f", OPENBLAS_L2_SIZE={l2}" if l2 else "")
    return "reference BLAS" if any("libblas" in file for file in files) else None


class Call:
    def __init__(self, problem, threads):
        import torch

        self.torch, self.problem = torch, problem
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[problem.dtype]
        self.version = tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])
        self.source = f"torch {torch.__version__}"
        self.workspace_bytes = None
        self.result = None
        fused = self.version >= (2, 1) and problem.softcap == 0  # `scale` came with 2.1
        if fused and (problem.group == 1 or self.version >= (2, 5)):
            self.prepare = self.fused
            self.source += ", scaled_dot_product_attention"
        else:
            self.prepare = self.products
            self.try_products()
            blas = blas_name()
            self.source += (", bmm + " + ("tanh + " if problem.softcap > 0 else "") + "softmax + bmm" +
                            (f", {blas}" if blas and problem.dtype == "f32" else ""))

    def tensor(self, array):
        # Not from_numpy: it needs a numpy of the time that torch was built in.
        dtype = {"float32": "float32", "bool": "bool"}.get(str(array.dtype))
        array = array if array.flags.c_contiguous and array.flags.writeable else array.copy()
        flat = self.torch.frombuffer(array, dtype=getattr(self.torch, dtype) if dtype else self.dtype)
        return flat.view(array.shape)

    def bind(self, copy):
        arrays = {name: getattr(copy, name) for name in ("q", "k", "v", "out", "allowed", "bias")}
        named = {name: None if array is None else self.tensor(array) for name, array in arrays.items()}
        keyless = copy.keyless
        if keyless is not None:
            keyless = tuple(self.torch.tensor(index.tolist()) for index in keyless)
        return self.prepare(copy, named, keyless)

    # ---- scaled_dot_product_attention ----

    def fused(self, copy, named, keyless):
        torch, p = self.torch, self.problem
        arguments = {"scale": p.scale}
        if p.group > 1:
            arguments["enable_gqa"] = True
        if p.top_left:
            arguments["is_causal"] = True
        elif named["allowed"] is not None or named["bias"] is not None:
            shape = (p.B, p.H, p.S_q, p.S_kv)
            if named["bias"] is None:
                mask = named["allowed"]
            else:
                mask = self.tensor(copy.additive())
            arguments["attn_mask"] = mask.expand(shape)
        q, k, v = named["q"], named["k"], named["v"]
        attention = torch.nn.functional.scaled_dot_product_attention
        path = self.path(q, k, v, arguments)
        self.source = f"torch {torch.__version__}, scaled_dot_product_attention{path}"

        def step():
            self.result = result = attention(q, k, v, **arguments)
            if keyless is not None:
                result[keyless] = 0

        return step

    def path(self, q, k, v, arguments):
        """Which of the paths torch chooses for these arguments, in words."""
        choose = getattr(self.torch, "_fused_sdp_choice", None)
        try:
            choice = choose(q, k, v, **arguments)
        except Exception:  # no public interface: a version may lack it or want other arguments
            return ""
        name = {0: "math", 1: "flash"}.get(int(choice), f"path {int(choice)}")
        return f" ({name}{', mask' if 'attn_mask' in arguments else ''})"

    # ---- bmm + softmax + bmm ----

    def try_products(self):
        """What this build cannot multiply it says of a tiny product too."""
        torch, p = self.torch, self.problem
        if p.dtype != "f32" and p.large_scale:
            raise Refusal(f"torch {torch.__version__}: bmm rounds scores to {p.dtype}, too coarse for this scale")
        tiny = torch.zeros(1, 2, 2, dtype=self.dtype)
        try:
            torch.softmax(torch.bmm(tiny, tiny), -1)
        except RuntimeError as error:
            raise Refusal(f"torch {torch.__version__}: {error}") from None
        self.workspace_bytes = 2 * p.B * p.H * p.S_q * p.S_kv * tiny.element_size()
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if self.workspace_bytes > available // 2:
            raise Refusal(f"the scores of bmm + softmax + bmm take {self.workspace_bytes / 1e9:.1f} GB, more than half "
                          "of the free memory")
        shape = (p.B * p.H_kv, p.group * p.S_q, p.S_kv)
        self.scores = torch.empty(shape, dtype=self.dtype)
        self.weights = torch.empty(shape, dtype=self.dtype)

    def products(self, copy, named, keyless):
        torch, p = self.torch, self.problem
        rows = p.group * p.S_q
        q = named["q"].view(p.B * p.H_kv, rows, p.D)
        k = named["k"].view(p.B * p.H_kv, p.S_kv, p.D).transpose(1, 2)
        v = named["v"].view(p.B * p.H_kv, p.S_kv, p.D_v)
        out = named["out"].view(p.B * p.H_kv, rows, p.D_v)
        scores, weights, whole = self.scores, self.weights, self.scores.view(p.B, p.H, p.S_q, p.S_kv)
        forbidden = None if named["allowed"] is None else ~named["allowed"]
        bias, every = named["bias"], named["out"]
        # baddbmm of 1.13 takes what lies in scores times 0 into tiny products, NaN included, and ignores alpha 0 in bf16.
        apart = p.scale == 0 or rows * p.S_kv * p.D < 1000

        def step():
            if apart:
                torch.bmm(q, k, out=scores).mul_(p.scale)
            else:
                torch.baddbmm(scores, q, k, beta=0, alpha=p.scale, out=scores)
            if p.softcap > 0:
                scores.div_(p.softcap).tanh_().mul_(p.softcap)
            if bias is not None:
                whole.add_(bias)
            if forbidden is not None:
                whole.masked_fill_(forbidden, -torch.inf)
            torch.softmax(scores, -1, out=weights)
            torch.bmm(weights, v, out=out)
            if keyless is not None:
                every[keyless] = 0

        return step

    # ---- results that are torch's own ----

    def poison(self):
        if self.result is not None:
            self.result.fill_(float("nan"))

    def fetch(self, copy):
        if self.result is not None:
            self.tensor(copy.out).copy_(self.result)


attnbench_peer.serve({"name": "torch", "summary": "PyTorch: scaled_dot_product_attention, or bmm + softmax + bmm",
                      "dtypes": ["f32", "bf16", "f16"]}, "torch", Call)
