#include "runtime/plan/run/Invocations.h"

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

namespace ds::plan {

namespace {

kernels::AttributeValue valueOf(const proto::Attribute &attribute) {
  switch (attribute.value_case()) {
  case proto::Attribute::kInteger:
    return attribute.integer();
  case proto::Attribute::kNumber:
    return attribute.number();
  case proto::Attribute::kText:
    return attribute.text();
  case proto::Attribute::kIntegers:
    return std::vector<int64_t>(attribute.integers().values().begin(), attribute.integers().values().end());
  case proto::Attribute::kNumbers:
    return std::vector<double>(attribute.numbers().values().begin(), attribute.numbers().values().end());
  case proto::Attribute::VALUE_NOT_SET:
    break;
  }
  return int64_t(0); // PlanReader refuses attributes without a value
}

} // namespace

kernels::Invocation invocationOf(const proto::KernelCommand &kernel) {
  kernels::Invocation result{.kernel = kernel.kernel(), .operands = {}, .attributes = {}};
  for (const proto::Operand &operand : kernel.operands())
    result.operands.push_back({DType(operand.dtype()), Shape(operand.shape().begin(), operand.shape().end())});
  for (const proto::Attribute &attribute : kernel.attributes())
    result.attributes.emplace(attribute.name(), valueOf(attribute));
  return result;
}

kernels::Invocation invocationOf(const proto::Plan &plan, const proto::KernelCommand &kernel, uint32_t rank) {
  kernels::Invocation result = invocationOf(kernel);
  for (const proto::Attribute &attribute : kernel.attributes())
    for (const proto::RankSteps &steps : attribute.integers().rank_steps()) {
      auto &values = std::get<Shape>(result.attributes.find(attribute.name())->second);
      const auto coordinate = int64_t(Group(plan, steps.communicator()).coordinate(rank));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] += coordinate * steps.values(int(i));
    }
  if (kernel.has_code()) {
    const proto::DeviceCode &code = plan.codes(int(kernel.code()));
    result.code = {.name = code.name(), .text = code.text(), .blocks = code.blocks(), .threads = code.threads()};
  }
  if (kernel.has_algorithm()) {
    const proto::Tuning &tuning = plan.tuning();
    result.algorithm = {
        .gpu = tuning.gpu(), .version = tuning.cublaslt(), .bytes = tuning.algorithms(int(kernel.algorithm()))};
  }
  return result;
}

} // namespace ds::plan
