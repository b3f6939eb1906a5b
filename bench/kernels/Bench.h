//===- Bench.h - one kernel call to be timed ------------------------------===//
#pragma once

#include "bench/kernels/Machine.h"
#include "kernels/KernelTable.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds::kernels::bench {

/// The limits that results are quoted against; measured once, before the benchmarks.
struct Limits {
  double flops = 0, bandwidth = 0;
};
const Limits &limits();

/// Memory of one operand, filled with small numbers that are not all the same.
class Operand {
public:
  Operand(TensorType type, double scale = 1);

  TensorType type;
  void *data() { return storage_.data()->bytes; }

private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage_;
};

TensorType f32(Shape shape);
TensorType i64(Shape shape);

/// A fast kernel with its operands.
struct KernelCall {
  KernelCall(const std::string &kernel, std::vector<Operand> operands, Attributes attributes);
  void run();

  std::vector<Operand> operands;
  std::unique_ptr<Kernel> kernel;
  std::vector<void *> addresses;
  CallContext context;
};

using MakeCall = std::function<std::unique_ptr<KernelCall>()>;

/// Registers a benchmark that reports `flops` a call as GFLOP/s and its share of the peak.
void benchFlops(const std::string &name, double flops, const MakeCall &make);
/// Registers a benchmark that reports `bytes` a call as GB/s and its share of the copy's.
void benchBytes(const std::string &name, double bytes, const MakeCall &make);

void registerMatmul();
void registerBandwidth();

} // namespace ds::kernels::bench
