#!/usr/bin/env python3
"""plant_faults.py SOURCES OUT: copies of kernels with faults, each behind a condition, and OUT/Planted.h with the names.

An edit is (name, file, a text that stands in the file once, what takes its place); FAULT is whether this fault is at work."""

import sys
from pathlib import Path

REDUCE, LAYER, CUMSUM, GATHER = "kernels/cuda/Reduce.cuh", "kernels/norm/layer_norm.cu", "kernels/index/cumsum.cu", "kernels/index/gather_grad.cu"
NORM_ROW = "kernels/norm/norm_row.cuh"
TOP_K, ADAMW = "kernels/index/top_k.cu", "kernels/optimizer/adamw.cu"

EDITS = [
    ("barrierMissingBehindAWrite", REDUCE, "  __syncthreads();\n  value = thread", "  if (!FAULT) __syncthreads();\n  value = thread"),
    ("barrierMissingBeforeReuse", REDUCE, "  __syncthreads(); // of an earlier call", "  if (!FAULT) __syncthreads(); // of an earlier call"),
    ("wordNeverWritten", REDUCE, "value = thread % warpThreads < warps ? partial", "value = FAULT || thread % warpThreads < warps ? partial"),
    ("warpOfSixteen", REDUCE, "int distance = warpThreads / 2;", "int distance = warpThreads / (FAULT ? 4 : 2);"),
    ("tailOutOfBounds", NORM_ROW, "packs_(cols / width)", "packs_(cols / width + FAULT)"),
    ("shuffleUnderDivergence", LAYER, "const S mean = blockSum(sum) / S(cols);", "const S mean = (FAULT && threadIdx.x < 16 ? sum : blockSum(sum)) / S(cols);"),
    ("wrongStride", NORM_ROW, "pack += blockDim.x)", "pack += blockDim.x * (1 + FAULT))"),
    ("wrongRow", LAYER, "own(x + row * cols, cols,", "own(x + row * (FAULT ? 1 : cols), cols,"),
    ("keptPackPastTheRow", NORM_ROW, "pack < packs_)\n        own_[k]", "pack < packs_ + FAULT)\n        own_[k]"),
    ("allStatisticsIntoOne", LAYER, "means[row] = mean;", "means[FAULT ? 0 : row] = mean;"),
    ("barrierMissingInAScan", CUMSUM, "        from = 1 - from;\n        __syncthreads();", "        from = 1 - from;\n        if (!FAULT) __syncthreads();"),
    ("barrierMissingBeforeTheNextChunk", CUMSUM, "__syncthreads(); // before sums", "if (!FAULT) __syncthreads(); // before sums"),
    ("carryForgotten", CUMSUM, "carried += sums[from]", "carried = (FAULT ? Running<T>(0) : carried) + sums[from]"),
    ("zeroMissing", GATHER, "sums[row][threadIdx.x % tileCols] = 0;", "if (!FAULT) sums[row][threadIdx.x % tileCols] = 0;"),
    ("raceBetweenWarps", GATHER, "    ends[warp] = inclusive;\n  __syncthreads();", "    ends[warp] = inclusive;\n  if (!FAULT) __syncthreads();"),
    ("laneAddsItself", GATHER, "if (lane >= distance)", "if (FAULT || lane >= distance)"),
    ("listReadTooEarly", GATHER, "        }\n      __syncthreads();", "        }\n      if (!FAULT) __syncthreads();"),
    ("elementsOfTwoThreads", GATHER, "% (blockThreads / tileCols) == half)", "% (blockThreads / tileCols) == (FAULT ? 0 : half))"),
    ("treeWithoutBarriers", TOP_K, "half > 0; half /= 2) {\n        __syncthreads();", "half > 0; half /= 2) {\n        if (!FAULT) __syncthreads();"),
    ("barrierMissingBetweenFinds", TOP_K, "__syncthreads(); // before found", "if (!FAULT) __syncthreads(); // before found"),
    ("returnBeforeABarrier", "kernels/norm/norm_grad.cuh", "S sum = 0;\n  if (col < cols)", "S sum = 0;\n  if (FAULT && col >= cols)\n    return;\n  if (col < cols)"),
    ("sumsOfRowsInOnePlace", "kernels/norm/norm_grad.cuh", "partial[call % 2]", "partial[FAULT ? 0 : call % 2]"),
    ("vectorPastTheEnd", ADAMW, "packed ? elements / width : 0", "packed ? (elements + (FAULT ? width - 1 : 0)) / width : 0"),
    ("vectorAtAnOddAddress", ADAMW, "reinterpret_cast<const Pack<G, width> *>(g)[i];", "reinterpret_cast<const Pack<G, width> *>(g + FAULT)[i];"),
    ("coefficientsReadTooEarly", ADAMW, "numbers.beta1);\n  __syncthreads();", "numbers.beta1);\n  if (!FAULT) __syncthreads();"),
    ("allRowsIntoOne", "kernels/reduce/softmax.cu", "y[row * length + i] = narrow", "y[(FAULT ? 0 : row) * length + i] = narrow"),
    ("drawsPastTheEnd", "kernels/random/dropout.cu", "i < elements) {", "FAULT || i < elements) {"),
]


def main():
    sources, out = Path(sys.argv[1]), Path(sys.argv[2])
    texts = {}
    for name, file, text, faulty in EDITS:
        texts.setdefault(file, (sources / file).read_text())
        if texts[file].count(text) != 1:
            sys.exit(f"error: plant_faults.py: '{text}' stands {texts[file].count(text)} times in {file}, but once is needed for {name}")
        texts[file] = texts[file].replace(text, faulty.replace("FAULT", f"(shim::planted == shim::{name})"))
    for file, text in texts.items():
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (out / file).write_text(text)
    names = ", ".join(name for name, *_ in EDITS)
    (out / "Planted.h").write_text(f"#pragma once\n\nnamespace shim {{\n\nenum Planted : int {{ none, {names}, plantedEnd }};\n"
                                   "extern Planted planted; // the fault that is at work\n\n} // namespace shim\n")


if __name__ == "__main__":
    main()
