//===- DimsTest.cpp - symbolic dimensions --------------------------------------===//
#include "compiler/import/Dims.h"
#include "compiler/import/files/Failure.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::import;

static const std::map<std::string, int64_t> dims = {{"batch", 4}, {"seq", 7}, {"s.1", 3}};

static int64_t value(const std::string &text) { return evaluateDim(text, dims, "input 'x'"); }

static std::string refusal(const std::string &text) {
  try {
    (void)value(text);
  } catch (const Failure &failure) {
    return failure.what();
  }
  return "";
}

TEST(Dims, EvaluatesWhatTorchExportPrints) {
  EXPECT_EQ(value("batch"), 4);
  EXPECT_EQ(value("32*batch"), 128);
  EXPECT_EQ(value("seq + 1"), 8);
  EXPECT_EQ(value("seq*batch - 2*s.1"), 22);
  EXPECT_EQ(value("(seq + 3)//4"), 2);
  EXPECT_EQ(value("seq/2"), 3);
  EXPECT_EQ(value("2*(seq - (1 + batch))"), 4);
}

TEST(Dims, DivisionRoundsDown) { EXPECT_EQ(value("10 + -7//2"), 6); }

TEST(Dims, NamesAnUnboundDimension) {
  EXPECT_EQ(refusal("2*width"), "input 'x': dimension 'width' has no size; add --dim width=N");
}

TEST(Dims, RefusesWhatIsNoSize) {
  EXPECT_EQ(refusal("seq - 8"), "input 'x': dimension 'seq - 8' is -1");
  EXPECT_NE(refusal("seq//(batch - 4)").find("divides by 0"), std::string::npos);
  EXPECT_NE(refusal("9223372036854775807*batch").find("passes 64 bits"), std::string::npos);
  EXPECT_NE(refusal("99999999999999999999").find("passes 64 bits"), std::string::npos);
}

TEST(Dims, RefusesOtherText) {
  for (const char *text : {"", "batch batch", "batch +", "(batch", "batch)", "batch % 2", "Max(1, batch)", "é"})
    EXPECT_NE(refusal(text).find("is not made of names"), std::string::npos) << text;
  EXPECT_NE(refusal(std::string(100000, '(')).find("is not made of names"), std::string::npos);
}
