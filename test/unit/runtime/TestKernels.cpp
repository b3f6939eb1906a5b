//===- TestKernels.cpp - kernels small enough to see through --------------===//
#include "test/unit/runtime/TestKernels.h"

#include "core/Error.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

namespace ds::test {
namespace {

using kernels::CallContext;
using Operands = std::span<void *const>;
using Function = Status (*)(const kernels::Invocation &, const CallContext &, Operands) noexcept;

class FunctionKernel final : public kernels::Kernel {
public:
  FunctionKernel(kernels::Invocation invocation, Function function)
      : invocation_(std::move(invocation)), function_(function) {}
  Status execute(const CallContext &context, Operands operands) noexcept override {
    return function_(invocation_, context, operands);
  }

private:
  const kernels::Invocation invocation_;
  const Function function_;
};

template <Function function, size_t operandCount>
std::unique_ptr<kernels::Kernel> make(const kernels::Invocation &invocation, const kernels::BuildOptions &) {
  if (invocation.operands.size() != operandCount)
    throw Error("it has " + std::to_string(invocation.operands.size()) + " operands, not " +
                std::to_string(operandCount));
  return std::make_unique<FunctionKernel>(invocation, function);
}

int64_t countOf(const kernels::Invocation &invocation, size_t operand) {
  return elementCount(invocation.operands[operand].shape);
}

Status sum(const kernels::Invocation &invocation, const CallContext &, Operands operands) noexcept {
  float total = 0;
  for (int64_t i = 0; i < countOf(invocation, 0); ++i)
    total += static_cast<const float *>(operands[0])[i];
  *static_cast<float *>(operands[1]) = total;
  return Status::success();
}

Status accumulate(const kernels::Invocation &invocation, const CallContext &, Operands operands) noexcept {
  for (int64_t i = 0; i < countOf(invocation, 1); ++i)
    static_cast<float *>(operands[1])[i] += static_cast<const float *>(operands[0])[i];
  return Status::success();
}

Status subtract(const kernels::Invocation &invocation, const CallContext &, Operands operands) noexcept {
  for (int64_t i = 0; i < countOf(invocation, 1); ++i)
    static_cast<float *>(operands[1])[i] -= static_cast<const float *>(operands[0])[i];
  return Status::success();
}

Status context(const kernels::Invocation &, const CallContext &call, Operands operands) noexcept {
  auto *out = static_cast<int64_t *>(operands[0]);
  out[0] = int64_t(call.seed);
  out[1] = int64_t(call.step);
  out[2] = int64_t(call.microbatch);
  return Status::success();
}

Status spread(const kernels::Invocation &invocation, const CallContext &call, Operands operands) noexcept {
  auto *out = static_cast<int64_t *>(operands[0]);
  kernels::parallelFor(call, countOf(invocation, 0), [out](int64_t piece, int) { out[piece] = piece; });
  return Status::success();
}

Status wobble(const kernels::Invocation &, const CallContext &call, Operands operands) noexcept {
  const uint64_t mixed =
      (reinterpret_cast<uintptr_t>(operands[0]) / 64 + call.microbatch * 7 + call.step) * 0x9E3779B97F4A7C15u >> 56;
  std::this_thread::sleep_for(std::chrono::microseconds(mixed));
  return Status::success();
}

Status fail(const kernels::Invocation &, const CallContext &, Operands) noexcept {
  return Status::failure("the test asked for it");
}

Status poke(const kernels::Invocation &, const CallContext &, Operands operands) noexcept {
  volatile auto *bytes = static_cast<char *>(operands[0]);
  for (int i = 0; i < 2 * 4096; i += 512)
    bytes[i] = 1;
  return Status::success();
}

Status nan(const kernels::Invocation &, const CallContext &, Operands operands) noexcept {
  static_cast<float *>(operands[0])[1] = std::nanf("");
  return Status::success();
}

} // namespace

const kernels::KernelRegistry &testKernels() {
  static const kernels::KernelRegistry registry = [] {
    kernels::KernelRegistry built;
    built.add("sum", make<sum, 2>);
    built.add("accumulate", make<accumulate, 2>);
    built.add("subtract", make<subtract, 2>);
    built.add("context", make<context, 1>);
    built.add("spread", make<spread, 1>);
    built.add("wobble", make<wobble, 1>);
    built.add("fail", make<fail, 1>);
    built.add("poke", make<poke, 1>);
    built.add("nan", make<nan, 1>);
    return built;
  }();
  return registry;
}

} // namespace ds::test
