#include "kernels/cuda/Fallback.h"

#include "core/DType.h"
#include "core/Environment.h"
#include "core/Error.h"
#include "core/Shape.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace ds::kernels::cuda {

namespace {

std::atomic<int64_t> count{0};

/// Whether it is the first call of the kernel and its type.
bool isNew(const std::string &what) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  return said.insert(what).second;
}

} // namespace

void fallBack(const Invocation &invocation, const char *library, const std::string &refusal) {
  ++count;
  const TensorType &first = invocation.operands.front();
  const std::string what = "kernel '" + invocation.kernel + "' in " + std::string(name(first.dtype));
  const std::string why =
      std::string(library) + " " + refusal + ", first for an operand of shape " + toString(first.shape);
  if (isStrict())
    throw Error(what + ": " + why + "; without DS_CUDA_STRICT=1 our own slower kernel runs it");
  if (isNew(what))
    std::fprintf(stderr, "note: %s is run by our own slower kernel: %s\n", what.c_str(), why.c_str());
}

bool isStrict() { return readSwitch("DS_CUDA_STRICT", false); }

int64_t fallbacks() { return count; }

} // namespace ds::kernels::cuda
