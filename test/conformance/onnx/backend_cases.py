#!/usr/bin/env python3
"""Writes the node cases of the onnx package's own backend tests whose models have an opset from 19 to 25, and those of LATER, as
libonnx-testdata has its.

    build/venv/bin/python test/conformance/onnx/backend_cases.py FOLDER

Then `build/dev/bin/run_onnx_cases FOLDER` prints a line for each.
"""

import sys
import warnings
from pathlib import Path

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

OPSETS = range(19, 26)
LATER = ("CausalConvWithState", "LinearAttention", "Range")  # of opset 27


def opset_of(model) -> int:
    return max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)


def serialized(value, name) -> bytes:
    if isinstance(value, onnx.TensorProto):
        named = onnx.TensorProto()
        named.CopyFrom(value)
        named.name = name
        return named.SerializeToString()
    if value is None:
        return numpy_helper.from_optional(None, name).SerializeToString()
    if isinstance(value, list):
        return numpy_helper.from_list(value, name).SerializeToString()
    return numpy_helper.from_array(numpy.asarray(value), name).SerializeToString()


def cases():
    """(name, operator, opset, case); the operator of a case that writes a function out is the function."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        every = collect_testcases()
    operators = {case.name: case.model.graph.node[0].op_type for case in every if len(case.model.graph.node) == 1}
    for case in every:
        opset = opset_of(case.model)
        operator = operators.get(case.name.partition("_expanded")[0])
        if opset in OPSETS or opset == 27 and operator in LATER:
            yield case.name, operator, opset, case


def write(folder: Path) -> dict:
    """The operator and opset of each case."""
    written = {}
    for name, operator, opset, case in cases():
        data = folder / name / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(case.model, folder / name / "model.onnx")
        inputs, outputs = case.data_sets[0]
        for kind, infos, values in (("input", case.model.graph.input, inputs), ("output", case.model.graph.output, outputs)):
            for i, (info, value) in enumerate(zip(infos, values, strict=True)):
                (data / f"{kind}_{i}.pb").write_bytes(serialized(value, info.name))
        written[name] = (operator, opset)
    return written


if __name__ == "__main__":
    print(len(write(Path(sys.argv[1]))), "cases")
