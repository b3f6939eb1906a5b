#include "bench/kernels/Machine.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace ds::kernels::bench {

/// 14 x 2 accumulators, as many as the product's inner kernel keeps; a FLOP is a multiply or an add.
constexpr int chains = 28;
constexpr int64_t rounds = 4000000;

} // namespace ds::kernels::bench

#define DS_LOOPS "bench/kernels/peak_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels::bench {

SpinWorkers::SpinWorkers(int count) {
  for (int worker = 1; worker < count; ++worker)
    threads_.emplace_back([this, worker] { serve(worker); });
}

SpinWorkers::~SpinWorkers() {
  stop_ = true;
  for (std::thread &thread : threads_)
    thread.join();
}

void SpinWorkers::run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept {
  pieces_ = pieces;
  limit_ = maxWorkers > 0 ? maxWorkers : workers();
  body_ = body;
  state_ = state;
  next_ = 0;
  active_ = int(threads_.size());
  ++round_;
  takePieces(0);
  while (active_.load() > 0)
    ;
}

void SpinWorkers::takePieces(int worker) noexcept {
  if (worker >= limit_)
    return;
  for (int64_t piece = next_++; piece < pieces_; piece = next_++)
    body_(state_, piece, worker);
}

void SpinWorkers::serve(int worker) {
  for (uint64_t seen = 0; !stop_;) {
    if (round_.load() == seen)
      continue;
    ++seen;
    takePieces(worker);
    --active_;
  }
}

SpinWorkers &workers() {
  const char *text = std::getenv("DS_BENCH_THREADS");
  static SpinWorkers all(text ? std::max(1, std::stoi(text)) : int(std::max(1u, std::thread::hardware_concurrency())));
  return all;
}

double peakFlops() {
  const CallContext context{&workers()};
  const int count = workers().workers();
  const auto loop = DS_BEST(peakLoop);
  const double lanes = isa() >= Isa::Avx512 ? 16 : isa() == Isa::Avx2 ? 8 : 4;
  double best = 0;
  std::atomic<int> sink{0};
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    parallelFor(context, count, [&](int64_t, int) { sink += loop() > 1e30f; });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * lanes * chains * double(rounds) * count / seconds);
  }
  return best;
}

double copyBandwidth() {
  const CallContext context{&workers()};
  constexpr int64_t bytes = 256 << 20, piece = 1 << 20;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 0);
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    parallelFor(context, bytes / piece,
                [&](int64_t i, int) { std::memcpy(to.data() + i * piece, from.data() + i * piece, piece); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * bytes / seconds);
  }
  return best;
}

} // namespace ds::kernels::bench
