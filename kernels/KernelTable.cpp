#include "kernels/KernelTable.h"

#include "kernels/Call.h"
#include "kernels/Factors.h"
#include "kernels/KernelRows.h"
#include "kernels/WidenedCall.h"

#include <algorithm>

namespace ds::kernels {

// The functions that the rows name. They are beside their kernels, in <op>_costs.cpp.
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  CheckOf check;                                                                                                       \
  FactorsOf factors;                                                                                                   \
  WorkspaceOf cpuWorkspace, cudaWorkspace;                                                                             \
  FlopsOf flops;
#include "kernels/Kernels.inc"
#undef DS_KERNEL
FlopsOf attentionRepeatedFlops;

void rowSaysAll(const Call &, Device) {}
int64_t noWorkspace(const CallTypes &, const WorkspaceLimits &) { return 0; }
double noFlops(const CallTypes &) { return 0; }

namespace {

struct Functions {
  CheckOf *check;
  FactorsOf *factors;
  WorkspaceOf *cpuWorkspace, *cudaWorkspace;
  FlopsOf *flops;
};

constexpr Functions kernelFunctions[] = {
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  {check, factors, cpuWorkspace, cudaWorkspace, flops},
#include "kernels/Kernels.inc"
#undef DS_KERNEL
};

const Functions &functionsOf(const KernelRow &row) { return kernelFunctions[&row - kernelRows]; }

} // namespace

const KernelRow *findKernel(std::string_view name) { return rowNamed(name); }

std::span<const KernelRow> allKernels() { return kernelRows; }

void requireCall(const Invocation &invocation, Device device) {
  const Call call(invocation);
  if (device != Device::Cpu || !isWidened(invocation))
    return functionsOf(call.row()).check(call, device);
  WidenedCall widened(invocation); // the kernel gets float32 copies, and the workspace that they leave
  widened.leaveRestOf(call.workspace().bytes);
  functionsOf(call.row()).check(Call(widened.call), device);
}

FactorMap factorsOf(const Invocation &invocation) {
  const Call call(invocation);
  FactorWriter writer(call);
  functionsOf(call.row()).factors(writer);
  return std::move(writer.map);
}

int64_t workspaceBytes(const Invocation &invocation, const WorkspaceLimits &limits) {
  const KernelRow *row = findKernel(invocation.kernel);
  if (!row)
    return 0;
  if (limits.device == Device::Cuda)
    return functionsOf(*row).cudaWorkspace(CallTypes(invocation), limits);
  if (!isWidened(invocation))
    return functionsOf(*row).cpuWorkspace(CallTypes(invocation), limits);
  const WidenedCall widened(invocation);
  return widened.bytes + functionsOf(*row).cpuWorkspace(CallTypes(widened.call), limits);
}

double flopsOf(std::string_view kernel, const CallTypes &call) {
  const KernelRow *row = findKernel(kernel);
  return row ? functionsOf(*row).flops(call) : 0;
}

bool isProduct(std::string_view kernel) {
  const KernelRow *row = findKernel(kernel);
  return row && (functionsOf(*row).flops == matmulFlops || functionsOf(*row).flops == linearWeightGradFlops);
}

bool isAttention(std::string_view kernel) {
  const KernelRow *row = findKernel(kernel);
  return row && (functionsOf(*row).flops == attentionFlops || functionsOf(*row).flops == attentionGradFlops);
}

double repeatedFlopsOf(std::string_view kernel, const CallTypes &call) {
  const KernelRow *row = findKernel(kernel);
  return row && functionsOf(*row).flops == attentionGradFlops ? attentionRepeatedFlops(call) : 0;
}

double untouchedBytes(std::string_view kernel, const CallTypes &call) {
  const std::string_view source = kernel == "slice"                                   ? "x"
                                  : kernel == "gather" || kernel == "gather_elements" ? "data"
                                                                                      : "";
  if (source.empty())
    return 0;
  const int64_t untouched = call.elements(source) - call.elements("y");
  return double(std::max<int64_t>(untouched, 0)) * double(byteSize(call[source].dtype));
}

//===-- CallTypes ----------------------------------------------------------===//

CallTypes::CallTypes(const Invocation &invocation) : invocation_(&invocation) {
  const CallLayout layout(invocation);
  for (size_t i = 0; i < layout.size(); ++i)
    add(layout[i].name, invocation.operands[i]);
  const auto causal = invocation.attributes.find("causal");
  isCausal_ = causal != invocation.attributes.end() && causal->second == AttributeValue(int64_t(1));
}

CallTypes::CallTypes(const KernelRow &row, std::span<const TensorType> reads, std::span<const TensorType> writes,
                     bool isCausal)
    : isCausal_(isCausal) {
  for (const bool written : {false, true}) {
    const std::span<const TensorType> types = written ? writes : reads;
    const auto isMissing = [&](const OperandRow &operand) {
      return operand.isWritten() == written && operand.presence == Presence::Always && !operand.repeated;
    };
    size_t left = size_t(std::count_if(row.operands.begin(), row.operands.end(), isMissing)), next = 0;
    for (const OperandRow &operand : row.operands) {
      if (operand.isWritten() != written || next == types.size())
        continue;
      const bool open = !isMissing(operand);
      if (open && types.size() - next <= left)
        continue; // the rest is needed by others
      left -= open ? 0 : 1;
      do
        add(operand.name, types[next++]);
      while (operand.repeated && types.size() - next > left);
    }
  }
}

const TensorType &CallTypes::operator[](std::string_view name) const {
  static const TensorType empty{DType::F32, {0}};
  for (const auto &[known, type] : operands_)
    if (known == name)
      return *type;
  return empty;
}

CallTypes CallTypes::withoutCausal() const {
  CallTypes all = *this;
  all.isCausal_ = false;
  return all;
}

int64_t CallTypes::dim(std::string_view name, int d) const {
  const Shape &shape = (*this)[name].shape;
  const auto rank = int(shape.size());
  const int index = d < 0 ? d + rank : d;
  return index < 0 || index >= rank ? 0 : shape[size_t(index)];
}

bool CallTypes::isEmpty() const {
  return std::ranges::any_of(operands_, [](const auto &operand) { return elementCount(operand.second->shape) == 0; });
}

} // namespace ds::kernels
