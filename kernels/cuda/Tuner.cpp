#include "kernels/cuda/Tuner.h"

#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "kernels/Numbers.h"
#include "kernels/Philox.h"
#include "kernels/cuda/CublasLt.h"
#include "kernels/cuda/CudaKernels.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace ds::kernels {

namespace {

constexpr int mostAlgorithms = 16, rounds = 7;
constexpr double worthwhile = 0.98; ///< of the own choice's time: less is noise
constexpr size_t enoughElements = size_t(1) << 20, mostDraws = 8192;
constexpr size_t comparedBytes = size_t(64) << 20;    ///< of a result
constexpr size_t drawnBytes = (size_t(4) << 20) - 40; ///< no multiple of a matrix' row, so that rows differ

void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw Error(std::string("--tune: ") + what + ": " + cudaGetErrorString(error));
}

struct Free {
  void operator()(std::byte *address) const { (void)cudaFree(address); }
};
using DeviceBytes = std::unique_ptr<std::byte, Free>;

DeviceBytes allocate(size_t bytes) {
  void *address = nullptr;
  check(cudaMalloc(&address, std::max<size_t>(bytes, 1)), "there is no room for a call's operands");
  return DeviceBytes(static_cast<std::byte *>(address));
}

struct DestroyStream {
  void operator()(cudaStream_t stream) const { (void)cudaStreamDestroy(stream); }
};
using OwnStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
};
using OwnEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

OwnStream makeStream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot make a stream");
  return OwnStream(stream);
}

OwnEvent makeEvent() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, 0), "cannot make an event");
  return OwnEvent(event);
}

/// More than the caches of the GPU hold.
size_t cacheBytes() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "there is no GPU");
  check(cudaGetDeviceProperties(&properties, device), "the GPU does not say what it is");
  return 2 * size_t(properties.l2CacheSize);
}

size_t bytesOf(const TensorType &operand) {
  return size_t(elementCount(operand.shape)) * size_t(byteSize(operand.dtype));
}

/// Numbers of 16 binary orders of magnitude, so that sums of products are rounded.
std::vector<std::byte> drawn(DType dtype, size_t count, uint32_t operand, uint32_t draw) {
  const size_t size = size_t(byteSize(dtype));
  std::vector<std::byte> bytes(count);
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    const PhiloxBlock words = philox({uint32_t(at), 0, operand, draw}, 0);
    const double magnitude = std::ldexp(1 + uniformOf<double>(words[0]), -int(words[1] & 15));
    storeDouble(&bytes[at], dtype, (words[1] & 16) != 0 ? -magnitude : magnitude);
  }
  return bytes;
}

/// A call's operands on the device, and its kernel with one algorithm after the other.
class Bench {
public:
  explicit Bench(const Invocation &invocation)
      : invocation_(invocation), layout_(invocation), stream_(makeStream()), begin_(makeEvent()), end_(makeEvent()),
        cacheBytes_(cacheBytes()), cache_(allocate(cacheBytes_)) {
    for (const TensorType &operand : invocation.operands) {
      operands_.push_back(allocate(bytesOf(operand)));
      addresses_.push_back(operands_.back().get());
    }
  }

  /// How often operands are drawn until another order of additions shows, which it does in one of a thousand float32
  /// elements at least, and in one of some ten thousand of 16 bits. 0: too often, for a call that is as small as that.
  int draws() const {
    size_t draws = 1;
    for (size_t i = 0; i < layout_.size(); ++i) {
      const TensorType &operand = invocation_.operands[i];
      const auto elements = size_t(std::max<int64_t>(elementCount(operand.shape), 1));
      const size_t wanted = byteSize(operand.dtype) == 2 ? enoughElements : enoughElements >> 8;
      if (layout_[i].isWritten())
        draws = std::max(draws, (wanted + elements - 1) / elements);
    }
    return draws <= mostDraws ? int(draws) : 0;
  }

  void fill(int draw) {
    for (size_t i = 0; i < layout_.size(); ++i)
      if (layout_[i].isRead())
        fillOperand(i, uint32_t(draw));
  }

  std::unique_ptr<Kernel> kernelWith(const std::string &algorithm) const {
    const std::string gpu = cuda::gpuName();
    Invocation call = invocation_;
    call.algorithm = {.gpu = gpu, .version = cublasLtGetVersion(), .bytes = algorithm};
    return cudaKernels().find(call.kernel)(call, {});
  }

  /// What the call writes: of a large result its beginning and its end, since all of it would take longer to copy than
  /// to compute, and another order of additions shows everywhere.
  std::vector<std::vector<std::byte>> resultsOf(Kernel &kernel) {
    for (size_t i : results())
      check(cudaMemsetAsync(addresses_[i], 0xff, bytesOf(invocation_.operands[i]), stream_.get()), "cannot fill");
    run(kernel);
    std::vector<std::vector<std::byte>> all;
    for (size_t i : results()) {
      const size_t whole = bytesOf(invocation_.operands[i]);
      std::vector<std::byte> &bytes = all.emplace_back(std::min(whole, comparedBytes));
      const size_t head = bytes.size() / 2, tail = bytes.size() - head;
      const auto *from = static_cast<const std::byte *>(addresses_[i]);
      check(cudaMemcpyAsync(bytes.data(), from, head, cudaMemcpyDefault, stream_.get()), "cannot read results");
      check(cudaMemcpyAsync(bytes.data() + head, from + whole - tail, tail, cudaMemcpyDefault, stream_.get()),
            "cannot read results");
    }
    finish();
    return all;
  }

  double secondsOf(Kernel &kernel) {
    check(cudaMemsetAsync(cache_.get(), 0, cacheBytes_, stream_.get()), "cannot fill");
    check(cudaEventRecord(begin_.get(), stream_.get()), "cannot begin");
    run(kernel);
    check(cudaEventRecord(end_.get(), stream_.get()), "cannot end");
    finish();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cannot tell the time");
    return double(milliseconds) / 1000;
  }

private:
  std::vector<size_t> results() const {
    std::vector<size_t> all;
    for (size_t i = 0; i < layout_.size(); ++i)
      if (layout_[i].isWritten())
        all.push_back(i);
    return all;
  }

  /// With drawn numbers, which repeat where they are many.
  void fillOperand(size_t operand, uint32_t draw) {
    const size_t bytes = bytesOf(invocation_.operands[operand]);
    const std::vector<std::byte> block =
        drawn(invocation_.operands[operand].dtype, std::min(bytes, drawnBytes), uint32_t(operand), draw);
    for (size_t at = 0; at < bytes; at += block.size())
      check(cudaMemcpyAsync(operands_[operand].get() + at, block.data(), std::min(block.size(), bytes - at),
                            cudaMemcpyDefault, stream_.get()),
            "cannot write operands");
    finish();
  }

  void run(Kernel &kernel) {
    const Stream stream{.handle = stream_.get()};
    const Status status = kernel.execute({.stream = &stream}, addresses_);
    if (!status.ok())
      throw Error(std::string("--tune: ") + status.message());
  }

  void finish() { check(cudaStreamSynchronize(stream_.get()), "a call failed"); }

  const Invocation &invocation_;
  const CallLayout layout_;
  OwnStream stream_;
  OwnEvent begin_, end_;
  const size_t cacheBytes_;
  DeviceBytes cache_;
  std::vector<DeviceBytes> operands_;
  std::vector<void *> addresses_;
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

} // namespace

TunedCall tunedCall(const Invocation &invocation) {
  const std::vector<std::string> algorithms =
      cudaKernels().find(invocation.kernel)(invocation, {})->algorithms(mostAlgorithms);
  TunedCall tuned;
  if (algorithms.empty())
    return tuned;
  Bench bench(invocation);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const std::string &algorithm : algorithms)
    kernels.push_back(bench.kernelWith(algorithm));
  const int draws = bench.draws();
  tuned.trials.assign(kernels.size(), {0, draws > 0});
  for (int draw = 0; draw < draws; ++draw) {
    bench.fill(draw);
    const auto own = bench.resultsOf(*kernels[0]);
    for (size_t i = 0; i < kernels.size(); ++i) // the own choice once more: it must give its bits again
      tuned.trials[i].isSameBits = tuned.trials[i].isSameBits && bench.resultsOf(*kernels[i]) == own;
  }
  if (draws > 0 && !tuned.trials[0].isSameBits)
    throw Error("--tune: kernel '" + invocation.kernel + "' gives other bits when it runs again");
  std::vector<std::vector<double>> seconds(kernels.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < kernels.size(); ++i)
      seconds[i].push_back(bench.secondsOf(*kernels[i]));
  for (size_t i = 0; i < kernels.size(); ++i)
    tuned.trials[i].seconds = median(seconds[i]);
  for (size_t i = 1; i < kernels.size(); ++i)
    if (tuned.trials[i].isSameBits && tuned.trials[i].seconds < tuned.trials[tuned.chosen].seconds)
      tuned.chosen = i;
  if (tuned.trials[tuned.chosen].seconds < worthwhile * tuned.trials[0].seconds)
    tuned.algorithm = algorithms[tuned.chosen];
  else
    tuned.chosen = 0;
  return tuned;
}

} // namespace ds::kernels
