//===- KernelRegistry.h - how the runtime finds and calls kernels ---------===//
//
// A kernel is built once (at initialize: shapes are checked, library primitives made) and executed many times (only
// arithmetic: no allocation, no exception). Everything static about a call is in its Invocation; addresses come with
// each execute, because slots move them. Kernels.inc lists the kernels.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/DType.h"
#include "core/Shape.h"
#include "core/Status.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ds::kernels {

/// Element type and static shape of one operand.
struct TensorType {
  DType dtype;
  Shape shape;

  bool operator==(const TensorType &) const = default;
};

using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

/// By name; std::map so that printing has one order.
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

/// A kernel that the compiler made for the calls of one shape: PTX, whose entry `name` takes the operands' addresses.
/// The plan that it lies in outlives what is made of it.
struct DeviceCode {
  std::string_view name, text;
  uint32_t blocks = 0, threads = 0;

  bool operator==(const DeviceCode &) const = default;
};

/// An algorithm that a library found fastest for a call, in the library's own words. It holds for one kind of GPU and
/// one version of the library. The plan that it lies in outlives what is made of it. Cf. cublasLtMatmulAlgo_t.
struct LibraryAlgorithm {
  std::string_view gpu; ///< as CUDA names it
  uint64_t version = 0;
  std::string_view bytes;

  bool operator==(const LibraryAlgorithm &) const = default;
};

/// All that is static about one call. Operands stand in the order of Kernels.inc; a workspace, where the plan has
/// one, is the last operand: bytes (U8, shape [n]).
struct Invocation {
  std::string kernel;
  std::vector<TensorType> operands;
  Attributes attributes;
  std::optional<DeviceCode> code = {}; ///< what a device may run instead of its own kernel
  std::optional<LibraryAlgorithm> algorithm = {};

  bool operator==(const Invocation &) const = default;
};

/// Runs `pieces` independent pieces of one kernel on the workers of one compute queue. Which worker takes which piece
/// is not determined; kernels therefore cut their work by shape alone and never by the number of workers, so that the
/// bits do not depend on it.
class Parallel {
public:
  using Body = void (*)(void *state, int64_t piece, int worker);

  virtual ~Parallel() = default;
  /// Number of workers, at least 1; `worker` passed to a body is below it.
  virtual int workers() const = 0;
  /// Calls body(state, piece, worker) once for every piece in [0, pieces), on at most `maxWorkers` workers (0: all; the
  /// worker indices are then below maxWorkers), and returns when all have returned. Allocates nothing.
  virtual void run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept = 0;
};

/// The first value that a kernel on an accelerator refused (a token id out of range), in memory that host and device
/// both see.
struct RefusedValue {
  uint32_t caller; ///< 1 + CallContext::caller of the kernel, set by one compare-and-swap; 0: none
  int64_t value;
};

/// What kernels of an accelerator get instead of workers: they enqueue on a stream and return. Cf. cudaStream_t.
struct Stream {
  void *handle = nullptr;          ///< cudaStream_t
  const uint64_t *step = nullptr;  ///< device memory: CallContext::step, which a launch captured in a graph reads anew
  RefusedValue *refused = nullptr; ///< device-visible
};

/// What changes from call to call besides addresses.
struct CallContext {
  Parallel *parallel = nullptr;   ///< kernels that run on the host
  const Stream *stream = nullptr; ///< kernels that do not
  uint32_t caller = 0;            ///< tells the commands of a rank apart in RefusedValue
  uint64_t seed = 0;
  uint64_t step = 0;       ///< optimizer steps done before this one
  uint64_t microbatch = 0; ///< global index within the optimizer step, over all data-parallel ranks
};

/// parallelFor(context, pieces, [&](int64_t piece, int worker) {...}); allocates nothing.
template <typename Callable>
void parallelFor(const CallContext &context, int64_t pieces, Callable &&callable, int maxWorkers = 0) {
  using Plain = std::remove_reference_t<Callable>;
  context.parallel->run(
      pieces, maxWorkers, [](void *state, int64_t piece, int worker) { (*static_cast<Plain *>(state))(piece, worker); },
      const_cast<void *>(static_cast<const void *>(&callable)));
}

/// One call site, ready to run.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Runs to the end on the calling thread and the context's workers, or enqueues on its stream. `operands` holds one
  /// address per operand of the Invocation. A failure is about values (a token id out of range), never about shapes.
  virtual Status execute(const CallContext &context, std::span<void *const> operands) noexcept = 0;
  /// The failure that a RefusedValue stands for; only kernels of accelerators leave one.
  virtual Status refusal(int64_t value) const noexcept { return Status::failure("refuses a value"); }
  /// Algorithms that its library has for the call, each as LibraryAlgorithm::bytes: the one that this kernel runs, then
  /// others, at most `most` in all. Empty: no library's, or none to choose from.
  virtual std::vector<std::string> algorithms(int most) const { return {}; }
};

/// How a set of kernels was told to run: most workers that will ever call, and so how finely a workspace is cut.
struct BuildOptions {
  int maxWorkers = 1;
};

/// Checks every shape, type and attribute of the invocation and throws ds::Error naming what is wrong.
using Factory = std::unique_ptr<Kernel> (*)(const Invocation &, const BuildOptions &);

/// The kernels of one device by name. Filled once, before any lookup.
class KernelRegistry {
public:
  void add(std::string_view name, Factory factory) { factories_.emplace(name, factory); }
  /// The factory, or nullptr.
  Factory find(std::string_view name) const {
    auto it = factories_.find(name);
    return it == factories_.end() ? nullptr : it->second;
  }
  const std::map<std::string, Factory, std::less<>> &all() const { return factories_; }

private:
  std::map<std::string, Factory, std::less<>> factories_;
};

/// The fast kernels for CPUs (kernels/<family>/<op>.cpp).
const KernelRegistry &cpuKernels();
/// The obvious ones, the oracle of the fast ones (kernels/<family>/<op>_reference.cpp).
const KernelRegistry &cpuReferenceKernels();

} // namespace ds::kernels
