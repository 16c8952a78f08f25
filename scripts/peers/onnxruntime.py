# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a peer: a model of one node, on the CPU provider, with inputs and output bound to the peer's memory.

Three of its operators compute attention, and each is taken where it is at its best:

MultiHeadAttention    every query sees every key, as many key heads as heads: blocked as in flash attention
GroupQueryAttention   heads of a multiple of 8 with the causal line of S_q = S_kv, a window to the left; and one query a head (decode), where all
                      keys but the last are the cache, shared by past and present as a server would
Attention (opset 23)  the rest: any mask, bias, the top left line, grouped heads without a line

All want f32 (the last two f16 as well); bf16 no operator of the CPU provider does. MultiHeadAttention and
GroupQueryAttention want [B][S][H][D], a permutation that is not clocked. Copying keys into the cache is GroupQueryAttention's own
work, and is.
"""
import sys

sys.dont_write_bytecode = True
import attnbench_peer
from attnbench_peer import Refusal


class Call:
    def __init__(self, problem, threads):
        try:
            import onnx
        except ImportError:
            raise Refusal("the Python module onnx, which writes the model, is not installed (make peers)") from None
        import numpy
        import onnxruntime

        self.numpy, self.onnx, self.runtime, self.problem = numpy, onnx, onnxruntime, problem
        if problem.dtype == "bf16":
            raise Refusal(f"onnxruntime {onnxruntime.__version__}: the CPU provider has no attention of bf16")
        self.element = onnx.TensorProto.FLOAT if problem.dtype == "f32" else onnx.TensorProto.FLOAT16
        self.dtype = numpy.float32 if problem.dtype == "f32" else numpy.float16
        p = problem
        if p.scale <= 0:  # 0 means "as usual" to two of the operators; the third takes neither
            raise Refusal(f"onnxruntime {onnxruntime.__version__}: the scale must be above 0")
        if p.full and p.group == 1 and p.softcap == 0 and p.dtype == "f32":
            self.operator, self.prepare = "MultiHeadAttention", self.multi_head
        elif p.S_q == 1 and p.full and p.S_kv > 1 and p.D == p.D_v and p.D % 8 == 0:
            self.operator, self.prepare = "GroupQueryAttention, cached keys", self.group_query_cached
        elif p.S_q == p.S_kv and self.lines_up() and p.D == p.D_v and p.D % 8 == 0:
            self.operator, self.prepare = "GroupQueryAttention", self.group_query
        else:
            self.operator, self.prepare = "Attention", self.attention
        if p.dtype == "f16" and p.large_scale:
            raise Refusal(f"onnxruntime {onnxruntime.__version__}: scores are rounded to f16, too coarse for this scale")
        blocked = self.operator != "Attention"
        self.orders = {name: "BSHD" if blocked else "BHSD" for name in ("q", "k", "v", "out")}
        if self.prepare == self.group_query_cached:
            self.orders.update(k="BHSD", v="BHSD")
        self.workspace_bytes = None
        self.source = f"onnxruntime {onnxruntime.__version__}, {self.operator}"
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        self.options.log_severity_level = 3
        self.session = None

    def lines_up(self):
        """The causal line of GroupQueryAttention, maybe with a window to the left of it."""
        p = self.problem
        return (p.right == 0 and not p.has_mask and not p.has_bias and all(diag == 0 for diag in p.diag) and
                all(length == p.S_kv for length in p.kv_len))

    def start(self, node_name, domain, inputs, outputs, attributes):
        """A session for a model of one node. inputs: name -> array or None where the operator is to go without."""
        onnx, helper = self.onnx, self.onnx.helper
        types = {"float32": onnx.TensorProto.FLOAT, "float16": onnx.TensorProto.FLOAT16, "int32": onnx.TensorProto.INT32,
                 "int64": onnx.TensorProto.INT64, "bool": onnx.TensorProto.BOOL}

        def described(arrays):
            return [helper.make_tensor_value_info(name, types[str(array.dtype)], array.shape)
                    for name, array in arrays.items() if array is not None]

        node = helper.make_node(node_name, [name if array is not None else "" for name, array in inputs.items()],
                                list(outputs), domain=domain, **attributes)
        graph = helper.make_graph([node], "attention", described(inputs), described(outputs))
        opsets = [helper.make_opsetid("", 23)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = min(model.ir_version, 11)
        try:
            self.session = self.runtime.InferenceSession(model.SerializeToString(), self.options,
                                                         providers=["CPUExecutionProvider"])
        except Exception as error:  # the module's own exceptions have no common class that it promises
            words = str(error).strip().split("\n")[0]
            raise Refusal(f"onnxruntime {self.runtime.__version__}: {words}") from None

    def bound(self, arrays_in, arrays_out):
        """Inputs and outputs bound to these arrays, nothing copied."""
        binding = self.session.io_binding()
        for bind, arrays in ((binding.bind_input, arrays_in), (binding.bind_output, arrays_out)):
            for name, array in arrays.items():
                if array is not None:
                    bind(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        return binding

    def bind(self, copy):
        name, domain, inputs, outputs, attributes = self.prepare(copy)
        if self.session is None:
            self.start(name, domain, inputs, outputs, attributes)
        binding = self.bound(inputs, outputs)
        run, session, keyless, out = self.session.run_with_iobinding, self.session, copy.keyless, copy.out
        logical = copy.logical("out")

        def step(kept=(inputs, outputs)):
            run(binding)
            if keyless is not None:
                logical[keyless] = 0

        return step

    def joined(self, array):
        """[B][S][H][D] as [B][S][H * D]."""
        return array.reshape(array.shape[0], array.shape[1], -1)

    def multi_head(self, copy):
        inputs = {name: self.joined(getattr(copy, name)) for name in ("q", "k", "v")}
        attributes = {"num_heads": self.problem.H, "scale": self.problem.scale}
        return "MultiHeadAttention", "com.microsoft", inputs, {"out": self.joined(copy.out)}, attributes

    def group_query_attributes(self):
        p = self.problem
        attributes = {"num_heads": p.H, "kv_num_heads": p.H_kv, "scale": p.scale}
        if p.softcap > 0:
            attributes["softcap"] = p.softcap
        if p.left is not None and p.left < p.S_kv:
            attributes["local_window_size"] = p.left
        return attributes

    def group_query(self, copy):
        numpy, p = self.numpy, self.problem
        inputs = {name: self.joined(getattr(copy, name)) for name in ("q", "k", "v")}
        inputs.update(past_key=None, past_value=None, seqlens_k=numpy.full(p.B, p.S_kv - 1, numpy.int32),
                      total_sequence_length=numpy.array([p.S_kv], numpy.int32))
        outputs = {"out": self.joined(copy.out),
                   "present_key": numpy.empty((p.B, p.H_kv, p.S_kv, p.D), self.dtype),
                   "present_value": numpy.empty((p.B, p.H_kv, p.S_kv, p.D), self.dtype)}
        return "GroupQueryAttention", "com.microsoft", inputs, outputs, self.group_query_attributes()

    def group_query_cached(self, copy):
        numpy, p = self.numpy, self.problem

        def last(cache):  # the newest key, which the operator itself writes to the end of the cache
            return numpy.ascontiguousarray(cache[:, :, -1:].transpose(0, 2, 1, 3)).reshape(p.B, 1, -1)

        inputs = {"q": self.joined(copy.q), "k": last(copy.k), "v": last(copy.v), "past_key": copy.k, "past_value": copy.v,
                  "seqlens_k": numpy.full(p.B, p.S_kv - 1, numpy.int32),
                  "total_sequence_length": numpy.array([p.S_kv], numpy.int32)}
        outputs = {"out": self.joined(copy.out), "present_key": copy.k, "present_value": copy.v}
        return "GroupQueryAttention", "com.microsoft", inputs, outputs, self.group_query_attributes()

    def attention(self, copy):
        numpy, p = self.numpy, self.problem
        inputs = {"q": copy.q, "k": copy.k, "v": copy.v}
        attributes = {"scale": p.scale}
        if p.softcap > 0:
            attributes["softcap"] = p.softcap
        if p.top_left:
            attributes["is_causal"] = 1
        elif copy.bias is not None:
            inputs["attn_mask"] = self.whole(copy.additive().astype(self.dtype))
        elif copy.allowed is not None:
            inputs["attn_mask"] = self.whole(copy.allowed)
        return "Attention", "", inputs, {"out": copy.out}, attributes

    def whole(self, mask):
        """Repeated over queries and keys; batch entries and heads the operator repeats itself."""
        p = self.problem
        return self.numpy.ascontiguousarray(self.numpy.broadcast_to(mask, (*mask.shape[:2], p.S_q, p.S_kv)))

    def close(self):
        self.session = None


attnbench_peer.serve({"name": "onnxruntime", "dtypes": ["f32", "f16"],
                      "summary": "ONNX Runtime: MultiHeadAttention, GroupQueryAttention, Attention"}, "onnxruntime", Call)
