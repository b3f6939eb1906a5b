//===- StatusTest.cpp - sentences of code that must not throw -------------===//
#include "core/Status.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <string>

namespace ds::test {
namespace {

TEST(Status, KeepsWhatFits) {
  EXPECT_STREQ(Status::failure("rank %d, %s", 3, "it").message(), "rank 3, it");
  const std::string longest(511, 'x');
  EXPECT_EQ(Status::failure("%s", longest.c_str()).message(), longest);
  EXPECT_STREQ(Status::success().message(), "");
}

TEST(Status, ALongPathHidesNoReason) {
  for (const size_t bytes : {600, 3900}) {
    const std::string path = "/begin/" + std::string(bytes, 'x') + "/end";
    for (const std::string &text : {"cannot rename " + path + " to " + path + ": File name too long",
                                    "cannot write " + path + ": No space left on device", "No such folder: " + path}) {
      const std::string said = Status::failure("%s", text.c_str()).message();
      EXPECT_EQ(said.size(), 511u);
      EXPECT_NE(said.find("x...x"), std::string::npos) << said;
      EXPECT_TRUE(text.starts_with(said.substr(0, 200))) << said;
      EXPECT_TRUE(text.ends_with(said.substr(said.size() - 200))) << said;
    }
  }
}

TEST(Status, CutsNoCharacter) {
  for (size_t before = 0; before < 4; ++before) {
    std::string text(before, '-');
    for (size_t i = 0; i < 300; ++i)
      text += "\xE2\x82\xAC"; // of three bytes
    const std::string said = Status::failure("%s", text.c_str()).message();
    const size_t gap = said.find("...");
    ASSERT_NE(gap, std::string::npos);
    EXPECT_EQ((gap - before) % 3, 0u) << said;
    EXPECT_TRUE(said.substr(gap + 3).starts_with("\xE2\x82\xAC")) << said;
    EXPECT_LE(said.size(), 511u);
    EXPECT_GT(said.size(), 500u);
  }
}

} // namespace
} // namespace ds::test
