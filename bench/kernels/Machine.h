//===- Machine.h - what the machine can do, measured in the same run ------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ds::kernels::bench {

/// Workers that spin between runs: no wake-up in the measured time.
class SpinWorkers : public Parallel {
public:
  explicit SpinWorkers(int count);
  ~SpinWorkers() override;

  int workers() const override { return int(threads_.size()) + 1; }
  void run(int64_t pieces, int maxWorkers, Body body, void *state) noexcept override;

private:
  void serve(int worker);
  void takePieces(int worker) noexcept;

  std::vector<std::thread> threads_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<int> active_{0};
  std::atomic<bool> stop_{false};
  int64_t pieces_ = 0;
  int limit_ = 0;
  Body body_ = nullptr;
  void *state_ = nullptr;
};

/// The workers of this run: environment variable DS_BENCH_THREADS, else all cores.
SpinWorkers &workers();

/// Float32 fused multiply-adds of all workers, in FLOP/s, kept in registers.
double peakFlops();

/// Bytes per second read and written by a copy of 256 MiB by all workers.
double copyBandwidth();

} // namespace ds::kernels::bench
