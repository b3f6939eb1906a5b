//===- CommandWorkTest.cpp - what commands do, by hand ---------------------===//
#include "runtime/plan/run/CommandWork.h"
#include "compiler/report/Table.h"
#include "compiler/report/Tables.h"
#include "core/CostModel.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <vector>

namespace ds::report {
namespace {

using namespace plan::proto;
using plan::commandsOfStep;
using plan::CommandTotals;
using plan::ratesOf;
using plan::workOf;

void addOperand(KernelCommand &kernel, DType dtype, std::initializer_list<int64_t> shape, Operand::Access access) {
  Operand &operand = *kernel.add_operands();
  operand.set_dtype(dtype);
  operand.mutable_shape()->Add(shape.begin(), shape.end());
  operand.set_access(access);
}

/// [100, 1000] by [1000, 10]: 2e6 FLOP; 222,000 bytes in 16 bits, twice that in 32, and scratch.
void addProduct(Routine &routine, DType dtype) {
  KernelCommand &product = *routine.add_commands()->mutable_kernel();
  product.set_kernel("matmul");
  addOperand(product, dtype, {100, 1000}, Operand::READ);
  addOperand(product, dtype, {1000, 10}, Operand::READ);
  addOperand(product, dtype, {100, 10}, Operand::WRITE);
  addOperand(product, DTYPE_U8, {1 << 20}, Operand::SCRATCH);
}

/// A step that calls a routine twice: a product in 16 bits, one in 32, and a fill of 1,000 bytes.
Plan twoProducts() {
  Plan plan;
  Role &role = *plan.add_roles();
  role.add_queues()->set_kind(Queue::COMPUTE);
  Routine &routine = *role.add_routines();
  addProduct(routine, DTYPE_BF16);
  addProduct(routine, DTYPE_F32);
  Operand &target = *routine.add_commands()->mutable_fill()->mutable_target();
  target.set_dtype(DTYPE_U8);
  target.add_shape(1000);
  role.add_programs()->set_name("step");
  role.mutable_programs(0)->add_calls();
  role.mutable_programs(0)->add_calls();
  return plan;
}

void setRates(Plan &plan) {
  plan::proto::Rates &rates = *plan.mutable_machine()->mutable_rates();
  rates.set_bytes_per_second(1e6);
  rates.set_command_seconds(0.125);
  rates.set_float32_flops(1e6);
  rates.set_bfloat16_flops(1e9);
}

TEST(CommandWork, AddsUpTheCommandsOfAStep) {
  const Plan plan = twoProducts();
  const std::vector<CommandTotals> totals = commandsOfStep(plan, plan.roles(0));
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, "matmul");
  EXPECT_EQ(totals[0].commands, 4u);
  EXPECT_EQ(totals[0].flops, 8e6);
  EXPECT_EQ(totals[0].bytes, 2 * (222'000 + 444'000));
  EXPECT_EQ(totals[1].name, "fill");
  EXPECT_EQ(totals[1].bytes, 2000);
}

TEST(CommandWork, ACommandTakesTheLongerOfItsWorkAndItsBytes) {
  Plan plan = twoProducts();
  setRates(plan);
  const ds::Rates rates = ratesOf(plan);
  const auto secondsOf = [&](int i) { return seconds(workOf(plan.roles(0).routines(0).commands(i)), rates); };
  EXPECT_DOUBLE_EQ(secondsOf(0), 0.125 + 0.222); // its bytes: 2e6 FLOP take 0.002 s
  EXPECT_DOUBLE_EQ(secondsOf(1), 0.125 + 2);     // its FLOP
  EXPECT_DOUBLE_EQ(secondsOf(2), 0.125 + 0.001);
}

TEST(CommandWork, WhatIsReadAndWrittenMovesTwice) {
  Command command;
  KernelCommand &update = *command.mutable_kernel();
  update.set_kernel("adamw");
  for (const Operand::Access access : {Operand::READ_WRITE, Operand::READ, Operand::READ_WRITE, Operand::READ_WRITE})
    addOperand(update, DTYPE_F32, {1000}, access);
  EXPECT_EQ(workOf(command).bytes, 28 * 1000);                      // p, m and v both ways, and g
  EXPECT_DOUBLE_EQ(seconds(workOf(command), {}), 16 * 1000 / 1e10); // ratios of no machine are what they were
}

/// Of an H100 by models/machines/h100x8.json.
constexpr ds::Rates h100{3e12, 1.25e-6, 54e12, 395e12, 790e12, 1580e12, 265e12, 132};

/// TFLOP/s of a product in 16 bits, in whole ones.
int rateOf(ProductShape shape) {
  const double flops = 2 * shape.count * shape.rows * shape.columns * shape.depth;
  return int(790 * shareOfRate(shape, 132) * (flops > 0));
}

TEST(CommandWork, ProductsReachWhatTilesWavesAndDepthLeave) {
  EXPECT_EQ(shareOfRate({}, 132), 1); // no product
  EXPECT_NEAR(rateOf({1, 8192, 8192, 8192}), 743, 1);
  EXPECT_NEAR(rateOf({1, 16384, 50304, 768}), 590, 3); // depth of twelve stages alone
  EXPECT_NEAR(rateOf({1, 16384, 768, 768}), 574, 3);   // 2.9 waves
  EXPECT_NEAR(rateOf({1, 768, 768, 16384}), 485, 3);   // 18 tiles, 7 parts
  EXPECT_NEAR(rateOf({1, 128, 256, 64}), 1, 1);        // one tile of 132
  EXPECT_DOUBLE_EQ(2 * shareOfRate({2, 64, 768, 768}, 132),
                   shareOfRate({1, 256, 768, 768}, 132)); // half of a tile each
}

TEST(CommandWork, ShapesAreThoseOfProducts) {
  const Plan plan = twoProducts();
  const ProductShape shape = workOf(plan.roles(0).routines(0).commands(0)).product;
  EXPECT_EQ(shape.count, 1);
  EXPECT_EQ(shape.rows, 100);
  EXPECT_EQ(shape.columns, 10);
  EXPECT_EQ(shape.depth, 1000);
  EXPECT_EQ(workOf(plan.roles(0).routines(0).commands(1)).product.count, 0); // of 32 bits
}

/// Attention's gradient of a batch, causal, its heads 64 wide.
Command attentionGrad(int64_t sequence, int64_t heads) {
  Command command;
  KernelCommand &kernel = *command.mutable_kernel();
  kernel.set_kernel("packed_attention_grad");
  Attribute &causal = *kernel.add_attributes();
  causal.set_name("causal");
  causal.set_integer(1);
  addOperand(kernel, DTYPE_BF16, {1, sequence, heads, 64}, Operand::READ);
  addOperand(kernel, DTYPE_BF16, {1, sequence, 3 * heads, 64}, Operand::READ);
  addOperand(kernel, DTYPE_BF16, {1, sequence, heads, 64}, Operand::READ);
  addOperand(kernel, DTYPE_F32, {1, heads, sequence}, Operand::READ);
  addOperand(kernel, DTYPE_BF16, {1, sequence, 3 * heads, 64}, Operand::WRITE);
  return command;
}

TEST(CommandWork, OrderedSumsOfAttentionMoveBesideNothing) {
  const Work work = workOf(attentionGrad(1024, 12));
  const double scores = 12 * 1024.0 * 1025 / 2;
  EXPECT_EQ(work.flops, 2 * scores * 5 * 64);
  EXPECT_EQ(work.flops + work.hiddenFlops, 12 * 1024.0 * 1024 * 2 * 5 * 64);
  EXPECT_EQ(work.scratch, 4 * scores + 8 * 12 * 1024 * 64); // a number a score, and dq, both ways
  EXPECT_DOUBLE_EQ(seconds(work, h100), 1.25e-6 + work.flops / 265e12 + work.scratch / 3e12);
}

TEST(CommandWork, AttentionThatNoLibraryTakesIsOurOwnKernels) {
  EXPECT_FALSE(workOf(attentionGrad(32768, 12)).isPlain);
  const Work plain = workOf(attentionGrad(65536, 12)); // one head's ordered sums are above 4 GiB
  EXPECT_TRUE(plain.isPlain);
  EXPECT_EQ(plain.scratch, 0);
  EXPECT_DOUBLE_EQ(seconds(plain, h100), 1.25e-6 + plain.flops / (54e12 / 8));
}

TEST(CommandWork, KernelsOfAGpuReachAShareOfItsMemory) {
  Command command;
  command.mutable_kernel()->set_kernel("gather_grad");
  addOperand(*command.mutable_kernel(), DTYPE_F32, {1 << 20, 8}, Operand::READ);
  const Work work = workOf(command);
  ASSERT_LT(work.memoryShare, 1);
  EXPECT_DOUBLE_EQ(seconds(work, h100), 1.25e-6 + work.bytes / (work.memoryShare * 3e12));
  ds::Rates rates = h100;
  rates.multiprocessors = 0;
  EXPECT_DOUBLE_EQ(seconds(work, rates), 1.25e-6 + work.bytes / 3e12);
}

TEST(CommandWork, WithoutRatesOnlySharesAreShown) {
  Plan plan = twoProducts();
  const Table shares = commandTable(plan, slowestRole(plan));
  EXPECT_EQ(shares.rows()[0], (Table::Row{"kernel", "commands", "FLOP", "bytes", "share of time"}));
  EXPECT_EQ(shares.rows().back(), (Table::Row{"all", "6", "8.00 M", "1.33 M", "100.0 %"}));
  setRates(plan);
  EXPECT_EQ(commandTable(plan, slowestRole(plan)).rows().back().back(), "5.20 s");
}

} // namespace
} // namespace ds::report
