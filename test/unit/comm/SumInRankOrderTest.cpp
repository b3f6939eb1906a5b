//===- SumInRankOrderTest.cpp - sums of 16 bits over ranks ----------------===//
#include "runtime/comm/SumInRankOrder.h"

#include "kernels/BFloat16.h"
#include "kernels/Float16.h"

#include <array>
#include <gtest/gtest.h>
#include <vector>

namespace ds::runtime {
namespace {

template <typename T> class SumInRankOrder : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(SumInRankOrder, Types);

/// The smallest number to which 1 is lost when added in the type: its precision is 8 or 11 bits.
template <typename T> constexpr float tooLarge = std::is_same_v<T, BFloat16> ? 256 : 2048;
template <typename T> constexpr DType dtypeOf = std::is_same_v<T, BFloat16> ? DType::BF16 : DType::F16;

/// More than a tile, over one of the addends.
TYPED_TEST(SumInRankOrder, RoundsOnce) {
  constexpr size_t count = 3000;
  std::vector<TypeParam> first(count, TypeParam(tooLarge<TypeParam>)), one(count, TypeParam(1.0f));
  const auto bytes = [](std::vector<TypeParam> &values) { return std::as_writable_bytes(std::span(values)).data(); };
  const std::array<const std::byte *, 3> addends{bytes(one), bytes(first), bytes(one)};
  sumInRankOrder(dtypeOf<TypeParam>, addends, bytes(first), count, /*accumulate=*/false);
  for (const TypeParam sum : first)
    ASSERT_EQ(float(sum), tooLarge<TypeParam> + 2);
}

TYPED_TEST(SumInRankOrder, AddsToWhatIsThere) {
  std::array<TypeParam, 2> target{TypeParam(tooLarge<TypeParam>), TypeParam(3.0f)},
      one{TypeParam(1.0f), TypeParam(2.0f)};
  const std::array<const std::byte *, 2> addends{std::as_bytes(std::span(one)).data(),
                                                 std::as_bytes(std::span(one)).data()};
  sumInRankOrder(dtypeOf<TypeParam>, addends, std::as_writable_bytes(std::span(target)).data(), 2, /*accumulate=*/true);
  EXPECT_EQ(float(target[0]), tooLarge<TypeParam> + 2);
  EXPECT_EQ(float(target[1]), 7);
}

} // namespace
} // namespace ds::runtime
