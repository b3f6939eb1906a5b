//===- NumericsCheck.cpp - --check-numerics -------------------------------===//
#include "runtime/executor/NumericsCheck.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "kernels/Numbers.h"
#include "runtime/device/Task.h"
#include "runtime/executor/WriteObserver.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

double elementAt(const std::byte *bytes, DType dtype, uint64_t index) noexcept {
  if (dtype == DType::F32) {
    float value;
    std::memcpy(&value, bytes + index * sizeof value, sizeof value);
    return value;
  }
  if (isNarrowFloat(dtype))
    return kernels::withNarrowFloat(dtype, [&](auto value) {
      std::memcpy(&value, bytes + index * sizeof value, sizeof value);
      return double(value);
    });
  double value;
  std::memcpy(&value, bytes + index * sizeof value, sizeof value);
  return value;
}

/// What masks are made of.
bool masks(double value) noexcept {
  constexpr double leastFloat = std::numeric_limits<float>::lowest(), leastBfloat16 = -0x1.FEp127, leastHalf = -65504;
  return std::isinf(value) || value == leastFloat || value == leastBfloat16 || value == leastHalf ||
         value == std::numeric_limits<double>::lowest();
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

class NumericsObserver final : public WriteObserver {
public:
  explicit NumericsObserver(const ObservedCommand &command) : rank_(command.position.rank), where_(command.where) {
    for (const plan::proto::Operand *operand : command.written)
      written_.push_back({Shape(operand->shape().begin(), operand->shape().end()), DType(operand->dtype()),
                          command.role.buffers(int(operand->buffer())).name()});
    for (const plan::proto::Operand *operand : command.read)
      read_.push_back({Shape(operand->shape().begin(), operand->shape().end()), DType(operand->dtype()), ""});
    for (const plan::proto::Attribute &attribute : command.command().kernel().attributes())
      hasMask_ |= masks(attribute.number()) || std::ranges::any_of(attribute.numbers().values(), masks);
  }

  bool looksBefore() const noexcept override { return !hasMask_; }

  void reads(const Call &, size_t index, const std::byte *bytes) noexcept override {
    if (index == 0)
      readsMask_ = false;
    const Written &read = read_[index];
    const auto elements = uint64_t(elementCount(read.shape));
    for (uint64_t i = 0; i < elements && !readsMask_ && isFloat(read.dtype); ++i)
      readsMask_ = masks(elementAt(bytes, read.dtype, i));
  }

  Status wrote(const Call &call, size_t index, const std::byte *bytes) noexcept override {
    const Written &written = written_[index];
    const auto elements = uint64_t(elementCount(written.shape));
    for (uint64_t i = 0; i < elements && isFloat(written.dtype); ++i) {
      const double value = elementAt(bytes, written.dtype, i);
      if (std::isfinite(value) || (std::isinf(value) && (hasMask_ || readsMask_)))
        continue;
      std::array<char, 160> position;
      formatIndex(i, written.shape, position);
      return Status::failure("rank %u, %s: --check-numerics: in micro-batch %llu it wrote %s at %s of %s", rank_,
                             where_.c_str(), static_cast<unsigned long long>(call.microbatch),
                             std::isnan(value) ? "NaN"
                             : value < 0       ? "-infinity"
                                               : "infinity",
                             position.data(), written.name.empty() ? "its result" : written.name.c_str());
    }
    return Status::success();
  }

private:
  struct Written {
    Shape shape;
    DType dtype;
    std::string name;
  };

  const uint32_t rank_;
  const std::string where_;
  std::vector<Written> written_, read_;
  bool hasMask_ = false, readsMask_ = false; // in its attributes; in what the command under way reads
};

} // namespace

std::unique_ptr<WriteObserver> NumericsCheck::observerOf(const ObservedCommand &command) {
  return command.command().has_kernel() ? std::make_unique<NumericsObserver>(command) : nullptr;
}

} // namespace ds::runtime
