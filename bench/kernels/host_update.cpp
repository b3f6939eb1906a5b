//===- host_update.cpp - AdamW and STREAM's triad on N parameters ----------===//
//
//   host-update adamw 124439808 2 10         ten updates by two threads, with ds-run's kernel, workers and memory
//   host-update triad 124439808 2 10         a[i] = b[i] + s * c[i] of doubles, arrays of as many bytes in all
//   host-update streamed 124439808 2 10      the same with stores that go past the caches
//
// Prints the seconds of each and the sum of the parameters' magnitudes; bench/host_update.py sets both beside others.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "runtime/device/cpu/CpuArena.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {
constexpr double scale = 3; ///< s of the triad
} // namespace

#define DS_LOOPS "bench/kernels/triad_loops.h"
#include "kernels/cpu/ForEachIsa.h"

using namespace ds;
using namespace ds::kernels;

namespace {

constexpr int64_t alignment = 64;

class Memory {
public:
  explicit Memory(int64_t bytes) : arena_("host", uint64_t(bytes), alignment, counter_) {}

  template <typename T> T *take(int64_t count) {
    auto *at = reinterpret_cast<T *>(arena_.base() + taken_);
    taken_ += (count * int64_t(sizeof(T)) + alignment - 1) / alignment * alignment;
    return at;
  }

private:
  std::atomic<uint64_t> counter_ = 0;
  runtime::CpuArena arena_;
  int64_t taken_ = 0;
};

template <typename F> void timed(int count, F &&run) {
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    std::printf("%s%.6f", i == 0 ? "" : ", ",
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

/// As a plan calls it; bench/host_update.py gives the others the same numbers and values.
void adamw(int64_t n, int count, const CallContext &context) {
  Memory memory(16 * n + 8 * alignment);
  float *p = memory.take<float>(n), *g = memory.take<float>(n), *m = memory.take<float>(n), *v = memory.take<float>(n);
  auto *lr = memory.take<double>(1), *clip = memory.take<double>(1);
  auto *step = memory.take<int64_t>(1);
  for (int64_t i = 0; i < n; ++i) {
    p[i] = float(i % 1021 - 510) / 1021;
    g[i] = float(i % 769 - 384) / 76900;
    m[i] = v[i] = 0;
  }
  *lr = 3e-4;
  *clip = 1;
  const TensorType tensor{DType::F32, {n}}, number{DType::F64, {}};
  const Invocation invocation{
      "adamw",
      {tensor, tensor, tensor, tensor, number, {DType::I64, {}}, number},
      {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"adam_w_mode", int64_t(1)}}};
  const auto kernel = cpuKernels().find("adamw")(invocation, {context.parallel->workers()});
  void *const operands[] = {p, g, m, v, lr, step, clip};
  timed(count, [&] {
    if (const Status status = kernel->execute(context, operands); !status.ok())
      throw Error(status.message());
    ++*step;
  });
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += std::fabs(double(p[i]));
  std::printf("], \"sum\": %.9g", sum);
}

/// The pieces are as many as an update's of as many parameters.
void triad(int64_t n, int count, const CallContext &context, bool streamed) {
  const int64_t elements = n * 16 / 24;
  Memory memory(24 * elements + 3 * alignment);
  double *a = memory.take<double>(elements), *b = memory.take<double>(elements), *c = memory.take<double>(elements);
  std::fill_n(a, elements, 1.0);
  std::fill_n(b, elements, 2.0);
  std::fill_n(c, elements, 0.5);
  const auto run = streamed ? DS_BEST(triadStreamed) : DS_BEST(triadRun);
  constexpr int64_t grain = 16384;
  timed(count, [&] {
    parallelFor(context, (elements + grain - 1) / grain, [&](int64_t piece, int) {
      const int64_t first = piece * grain;
      run(a + first, b + first, c + first, std::min(grain, elements - first));
    });
  });
  std::printf("], \"sum\": %.9g", a[0] + a[elements - 1]);
}

} // namespace

int main(int argc, char **argv) {
  const std::string_view what = argc == 5 ? argv[1] : "";
  if (what != "adamw" && what != "triad" && what != "streamed") {
    std::fprintf(stderr, "usage: %s adamw|triad|streamed PARAMETERS THREADS COUNT\n", argv[0]);
    return 2;
  }
  runtime::ThreadPool pool(std::atoi(argv[3]));
  const CallContext context{&pool};
  const int64_t n = std::atoll(argv[2]);
  std::printf("{\"seconds\": [");
  if (what == "adamw")
    adamw(n, std::atoi(argv[4]), context);
  else
    triad(n, std::atoi(argv[4]), context, what == "streamed");
  std::printf("}\n");
}
