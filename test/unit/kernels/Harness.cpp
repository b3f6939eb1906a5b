#include "test/unit/kernels/Harness.h"

#include "test/unit/kernels/Accelerator.h"
#include "test/unit/kernels/Allocations.h"

#include "kernels/Numbers.h"
#include "kernels/cpu/Widened.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ds::kernels::test {

namespace {

constexpr std::byte guard{0xa5};

} // namespace

Workers::Workers(int count) {
  for (int worker = 1; worker < count; ++worker)
    threads_.emplace_back([this, worker] { serve(worker); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
}

void Workers::run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept {
  {
    const std::lock_guard lock(mutex_);
    body_ = body;
    state_ = state;
    pieces_ = pieces;
    next_ = 0;
    limit_ = maxWorkers > 0 ? maxWorkers : workers();
    active_ = int(threads_.size());
    ++round_;
  }
  changed_.notify_all();
  takePieces(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return active_ == 0; });
}

void Workers::takePieces(int worker) noexcept {
  for (;;) {
    int64_t piece;
    {
      const std::lock_guard lock(mutex_);
      if (worker >= limit_ || next_ >= pieces_)
        return;
      piece = next_++;
    }
    body_(state_, piece, worker);
  }
}

void Workers::serve(int worker) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_)
      return;
    seen = round_;
    lock.unlock();
    takePieces(worker);
    lock.lock();
    if (--active_ == 0)
      changed_.notify_all();
  }
}

Buffer::Buffer(TensorType operandType) : type(std::move(operandType)), storage_(bytes() / sizeof(Line) + 2) {
  std::fill_n(data(), storage_.size() * sizeof(Line), guard);
}

bool Buffer::guardIntact() const {
  return std::all_of(data() + bytes(), data() + storage_.size() * sizeof(Line), [](std::byte b) { return b == guard; });
}

double Buffer::at(int64_t i) const {
  if (isNarrowFloat(type.dtype))
    return withNarrowFloat(type.dtype, [&](auto zero) { return double(as<decltype(zero)>()[i]); });
  return withType(type.dtype, [&](auto zero) { return double(as<decltype(zero)>()[i]); });
}

Buffer Random::buffer(DType dtype, const Shape &shape, double scale) {
  Buffer buffer({dtype, shape});
  std::normal_distribution<double> normal(0, scale);
  for (int64_t i = 0; i < elementCount(shape); ++i) {
    if (isNarrowFloat(dtype)) {
      storeDouble(buffer.data() + i * byteSize(dtype), dtype, normal(engine));
      continue;
    }
    withType(dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T>)
        buffer.as<T>()[i] = T(normal(engine));
      else
        buffer.as<T>()[i] = dtype == DType::Bool ? T(below(2)) : T(below(41) - (std::is_signed_v<T> ? 20 : 0));
    });
  }
  return buffer;
}

Invocation invocationOf(const std::string &kernel, const std::vector<Buffer> &operands, Attributes attributes) {
  Invocation invocation{kernel, {}, std::move(attributes)};
  for (const Buffer &operand : operands)
    invocation.operands.push_back(operand.type);
  return invocation;
}

namespace {

/// Made once: thousands of runs would otherwise spend their time on starting threads.
Workers &workersOf(int count) {
  static std::map<int, std::unique_ptr<Workers>> all;
  std::unique_ptr<Workers> &workers = all[count];
  if (!workers)
    workers = std::make_unique<Workers>(count);
  return *workers;
}

/// Kernels whose work oneDNN does. What it allocates inside a call it frees, but its code is generated at first use;
/// AllocationTest tells its allocations from ours and asserts that nothing stays.
bool callsLibrary(const std::string &kernel) {
  return kernels::isProduct(kernel) || isAttention(kernel) || kernel.starts_with("conv");
}

} // namespace

namespace {

Status runAt(const KernelRegistry &registry, const Invocation &invocation, const std::vector<void *> &addresses,
             int workers, CallContext context) {
  context.parallel = &workersOf(workers);
  const Factory factory = registry.find(invocation.kernel);
  if (!factory)
    throw Error("no kernel '" + invocation.kernel + "'");
  const std::unique_ptr<Kernel> kernel = factory(invocation, {workers});
  const int64_t before = allocationCount();
  Status status = kernel->execute(context, addresses);
  if (!callsLibrary(invocation.kernel)) {
    EXPECT_EQ(allocationCount(), before) << invocation.kernel << " used the heap in execute";
  }
  return status;
}

std::vector<void *> addressesOf(std::vector<Buffer> &operands) {
  std::vector<void *> addresses;
  for (Buffer &operand : operands)
    addresses.push_back(operand.data());
  return addresses;
}

} // namespace

Status runKernel(const KernelRegistry &registry, const Invocation &invocation, std::vector<Buffer> &operands,
                 int workers, CallContext context) {
  const Status status = runAt(registry, invocation, addressesOf(operands), workers, context);
  for (const Buffer &operand : operands)
    EXPECT_TRUE(operand.guardIntact()) << invocation.kernel << " wrote past the end of an operand";
  return status;
}

namespace {

void expectClose(const Buffer &fast, const Buffer &reference, Tolerance tolerance, const std::string &what) {
  for (int64_t i = 0; i < elementCount(fast.type.shape); ++i) {
    const double got = fast.at(i), want = reference.at(i);
    if (got == want || (std::isnan(got) && std::isnan(want)))
      continue;
    ASSERT_LE(std::fabs(got - want), tolerance.absolute + tolerance.relative * std::fabs(want))
        << what << ", element " << i << " of " << toString(fast.type.shape) << ": " << got << ", reference " << want;
  }
}

void fillWithGarbage(Buffer &buffer) {
  for (int64_t i = 0; i < elementCount(buffer.type.shape); ++i)
    storeDouble(buffer.data() + i * byteSize(buffer.type.dtype), buffer.type.dtype,
                isFloat(buffer.type.dtype) ? std::nan("") : 1);
}

/// With each result in the memory of each operand that its row lets it overwrite: the bits of `expected`.
void expectSameOverOnAccelerator(Accelerator &accelerator, const Invocation &invocation,
                                 const std::vector<Buffer> &operands, const std::vector<Buffer> &expected,
                                 CallContext context) {
  const CallLayout layout(invocation);
  for (size_t result = 0; result < operands.size(); ++result)
    for (size_t under = 0; under < operands.size(); ++under) {
      if (!mayOverwrite(invocation, under, result))
        continue;
      std::vector<Buffer> copy = operands;
      const Status status = accelerator.run(invocation, copy, context, Accelerator::Over{result, under});
      EXPECT_TRUE(status.ok()) << status.message();
      for (size_t i = 0; i < layout.size(); ++i)
        if (layout[i].isWritten()) {
          EXPECT_EQ(std::memcmp(copy[i].data(), expected[i].data(), expected[i].bytes()), 0)
              << invocation.kernel << " gives other bits in operand " << i << " with " << result << " over " << under;
        }
    }
}

/// Runs the accelerator's kernel some times: the reference's numbers, and the same bits.
std::vector<Buffer> expectAcceleratorMatches(Accelerator &accelerator, const std::string &kernel,
                                             const std::vector<Buffer> &operands, const Attributes &attributes,
                                             const std::vector<size_t> &outputs, Tolerance tolerance,
                                             CallContext context, const std::vector<Buffer> &reference) {
  std::vector<Buffer> first;
  for (int round = 0; round < accelerator.rounds(); ++round) {
    std::vector<Buffer> fast = operandsOn(accelerator.device(), kernel, operands, attributes);
    const Status status = accelerator.run(invocationOf(kernel, fast, attributes), fast, context);
    EXPECT_TRUE(status.ok()) << status.message();
    if (first.empty())
      first = fast;
    for (size_t output : outputs) {
      expectClose(fast[output], reference[output], tolerance, kernel + " operand " + std::to_string(output));
      EXPECT_EQ(std::memcmp(fast[output].data(), first[output].data(), fast[output].bytes()), 0)
          << kernel << " gives other bits in another run";
    }
    if (testing::Test::HasFailure())
      return first;
  }
  const std::vector<Buffer> again = operandsOn(accelerator.device(), kernel, operands, attributes);
  expectSameOverOnAccelerator(accelerator, invocationOf(kernel, again, attributes), again, first, context);
  return first;
}

} // namespace

Accelerator *&Accelerator::instance() {
  static Accelerator *instance = nullptr;
  return instance;
}

std::vector<Buffer> operandsOn(Device device, const std::string &kernel, std::vector<Buffer> operands,
                               const Attributes &attributes, int workers) {
  if (CallLayout(invocationOf(kernel, operands, attributes)).hasWorkspace())
    operands.pop_back();
  const Accelerator *accelerator = Accelerator::instance();
  const bool isSmall = accelerator && accelerator->isSimulated(); // a library's workspace is copied for each run
  const WorkspaceLimits limits{workers, isSmall ? 1 << 16 : 32 << 20, device};
  if (const int64_t bytes = workspaceBytes(invocationOf(kernel, operands, attributes), limits); bytes > 0)
    operands.emplace_back(type(DType::U8, {bytes}));
  return operands;
}

namespace {

/// Runs with result `result` in the memory of operand `under`: the bits of `expected`, in all that is written.
void expectSameOver(const KernelRegistry &registry, const Invocation &invocation, std::vector<Buffer> operands,
                    size_t result, size_t under, const std::vector<Buffer> &expected, CallContext context) {
  std::vector<void *> addresses = addressesOf(operands);
  addresses[result] = addresses[under];
  const Status status = runAt(registry, invocation, addresses, 2, context);
  EXPECT_TRUE(status.ok()) << status.message();
  const CallLayout layout(invocation);
  for (size_t i = 0; i < layout.size(); ++i)
    if (layout[i].isWritten()) {
      EXPECT_EQ(std::memcmp(addresses[i], expected[i].data(), expected[i].bytes()), 0)
          << invocation.kernel << " gives other bits in operand " << i << " with " << result << " over " << under;
    }
}

void expectSameOverOperands(const KernelRegistry &registry, const Invocation &invocation,
                            const std::vector<Buffer> &operands, const std::vector<Buffer> &expected,
                            CallContext context) {
  for (size_t result = 0; result < operands.size(); ++result)
    for (size_t under = 0; under < operands.size(); ++under)
      if (mayOverwrite(invocation, under, result))
        expectSameOver(registry, invocation, operands, result, under, expected, context);
}

} // namespace

std::vector<Buffer> expectMatchesReference(const std::string &kernel, std::vector<Buffer> operands,
                                           const Attributes &attributes, const std::vector<size_t> &outputs,
                                           Tolerance tolerance, CallContext context,
                                           const std::vector<size_t> &readWrite) {
  const Invocation invocation = invocationOf(kernel, operands, attributes);
  for (size_t output : outputs)
    if (std::find(readWrite.begin(), readWrite.end(), output) == readWrite.end())
      fillWithGarbage(operands[output]);
  std::vector<Buffer> reference = operands, first;
  const Status status = runKernel(cpuReferenceKernels(), invocation, reference, 1, context);
  EXPECT_TRUE(status.ok()) << status.message();
  if (Accelerator *accelerator = Accelerator::instance())
    return expectAcceleratorMatches(*accelerator, kernel, operands, attributes, outputs, tolerance, context, reference);
  expectSameOverOperands(cpuReferenceKernels(), invocation, operands, reference, context);
  const bool hasWorkspace = CallLayout(invocation).hasWorkspace();
  for (int workers : {1, 2, 3, 5}) {
    std::vector<Buffer> fast = hasWorkspace ? operands : operandsOn(Device::Cpu, kernel, operands, attributes, workers);
    const Invocation call = invocationOf(kernel, fast, attributes);
    if (workers == 2 && !first.empty())
      expectSameOverOperands(cpuKernels(), call, fast, first, context);
    const Status fastStatus = runKernel(cpuKernels(), call, fast, workers, context);
    EXPECT_TRUE(fastStatus.ok()) << fastStatus.message();
    if (first.empty())
      first = fast;
    for (size_t output : outputs) {
      expectClose(fast[output], reference[output], tolerance, kernel + " operand " + std::to_string(output));
      EXPECT_EQ(std::memcmp(fast[output].data(), first[output].data(), fast[output].bytes()), 0)
          << kernel << " gives other bits with " << workers << " workers";
    }
    if (testing::Test::HasFailure())
      break;
  }
  return first;
}

void expectRefused(const Invocation &invocation, const std::string &text) {
  for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
    try {
      registry->find(invocation.kernel)(invocation, {2});
      ADD_FAILURE() << invocation.kernel << " accepted what should fail with: " << text;
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("kernel '" + invocation.kernel + "'"), std::string::npos);
    }
  }
}

void expectFails(const std::string &kernel, const std::vector<Buffer> &operands, const Attributes &attributes,
                 const std::string &text) {
  const Invocation invocation = invocationOf(kernel, operands, attributes);
  for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
    std::vector<Buffer> copy = operands;
    const Status status = runKernel(*registry, invocation, copy, 2);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status.message();
  }
  if (Accelerator *accelerator = Accelerator::instance()) { // knows the value, not where it stood
    std::vector<Buffer> copy = operandsOn(accelerator->device(), kernel, operands, attributes);
    const Status status = accelerator->run(invocationOf(kernel, copy, attributes), copy, {});
    EXPECT_FALSE(status.ok());
    EXPECT_NE(std::string(status.message()).find("kernel '" + kernel + "'"), std::string::npos) << status.message();
  }
}

} // namespace ds::kernels::test
