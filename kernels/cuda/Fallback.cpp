#include "kernels/cuda/Fallback.h"

#include "core/DType.h"
#include "core/Environment.h"
#include "core/Error.h"
#include "core/Shape.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace ds::kernels::cuda {

namespace {

std::mutex mutex;
std::map<std::string, int64_t> counted;

/// How often it has been counted, with this time.
int64_t count(const std::string &what) {
  const std::lock_guard lock(mutex);
  return ++counted[what];
}

} // namespace

void fallBack(const Invocation &invocation, const char *library, const std::string &refusal) {
  const TensorType &first = invocation.operands.front();
  const std::string what = "kernel '" + invocation.kernel + "' in " + std::string(name(first.dtype));
  const bool isNew = count(what) == 1;
  const std::string why =
      std::string(library) + " " + refusal + ", first for an operand of shape " + toString(first.shape);
  if (isStrict())
    throw Error(what + ": " + why + "; without DS_CUDA_STRICT=1 our own slower kernel runs it");
  if (isNew)
    std::fprintf(stderr, "note: %s is run by our own slower kernel: %s\n", what.c_str(), why.c_str());
}

bool isStrict() { return readSwitch("DS_CUDA_STRICT", false); }

int64_t fallbacks() {
  int64_t sum = 0;
  for (const auto &[what, times] : fallbacksByKernel())
    sum += times;
  return sum;
}

std::map<std::string, int64_t> fallbacksByKernel() {
  const std::lock_guard lock(mutex);
  return counted;
}

} // namespace ds::kernels::cuda
