//===- CodeRulesTest.cpp - what of a carried kernel is run follows from its plan -===//
//
// Whoever edits a plan must not choose what is run of its code. A code that is wrong in one block of many, or for one
// input of many, is refused in some plans and not in others, which differ in their hash alone.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/meaning/CallRules.h"
#include "compiler/check/meaning/Mismatch.h"

#include <algorithm>
#include <cstdint>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace ds::check {
namespace {

/// x + x, an element a thread; `flaw` sees the block %r1, the input %r5, and may replace the result %r6.
std::string doubling(const std::string &flaw) {
  return R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry doubling(
	.param .u64 doubling_param_0,
	.param .u64 doubling_param_1
)
.maxntid 32
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<6>;

	ld.param.b64 	%rd1, [doubling_param_0];
	ld.param.b64 	%rd2, [doubling_param_1];
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r2, %tid.x;
	shl.b32 	%r3, %r1, 5;
	add.s32 	%r4, %r3, %r2;
	mul.wide.u32 	%rd3, %r4, 4;
	add.s64 	%rd4, %rd1, %rd3;
	ld.global.b32 	%r5, [%rd4];
	add.rn.f32 	%r6, %r5, %r5;
)" + flaw +
         R"(
	add.s64 	%rd5, %rd2, %rd3;
	st.global.b32 	[%rd5], %r6;
	ret;
}
)";
}

const std::string wrongInBlock17 = "setp.eq.u32 %p1, %r1, 17;\nselp.f32 %r6, 0f3F800000, %r6, %p1;";
const std::string wrongForALastByte =
    "and.b32 %r7, %r5, 255;\nsetp.eq.u32 %p1, %r7, 55;\nselp.f32 %r6, 0f3F800000, %r6, %p1;";

/// `number`: of one of many plans that do the same.
proto::Plan planOf(const std::string &text, uint32_t blocks, int number) {
  proto::Plan plan;
  const std::string operand = " dtype: DTYPE_F32 shape: " + std::to_string(blocks * 32) + " } ";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(machine { isa: "sm_90" }
         roles { name: "all" buffers {} buffers { offset: 65536 }
           routines { name: "microbatch" commands { kernel { kernel: "elementwise" code: 0
             operands { buffer: 0 access: READ)" +
          operand + "operands { buffer: 1 access: WRITE" + operand + R"(
             attributes { name: "program" integers { values: [10, 7, 0, 0, -1] } }
             attributes { name: "constants" numbers {} }
             attributes { name: "results" integers { values: [1] } } } } } })",
      &plan));
  plan.mutable_sources()->set_model_sha256(std::to_string(number));
  proto::DeviceCode &code = *plan.add_codes();
  code.set_name("doubling");
  code.set_text(text);
  code.set_blocks(blocks);
  code.set_threads(32);
  return plan;
}

/// The sentence by which a plan's code is refused, or "".
std::string refusal(const proto::Plan &plan) {
  try {
    requireCodes(plan);
    return "";
  } catch (const Mismatch &mismatch) {
    return mismatch.sentence;
  }
}

constexpr int plans = 64;

std::vector<std::string> refusals(const std::string &flaw, uint32_t blocks) {
  std::vector<std::string> all;
  for (int number = 0; number < plans; ++number)
    all.push_back(refusal(planOf(doubling(flaw), blocks, number)));
  return all;
}

TEST(CodeRules, ARightCodeIsTaken) {
  for (const uint32_t blocks : {1, 40})
    EXPECT_EQ(refusals("", blocks), std::vector<std::string>(plans));
}

/// 9 of 40 blocks run, of which 6 are drawn.
TEST(CodeRules, BlocksAreDrawnByThePlansHash) {
  const std::vector<std::string> found = refusals(wrongInBlock17, 40);
  const auto refused = plans - std::ranges::count(found, "");
  EXPECT_GT(refused, plans * 3 / 37);
  EXPECT_LT(refused, plans * 12 / 37);
  EXPECT_EQ(refusals(wrongInBlock17, 40), found);
}

TEST(CodeRules, InputsAreDrawnByThePlansHash) {
  const std::vector<std::string> found = refusals(wrongForALastByte, 1);
  const auto refused = plans - std::ranges::count(found, "");
  EXPECT_GT(refused, 1);
  EXPECT_LT(refused, plans / 2);
  EXPECT_EQ(refusals(wrongForALastByte, 1), found);
}

/// What is neither first nor last nor drawn by one plan is by another: no block is safe.
TEST(CodeRules, EveryBlockIsDrawnBySomePlan) {
  for (uint32_t block = 0; block < 20; ++block) {
    const std::string flaw =
        "setp.eq.u32 %p1, %r1, " + std::to_string(block) + ";\nselp.f32 %r6, 0f3F800000, %r6, %p1;";
    bool any = false;
    for (int number = 0; number < 2 * plans && !any; ++number)
      any = !refusal(planOf(doubling(flaw), 20, number)).empty();
    EXPECT_TRUE(any) << block;
  }
}

} // namespace
} // namespace ds::check
