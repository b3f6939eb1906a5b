//===- EmulatedCode.h - compiled programs of `elementwise`, as PTX on the host ------===//
#pragma once

#include "test/unit/kernels/Harness.h"

#include <cstdint>
#include <vector>

namespace ds::codegen::test {

/// Compiles the call to PTX and runs the text by kernels/ptx, every access against the operands.
void runPtx(const kernels::Invocation &, const std::vector<uint64_t> &alignments,
            const std::vector<kernels::test::Buffer *> &operands);

} // namespace ds::codegen::test
