//===- Harness.h - runs kernels and compares them with their references ---===//
#pragma once

#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "kernels/KernelTable.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ds::kernels::test {

/// Workers that wait for pieces; allocates nothing once made.
class Workers : public Parallel {
public:
  explicit Workers(int count);
  ~Workers() override;

  int workers() const override { return int(threads_.size()) + 1; }
  void run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept override;

private:
  void serve(int worker);
  void takePieces(int worker) noexcept;

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t round_ = 0;
  int active_ = 0, limit_ = 0;
  int64_t pieces_ = 0, next_ = 0;
  Body body_ = nullptr;
  void *state_ = nullptr;
  bool stop_ = false;
};

/// The memory of one operand, 64-byte aligned, followed by guard bytes that nothing may touch.
class Buffer {
public:
  explicit Buffer(TensorType type);
  template <typename T> Buffer(TensorType type, const std::vector<T> &values) : Buffer(std::move(type)) {
    EXPECT_EQ(int64_t(values.size()), elementCount(this->type.shape));
    std::copy(values.begin(), values.end(), as<T>());
  }

  template <typename T> T *as() { return reinterpret_cast<T *>(data()); }
  template <typename T> const T *as() const { return reinterpret_cast<const T *>(data()); }
  std::byte *data() { return storage_.data()->bytes; }
  const std::byte *data() const { return storage_.data()->bytes; }
  /// Elements and guard, as the device of an Accelerator sees them.
  size_t storageBytes() const { return storage_.size() * sizeof(Line); }
  size_t bytes() const { return size_t(elementCount(type.shape) * byteSize(type.dtype)); }
  bool guardIntact() const;
  double at(int64_t i) const;

  TensorType type;

private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::vector<Line> storage_;
};

/// Random contents; the seed is printed when a test of this source fails.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed), trace_(__FILE__, __LINE__, "seed " + std::to_string(seed)) {}

  /// Floats are normal times `scale`, integers in [-20, 20], bools 0 or 1.
  Buffer buffer(DType dtype, const Shape &shape, double scale = 1);
  int64_t below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(engine); }

  std::mt19937_64 engine;

private:
  testing::ScopedTrace trace_;
};

struct Tolerance {
  double relative = 0, absolute = 0;
};

Invocation invocationOf(const std::string &kernel, const std::vector<Buffer> &operands, Attributes attributes);

/// The operands of the same call on `device`, with the workspace that a plan reserves there for so many workers.
std::vector<Buffer> operandsOn(Device device, const std::string &kernel, std::vector<Buffer> operands,
                               const Attributes &attributes, int workers = 1);

/// Builds and runs one kernel on `workers` workers.
Status runKernel(const KernelRegistry &registry, const Invocation &invocation, std::vector<Buffer> &operands,
                 int workers = 1, CallContext context = {});

/// Runs the fast kernel with 1, 2, 3 and 5 workers, expects the same bits each time and the reference's numbers within
/// the tolerance in the operands `outputs`, and gives back the operands after the run. Outputs start as garbage unless
/// the caller filled them and says so. Where the caller brings no workspace, the fast kernel has a plan's. Both kernels
/// run again with each result in the memory of each operand that its row lets it overwrite: the same bits.
std::vector<Buffer> expectMatchesReference(const std::string &kernel, std::vector<Buffer> operands,
                                           const Attributes &attributes, const std::vector<size_t> &outputs,
                                           Tolerance tolerance, CallContext context = {},
                                           const std::vector<size_t> &readWrite = {});

/// Expects both registries' factories to throw an Error that contains `text`.
void expectRefused(const Invocation &invocation, const std::string &text);

/// Expects both kernels to fail with a message that contains `text`.
void expectFails(const std::string &kernel, const std::vector<Buffer> &operands, const Attributes &attributes,
                 const std::string &text);

inline TensorType type(DType dtype, Shape shape) { return {dtype, std::move(shape)}; }

/// Both float types, to loop over.
inline constexpr DType floatTypes[] = {DType::F32, DType::F64};

} // namespace ds::kernels::test
