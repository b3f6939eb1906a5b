//===- CommandWorkTest.cpp - what commands do, by hand ---------------------===//
#include "runtime/plan/CommandWork.h"
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
