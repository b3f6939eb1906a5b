//===- HostCode.h - compiled programs of `elementwise`, run on the host ------===//
#pragma once

#include "compiler/codegen/ElementwiseCode.h"
#include "test/unit/kernels/Harness.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace ds::codegen::test {

/// The code of one call, compiled for this processor: the same IR as for a GPU, but for the numbers of block and thread
/// and the instruction that rounds to bfloat16.
class HostCode {
public:
  HostCode(const kernels::Invocation &, const std::vector<uint64_t> &alignments);
  ~HostCode();

  bool exists() const { return function_ != 0; }
  /// Every thread of every block, one after another.
  void run(const std::vector<kernels::test::Buffer *> &operands) const;

private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  uint64_t function_ = 0;
  int64_t blocks_ = 0;
};

} // namespace ds::codegen::test
