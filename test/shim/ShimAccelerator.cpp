#include "test/shim/ShimAccelerator.h"

#include "test/shim/Machine.h"
#include "test/shim/cudnn_frontend.h"

#include <cstdlib>
#include <cstring>

namespace ds::kernels::test {

namespace {

/// All that tells a call from another.
std::string describe(const Invocation &invocation) {
  std::string text;
  for (const TensorType &operand : invocation.operands)
    text += std::string(name(operand.dtype)) + toString(operand.shape) + " ";
  for (const auto &[attribute, value] : invocation.attributes)
    text += attribute + "=" +
            std::visit(
                [](const auto &v) {
                  using V = std::decay_t<decltype(v)>;
                  std::string words;
                  if constexpr (std::is_same_v<V, std::string>)
                    words = v;
                  else if constexpr (std::is_arithmetic_v<V>)
                    words = std::to_string(v);
                  else
                    for (auto x : v)
                      words += std::to_string(x) + ",";
                  return words;
                },
                value) +
            " ";
  return text;
}

} // namespace

Status ShimAccelerator::run(const Invocation &invocation, std::vector<Buffer> &operands, CallContext context,
                            std::optional<Over> over) {
  const Factory factory = kernels_.find(invocation.kernel);
  if (!factory)
    throw Error("no kernel '" + invocation.kernel + "'");
  const std::unique_ptr<Kernel> kernel = factory(invocation, {});
  std::vector<void *> addresses;
  for (const Buffer &operand : operands) {
    const bool isShifted = !only_ || *only_ == addresses.size();
    const size_t bytes = size_t(byteSize(operand.type.dtype)), shift = bytes > 1 && isShifted ? shift_ * bytes : 0;
    addresses.push_back(shim::allocate(shift + operand.storageBytes(), shift + operand.bytes()) + shift);
    std::memcpy(addresses.back(), operand.data(), operand.storageBytes());
  }
  if (over)
    addresses[over->result] = addresses[over->operand];
  auto *step = reinterpret_cast<uint64_t *>(shim::allocate(sizeof(uint64_t), sizeof(uint64_t)));
  auto *refused = reinterpret_cast<RefusedValue *>(shim::allocate(sizeof(RefusedValue), sizeof(RefusedValue)));
  *step = context.step;
  *refused = {};
  const Stream stream{nullptr, step, refused};
  context.stream = &stream;
  shim::setOrder(runs_++ % 3);
  const int64_t before = shim::counts().accesses;
  const auto runsOfCudnn = shim::cudnnRuns();
  Status status = kernel->execute(context, addresses);
  lastAccesses_ = shim::counts().accesses - before;
  const RefusedValue value = *refused;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::memcpy(operands[i].data(), addresses[i], operands[i].storageBytes());
    EXPECT_TRUE(operands[i].guardIntact()) << invocation.kernel << " wrote past the end of operand " << i;
  }
  shim::releaseAll();
  if (!status.ok())
    return status;
  Ran &own = (shim::cudnnRuns() == runsOfCudnn ? ran : ranByCudnn)[invocation.kernel];
  own.calls.insert(describe(invocation));
  own.types.insert(std::string(name(invocation.operands[0].dtype)));
  return value.caller != 0 ? kernel->refusal(value.value) : status;
}

WithCudnn::WithCudnn(bool has) {
  if (const char *before = std::getenv("DS_FAKE_CUDNN"))
    before_ = before;
  ::setenv("DS_FAKE_CUDNN", has ? "1" : "0", 1);
}
WithCudnn::~WithCudnn() { ::setenv("DS_FAKE_CUDNN", before_.c_str(), 1); }

} // namespace ds::kernels::test
