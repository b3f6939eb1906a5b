// Every fault of plant_faults.py is found by the shim, and without a fault the same calls pass.
#include "test/shim/Machine.h"
#include "test/shim/ShimAccelerator.h"

#include "Planted.h"

#include <cmath>
#include <cstring>

namespace shim {
Planted planted = none;
} // namespace shim

namespace ds::kernels {

namespace faulty { // the namespace `cuda` of the copies
std::unique_ptr<Kernel> makeLayerNorm(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeLayerNormGrad(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeCumSum(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeGatherGrad(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeTopK(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeAdamW(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeSoftmax(const Invocation &, const BuildOptions &);
std::unique_ptr<Kernel> makeDropout(const Invocation &, const BuildOptions &);
} // namespace faulty

namespace test {

namespace {

struct Case {
  std::string kernel;
  std::vector<Buffer> operands;
  Attributes attributes;
  std::vector<size_t> outputs;
};

Case layerNormOf(int64_t cols) {
  Random random{1};
  const Shape x{3, cols};
  return {"layer_norm",
          {random.buffer(DType::F32, x), random.buffer(DType::F32, {cols}), random.buffer(DType::F32, {cols}),
           Buffer(type(DType::F32, x)), Buffer(type(DType::F32, {3})), Buffer(type(DType::F32, {3}))},
          {{"epsilon", 1e-5}},
          {3, 4, 5}};
}

Case layerNorm() { return layerNormOf(301); }
Case packedLayerNorm() { return layerNormOf(520); }

Case layerNormGradOf(int64_t cols) {
  Random random{2};
  const Shape x{9, cols};
  return {"layer_norm_grad",
          {random.buffer(DType::F32, x), random.buffer(DType::F32, x), random.buffer(DType::F32, {cols}),
           random.buffer(DType::F32, {9}), random.buffer(DType::F32, {9}), Buffer(type(DType::F32, x)),
           Buffer(type(DType::F32, {cols})), Buffer(type(DType::F32, {cols}))},
          {},
          {5, 6, 7}};
}

Case layerNormGrad() { return layerNormGradOf(45); }
Case packedLayerNormGrad() { return layerNormGradOf(260); }

Case cumSum() {
  Random random{3};
  return {"cumsum",
          {random.buffer(DType::F32, {2, 700}), Buffer(type(DType::F32, {2, 700}))},
          {{"axis", int64_t(1)}, {"exclusive", int64_t(0)}, {"reverse", int64_t(0)}},
          {1}};
}

Case gatherGrad() {
  Random random{4};
  std::vector<int64_t> rows(1500);
  for (int64_t &row : rows)
    row = random.below(40);
  return {
      "gather_grad",
      {random.buffer(DType::F32, {1500, 5}), Buffer(type(DType::I64, {1500}), rows), Buffer(type(DType::F32, {40, 5}))},
      {{"axis", int64_t(0)}},
      {2}};
}

Case topK() {
  Random random{5};
  return {"top_k",
          {random.buffer(DType::F32, {2, 300}), Buffer(type(DType::F32, {2, 4})), Buffer(type(DType::I64, {2, 4}))},
          {{"smallest", int64_t(0)}},
          {1, 2}};
}

Case adamW() {
  Random random{6};
  const Shape p{1030};
  Buffer v = random.buffer(DType::F32, p);
  for (int64_t i = 0; i < 1030; ++i)
    v.as<float>()[i] *= v.as<float>()[i];
  const auto scalar = [](double x) { return Buffer(type(DType::F64, {}), std::vector<double>{x}); };
  return {"adamw",
          {random.buffer(DType::F32, p), random.buffer(DType::F32, p), random.buffer(DType::F32, p), v, scalar(0.1),
           Buffer(type(DType::I64, {}), std::vector<int64_t>{3}), scalar(1)},
          {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"adam_w_mode", int64_t(1)}},
          {0, 2, 3}};
}

Case softmax() {
  Random random{7};
  return {"softmax",
          {random.buffer(DType::F32, {3, 200}), Buffer(type(DType::F32, {3, 200}))},
          {{"axis", int64_t(1)}},
          {1}};
}

Case dropout() {
  Random random{8};
  return {"dropout",
          {random.buffer(DType::F32, {1001}), Buffer(type(DType::F32, {1001}))},
          {{"ratio", 0.25}, {"op_id", int64_t(3)}},
          {1}};
}

const KernelRegistry &faultyKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
    kernels.add("layer_norm", faulty::makeLayerNorm);
    kernels.add("layer_norm_grad", faulty::makeLayerNormGrad);
    kernels.add("cumsum", faulty::makeCumSum);
    kernels.add("gather_grad", faulty::makeGatherGrad);
    kernels.add("top_k", faulty::makeTopK);
    kernels.add("adamw", faulty::makeAdamW);
    kernels.add("softmax", faulty::makeSoftmax);
    kernels.add("dropout", faulty::makeDropout);
    return kernels;
  }();
  return registry;
}

/// What the harness would fail with, or "".
std::string foundIn(const Case &c) {
  ShimAccelerator accelerator(faultyKernels());
  std::vector<Buffer> reference = operandsOn(Device::Cpu, c.kernel, c.operands, c.attributes), first;
  const Status expected = runKernel(cpuReferenceKernels(), invocationOf(c.kernel, reference, c.attributes), reference);
  EXPECT_TRUE(expected.ok()) << expected.message();
  for (int round = 0; round < 3; ++round) {
    std::vector<Buffer> operands = operandsOn(Device::Cuda, c.kernel, c.operands, c.attributes);
    const Status status = accelerator.run(invocationOf(c.kernel, operands, c.attributes), operands, {}, {});
    if (!status.ok())
      return status.message();
    if (first.empty())
      first = operands;
    for (size_t output : c.outputs) {
      if (std::memcmp(operands[output].data(), first[output].data(), first[output].bytes()) != 0)
        return "other bits in another order of threads";
      for (int64_t i = 0; i < elementCount(operands[output].type.shape); ++i) {
        const double want = reference[output].at(i);
        if (!(std::fabs(operands[output].at(i) - want) <= 1e-4 + 1e-4 * std::fabs(want)))
          return "not the reference's numbers";
      }
    }
  }
  return "";
}

struct Fault {
  shim::Planted fault;
  Case (*call)();
  const char *found; ///< a part of what is said
};

const Fault faults[] = {
    {shim::barrierMissingBehindAWrite, layerNorm, "layerNormKernel, block (0, 0, 0): thread"},
    {shim::barrierMissingBeforeReuse, layerNorm, "with no barrier between: a race"},
    {shim::wordNeverWritten, layerNorm, "reads shared memory that its block has not written"},
    {shim::warpOfSixteen, layerNorm, "not the reference's numbers"},
    {shim::tailOutOfBounds, layerNorm, "layerNormKernel, block"},
    {shim::shuffleUnderDivergence, layerNorm, "threads diverge"},
    {shim::wrongStride, layerNorm, "not the reference's numbers"},
    {shim::wrongRow, layerNorm, "not the reference's numbers"},
    {shim::keptPackPastTheRow, packedLayerNorm, "bytes that lie outside of every operand"},
    {shim::allStatisticsIntoOne, layerNorm, "that a thread of another block writes: a race"},
    {shim::barrierMissingInAScan, cumSum, "rowKernel, block"},
    {shim::barrierMissingBeforeTheNextChunk, cumSum, "with no barrier between: a race"},
    {shim::carryForgotten, cumSum, "not the reference's numbers"},
    {shim::zeroMissing, gatherGrad, "reads shared memory that its block has not written"},
    {shim::raceBetweenWarps, gatherGrad, "gatherGradKernel, block"},
    {shim::laneAddsItself, gatherGrad, ""},
    {shim::listReadTooEarly, gatherGrad, "gatherGradKernel, block"},
    {shim::elementsOfTwoThreads, gatherGrad, "with no barrier between: a race"},
    {shim::treeWithoutBarriers, topK, "topKKernel, block"},
    {shim::barrierMissingBetweenFinds, topK, "with no barrier between: a race"},
    {shim::returnBeforeABarrier, layerNormGrad, "has ended: threads diverge"},
    {shim::sumsOfRowsInOnePlace, packedLayerNormGrad, "with no barrier between: a race"},
    {shim::vectorPastTheEnd, adamW, "bytes that lie outside of every operand"},
    {shim::vectorAtAnOddAddress, adamW, ""},
    {shim::coefficientsReadTooEarly, adamW, "adamwKernel, block"},
    {shim::allRowsIntoOne, softmax, "that a thread of another block writes: a race"},
    {shim::drawsPastTheEnd, dropout, "bytes that lie outside of every operand"},
};

TEST(PlantedFaults, EachIsFound) {
  ASSERT_EQ(std::size(faults) + 1, size_t(shim::plantedEnd));
  for (const Fault &fault : faults) {
    shim::planted = shim::none;
    EXPECT_EQ(foundIn(fault.call()), "") << "fault " << fault.fault << " is not planted";
    shim::planted = fault.fault;
    const std::string found = foundIn(fault.call());
    EXPECT_NE(found, "") << "fault " << fault.fault;
    EXPECT_NE(found.find(fault.found), std::string::npos) << "fault " << fault.fault << ": " << found;
    std::printf("fault %d: %s\n", int(fault.fault), found.c_str());
    shim::planted = shim::none;
  }
}

} // namespace

} // namespace test

} // namespace ds::kernels
