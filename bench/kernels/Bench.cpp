#include "bench/kernels/Bench.h"

#include "kernels/Numbers.h"

#include <cstdio>
#include <cstdlib>

namespace ds::kernels::bench {

const Limits &limits() {
  static const Limits measured{peakFlops(), copyBandwidth()};
  return measured;
}

namespace {

/// Between -1 and 1, all bits of a float32 in use as in training: products of rounder numbers need less power, and the
/// processor's clock is higher then. The generator is splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
double randomNumber(uint64_t index) {
  uint64_t x = (index + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return double(int64_t(x ^ (x >> 31))) * 0x1p-63;
}

} // namespace

Operand::Operand(TensorType operandType, double scale)
    : type(std::move(operandType)), storage_(size_t(elementCount(type.shape) * byteSize(type.dtype)) / 64 + 1) {
  const int64_t count = elementCount(type.shape), bytes = byteSize(type.dtype);
  for (int64_t i = 0; i < count; ++i)
    storeDouble(static_cast<char *>(data()) + i * bytes, type.dtype, scale * randomNumber(uint64_t(i)));
}

TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }
TensorType i64(Shape shape) { return {DType::I64, std::move(shape)}; }

KernelCall::KernelCall(const std::string &name, std::vector<Operand> all, Attributes attributes)
    : operands(std::move(all)), context{&workers()} {
  Invocation invocation{name, {}, std::move(attributes)};
  for (const Operand &operand : operands)
    invocation.operands.push_back(operand.type);
  if (const int64_t bytes = workspaceBytes(invocation, {workers().workers()}); bytes > 0) {
    operands.emplace_back(TensorType{DType::U8, {bytes}});
    invocation.operands.push_back(operands.back().type);
  }
  for (Operand &operand : operands)
    addresses.push_back(operand.data());
  kernel = cpuKernels().find(name)(invocation, {workers().workers()});
}

void KernelCall::run() {
  if (const Status status = kernel->execute(context, addresses); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message());
    std::abort();
  }
}

namespace {

void bench(const std::string &name, double amount, double limit, const char *unit, const MakeCall &make) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State &state) {
                                 const std::unique_ptr<KernelCall> call = make();
                                 call->run();
                                 for (auto _ : state)
                                   call->run();
                                 const double total = amount * double(state.iterations());
                                 state.counters[unit] = benchmark::Counter(total / 1e9, benchmark::Counter::kIsRate);
                                 state.counters["share"] =
                                     benchmark::Counter(total / limit, benchmark::Counter::kIsRate);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

} // namespace

void benchFlops(const std::string &name, double flops, const MakeCall &make) {
  bench(name, flops, limits().flops, "GFLOP/s", make);
}

void benchBytes(const std::string &name, double bytes, const MakeCall &make) {
  bench(name, bytes, limits().bandwidth, "GB/s", make);
}

} // namespace ds::kernels::bench

int main(int argc, char **argv) {
  using namespace ds::kernels::bench;
  benchmark::Initialize(&argc, argv);
  std::printf("%d workers: peak %.1f GFLOP/s (float32 fused multiply-add), copy %.1f GB/s (read + write)\n",
              workers().workers(), limits().flops / 1e9, limits().bandwidth / 1e9);
  registerMatmul();
  registerBandwidth();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
