# SPDX-License-Identifier: Apache-2.0
"""OpenVINO as a peer: a model of one ScaledDotProductAttention (opset 13) of fixed shapes, compiled for the CPU plugin.

The precision that the plugin computes in is told to be the problem's dtype: left alone it would take bf16 where the CPU
has it. The operator knows no grouped heads, so the query heads of one key head go in as more rows of it, and nothing is
repeated; its causal line is the top left one, and everything else is a mask. What the plugin made of the operator is in
`source`. A model with the cache as its state, which servers use, grows with every call and cannot be clocked so.
"""
import os
import sys

sys.dont_write_bytecode = True
import attnbench_peer
from attnbench_peer import Refusal


class Call:
    def __init__(self, problem, threads):
        # TBB sets its workers' masks anew at every call, by hwloc, which does so on this system alone: without this
        # a thread would not stay on the CPU that it is bound to from outside.
        os.environ["HWLOC_THISSYSTEM"] = "0"
        import numpy
        import openvino
        from openvino import opset13

        self.numpy, self.openvino, self.operators, self.problem = numpy, openvino, opset13, problem
        self.version = openvino.__version__.split("-")[0]
        if problem.softcap > 0:
            raise Refusal(f"openvino {self.version}: ScaledDotProductAttention has no softcap")
        if problem.dtype != "f32" and problem.large_scale:
            raise Refusal(f"openvino {self.version}: scores are rounded to {problem.dtype}, too coarse for this scale")
        self.core = openvino.Core()
        able = self.core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        wanted = {"f32": "FP32", "bf16": "BF16", "f16": "FP16"}[problem.dtype]
        if wanted not in able:
            raise Refusal(f"openvino {self.version}: the CPU plugin does no {problem.dtype} on this CPU")
        self.type = {"f32": openvino.Type.f32, "bf16": openvino.Type.bf16, "f16": openvino.Type.f16}[problem.dtype]
        self.settings = {"INFERENCE_PRECISION_HINT": problem.dtype, "KV_CACHE_PRECISION": problem.dtype,
                         "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False}
        self.rows = problem.group * problem.S_q
        # Heads as rows would each get the line of another query.
        self.causal = problem.top_left and problem.group == 1
        self.mask_shape = self.compiled = None
        self.workspace_bytes = None
        self.source = f"openvino {self.version}, ScaledDotProductAttention"

    def compile(self):
        numpy, ops, p = self.numpy, self.operators, self.problem
        inputs = [ops.parameter([p.B, p.H_kv, self.rows, p.D], self.type),
                  ops.parameter([p.B, p.H_kv, p.S_kv, p.D], self.type),
                  ops.parameter([p.B, p.H_kv, p.S_kv, p.D_v], self.type)]
        if self.mask_shape is None:
            mask = ops.constant(numpy.array(0, numpy.float32), self.type)
        else:
            mask = ops.parameter(list(self.mask_shape), self.type)
            inputs.append(mask)
        scale = ops.constant(numpy.array(p.scale, numpy.float32), self.type)
        node = ops.scaled_dot_product_attention(*inputs[:3], mask, scale, causal=self.causal)
        try:
            compiled = self.core.compile_model(self.openvino.Model([node], inputs, "attention"), "CPU", self.settings)
        except RuntimeError as error:
            words = str(error).strip().split("\n")[-1]
            raise RuntimeError(f"openvino {self.version}: {words}") from None
        self.source = f"openvino {self.version}, ScaledDotProductAttention ({self.made_of(compiled)})"
        return compiled

    @staticmethod
    def made_of(compiled):
        """The nodes that the plugin runs, in words."""
        names = []
        for node in compiled.get_runtime_model().get_ordered_ops():
            told = node.get_rt_info()
            kind, how = told["layerType"].astype(str), told["primitiveType"].astype(str)
            if kind not in ("Input", "Output", "Const"):
                names.append(kind if how.startswith("unknown") else f"{kind} {how}")
        return " + ".join(dict.fromkeys(names))

    def mask(self, copy):
        """What is added to the scores, by key head and row; None: nothing."""
        p = self.problem
        added = None if self.causal else copy.additive()
        if added is None:
            return None
        heads = (p.H_kv, p.group) if added.shape[1] > 1 else (1, p.group)
        by_group = added.reshape(added.shape[0], -1, p.group if added.shape[1] > 1 else 1, *added.shape[2:])
        whole = self.numpy.broadcast_to(by_group, (added.shape[0], *heads, p.S_q, p.S_kv))
        return whole.reshape(added.shape[0], heads[0], self.rows, p.S_kv)

    def tensor(self, array, shape):
        return self.openvino.Tensor(array.reshape(shape), list(shape), self.type)

    def in_type(self, mask):
        """The mask in the problem's dtype."""
        numpy = self.numpy
        if self.problem.dtype == "f32":
            return numpy.ascontiguousarray(mask)
        if self.problem.dtype == "f16":
            return mask.astype(numpy.float16, order="C")
        bits = numpy.ascontiguousarray(mask).view(numpy.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)

    def bind(self, copy):
        p = self.problem
        mask = self.mask(copy)
        shape = None if mask is None else mask.shape
        if self.compiled is None or shape != self.mask_shape:
            self.mask_shape = shape
            self.compiled = self.compile()
        arrays = [(copy.q, (p.B, p.H_kv, self.rows, p.D)), (copy.k, (p.B, p.H_kv, p.S_kv, p.D)),
                  (copy.v, (p.B, p.H_kv, p.S_kv, p.D_v))]
        if mask is not None:
            arrays.append((self.in_type(mask), mask.shape))
        request = self.compiled.create_infer_request()
        for index, (array, shape) in enumerate(arrays):
            request.set_input_tensor(index, self.tensor(array, shape))
        request.set_output_tensor(0, self.tensor(copy.out, (p.B, p.H_kv, self.rows, p.D_v)))
        infer, keyless, logical = request.infer, copy.keyless, copy.logical("out")

        def step(kept=arrays):
            infer()
            if keyless is not None:
                logical[keyless] = 0

        return step

    def close(self):
        self.compiled = self.core = None


attnbench_peer.serve({"name": "openvino", "summary": "OpenVINO's CPU plugin: ScaledDotProductAttention",
                      "dtypes": ["f32", "bf16", "f16"]}, "openvino", Call)
