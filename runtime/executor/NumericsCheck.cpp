//===- NumericsCheck.cpp - --check-numerics -------------------------------===//
#include "runtime/executor/NumericsCheck.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "kernels/BFloat16.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

double elementAt(const std::byte *bytes, DType dtype, uint64_t index) noexcept {
  if (dtype == DType::F32) {
    float value;
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return value;
  }
  if (dtype == DType::BF16) {
    BFloat16 value;
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return float(value);
  }
  double value;
  std::memcpy(&value, bytes + index * sizeof value, sizeof value);
  return value;
}

/// "[3, 17]", without allocating.
void formatIndex(uint64_t flat, const Shape &shape, std::span<char> text) noexcept {
  std::array<uint64_t, 16> index{};
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % uint64_t(shape[i]);
    flat /= uint64_t(shape[i]);
  }
  size_t used = size_t(std::snprintf(text.data(), text.size(), "["));
  for (size_t i = 0; i < shape.size() && used + 24 < text.size(); ++i)
    used += size_t(std::snprintf(text.data() + used, text.size() - used, "%s%llu", i > 0 ? ", " : "",
                                 static_cast<unsigned long long>(index[i])));
  std::snprintf(text.data() + used, text.size() - used, "]");
}

class NumericsCheckedTask final : public Task {
public:
  NumericsCheckedTask(const CommandContext &context, const plan::proto::Command &command, std::string where,
                      Task &inner)
      : rank_(context.position.rank), where_(std::move(where)), inner_(inner) {
    for (const plan::proto::Operand &operand : command.kernel().operands())
      if (isFloat(DType(operand.dtype())) &&
          (operand.access() == plan::proto::Operand::WRITE || operand.access() == plan::proto::Operand::READ_WRITE))
        written_.push_back({context.storage.operand(operand), Shape(operand.shape().begin(), operand.shape().end()),
                            DType(operand.dtype()), context.role.buffers(int(operand.buffer())).name()});
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    if (Status status = inner_.run(call, queue); !status.ok())
      return status;
    for (const Written &written : written_)
      if (Status status = look(written, call, queue); !status.ok())
        return status;
    return Status::success();
  }

private:
  struct Written {
    Address address;
    Shape shape;
    DType dtype;
    std::string name;
  };

  Status look(const Written &written, const Call &call, Queue &queue) const noexcept {
    const std::byte *bytes = written.address.at(call.microbatch);
    const auto elements = uint64_t(elementCount(written.shape));
    if (Status status = queue.look(bytes, elements * uint64_t(byteSize(written.dtype))); !status.ok())
      return status;
    for (uint64_t i = 0; i < elements; ++i) {
      const double value = elementAt(bytes, written.dtype, i);
      if (std::isfinite(value))
        continue;
      std::array<char, 160> index;
      formatIndex(i, written.shape, index);
      return Status::failure("rank %u, %s: --check-numerics: in micro-batch %llu it wrote %s at %s of %s", rank_,
                             where_.c_str(), static_cast<unsigned long long>(call.microbatch),
                             std::isnan(value) ? "NaN"
                             : value < 0       ? "-infinity"
                                               : "infinity",
                             index.data(), written.name.empty() ? "its result" : written.name.c_str());
    }
    return Status::success();
  }

  const uint32_t rank_;
  const std::string where_;
  Task &inner_;
  std::vector<Written> written_;
};

} // namespace

std::unique_ptr<Task> checkNumerics(const CommandContext &context, const plan::proto::Command &command,
                                    const std::string &where, Task &inner) {
  return std::make_unique<NumericsCheckedTask>(context, command, where, inner);
}

} // namespace ds::runtime
