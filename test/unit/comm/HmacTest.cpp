//===- HmacTest.cpp - published vectors ----------------------------------===//
#include "runtime/comm/tcp/Hmac.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <gtest/gtest.h>
#include <span>
#include <string>

namespace ds::runtime {
namespace {

std::string hex(const Digest &digest) {
  std::string text;
  for (const std::byte byte : digest) {
    std::array<char, 3> two{};
    std::snprintf(two.data(), two.size(), "%02x", unsigned(byte));
    text += two.data();
  }
  return text;
}

std::span<const std::byte> bytes(const std::string &text) { return std::as_bytes(std::span(text)); }

/// RFC 4231, test cases 1, 2 and 6.
TEST(Hmac, ProvesAsPublished) {
  EXPECT_EQ(hex(hmac(std::string(20, '\x0b'), bytes("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac("Jefe", bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac(std::string(131, '\xaa'), bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, ComparesEveryByte) {
  const Digest digest = hmac("key", {});
  Digest other = digest;
  EXPECT_TRUE(equalDigests(digest, other));
  other.back() ^= std::byte(1);
  EXPECT_FALSE(equalDigests(digest, other));
  EXPECT_FALSE(equalDigests(digest, std::span(digest).first(31)));
}

} // namespace
} // namespace ds::runtime
